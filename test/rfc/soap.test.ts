import { readRfcAnswer, rfcEnvelope, type RfcValue } from '../../src/rfc/soap.ts'

const bodyOf = (xml: string) => /<soapenv:Body>(.*)<\/soapenv:Body>/s.exec(xml)?.[1]
const answerOf = (body: string) => `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>${body}</e:Body></e:Envelope>`

describe('the SOAP envelope of a call', () => {
  test('matches the documented example of the interface', () => {
    const xml = rfcEnvelope({
      functionName: 'ARCHIV_GET_CONNECTIONS',
      imports: { ARCHIV_ID: 'Z1', ARC_DOC_ID: '005056B5A3F21EEFA9C1D04F7B6E8C11' },
      tables: { CONNECTIONS: [] },
    })
    expect(xml).toBe(
      '<?xml version="1.0" encoding="UTF-8"?>' +
        '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:urn="urn:sap-com:document:sap:rfc:functions">' +
        '<soapenv:Header/><soapenv:Body>' +
        '<urn:ARCHIV_GET_CONNECTIONS><ARCHIV_ID>Z1</ARCHIV_ID><ARC_DOC_ID>005056B5A3F21EEFA9C1D04F7B6E8C11</ARC_DOC_ID><CONNECTIONS/></urn:ARCHIV_GET_CONNECTIONS>' +
        '</soapenv:Body></soapenv:Envelope>',
    )
  })

  test.each<[string, RfcValue, string]>([
    ['text with reserved XML characters', `<a & "b" 'c'>`, '<P>&lt;a &amp; &quot;b&quot; &apos;c&apos;&gt;</P>'],
    ['non-ASCII text', 'Grüße 日本', '<P>Grüße 日本</P>'],
    ['leading and trailing spaces', '  x ', '<P>  x </P>'],
    ['a number', 12.5, '<P>12.5</P>'],
    ['true', true, '<P>X</P>'],
    ['false', false, '<P/>'],
    ['null', null, '<P/>'],
    ['a structure', { Bukrs: '1000', GJAHR: 2026 }, '<P><BUKRS>1000</BUKRS><GJAHR>2026</GJAHR></P>'],
    ['a table in a structure', { ROWS: [{ A: '1' }] }, '<P><ROWS><item><A>1</A></item></ROWS></P>'],
    ['rows without fields', ['one', 'two'], '<P><item>one</item><item>two</item></P>'],
    ['text that looks like a number', '0012', '<P>0012</P>'],
  ])('encodes %s', (_, value, expected) => {
    expect(bodyOf(rfcEnvelope({ functionName: 'F', imports: { P: value }, tables: {} }))).toBe(`<urn:F>${expected}</urn:F>`)
  })

  test('encodes functions and parameters with a namespace', () => {
    expect(bodyOf(rfcEnvelope({ functionName: '/ACME/PING', imports: { '/acme/id': '1' }, tables: {} }))).toBe(
      '<urn:_-ACME_-PING><_-ACME_-ID>1</_-ACME_-ID></urn:_-ACME_-PING>',
    )
  })
})

describe('a SOAP answer', () => {
  test('is read as exports, structures, and the tables that the call named, with any XML prefix', () => {
    const xml = answerOf(`
      <urn:F.Response xmlns:urn="urn:sap-com:document:sap:rfc:functions">
        <COUNT>0001</COUNT>
        <BLANKS>  x </BLANKS>
        <EMPTY/>
        <HEADER><BUKRS>1000</BUKRS><_-ACME_-KEY>7</_-ACME_-KEY></HEADER>
        <CONNECTIONS>
          <item><OBJECT_ID>1 &amp; 2</OBJECT_ID></item>
          <item><OBJECT_ID>3</OBJECT_ID></item>
        </CONNECTIONS>
        <NONE></NONE>
      </urn:F.Response>`)
    expect(readRfcAnswer(xml, ['connections', 'NONE'])).toEqual({
      kind: 'result',
      exports: { COUNT: '0001', BLANKS: '  x ', EMPTY: '', HEADER: { BUKRS: '1000', '/ACME/KEY': '7' } },
      tables: { CONNECTIONS: [{ OBJECT_ID: '1 & 2' }, { OBJECT_ID: '3' }], NONE: [] },
    })
  })

  test('has its character references decoded', () => {
    const xml = answerOf('<F.Response><A>Gr&#xFC;&#223;e&#13;&#xA;&#x1F600;</A><B>&amp;#65;&amp;lt;</B></F.Response>')
    expect(readRfcAnswer(xml, [])).toMatchObject({ exports: { A: 'Grüße\r\n😀', B: '&#65;&lt;' } })
  })

  test.each([
    [
      'a fault that names an exception',
      '<e:Fault><faultcode>e:Client</faultcode><faultstring>NOTHING_FOUND</faultstring></e:Fault>',
      'NOTHING_FOUND',
    ],
    [
      'a fault that names an exception in its detail',
      '<e:Fault><faultstring>Application error</faultstring><detail><r:Error xmlns:r="urn:r"><type>2</type><message>ERROR_CONNECTIONTABLE</message></r:Error></detail></e:Fault>',
      'ERROR_CONNECTIONTABLE',
    ],
    [
      'an exception element',
      '<r:F.Exception xmlns:r="urn:r"><Name>NOTHING_FOUND</Name><Message><Text>none</Text></Message></r:F.Exception>',
      'NOTHING_FOUND',
    ],
    [
      'a BAPI message of type E in a table',
      '<F.Response><RETURN><item><TYPE>S</TYPE></item><item><TYPE>E</TYPE><ID>F5</ID><NUMBER>312</NUMBER><MESSAGE>Period closed</MESSAGE></item></RETURN></F.Response>',
      'F5-312',
    ],
    [
      'a BAPI message of type A in a structure',
      '<F.Response><RETURN><TYPE>A</TYPE><ID>ZX</ID><NUMBER>001</NUMBER></RETURN></F.Response>',
      'ZX-001',
    ],
    ['an exception element whose text is its name', '<r:F.Exception xmlns:r="urn:r">NOTHING_FOUND</r:F.Exception>', 'NOTHING_FOUND'],
    [
      'an exception of the function about an authorization',
      '<r:F.Exception xmlns:r="urn:r"><Name>NO_AUTHORITY</Name><Message><Text>No authorization for company code 1000</Text></Message></r:F.Exception>',
      'NO_AUTHORITY',
    ],
  ])('with %s is read as an exception', (_, body, name) => {
    expect(readRfcAnswer(answerOf(body), ['RETURN'])).toMatchObject({ kind: 'exception', name })
  })

  test('with a repeated text says it once', () => {
    const text = 'ERROR_CONNECTIONTABLE'
    const body = `<e:Fault><faultstring>${text}</faultstring><detail><type>${text}</type><message>Error when inserting: ${text}</message></detail></e:Fault>`
    expect(readRfcAnswer(answerOf(body), [])).toEqual({ kind: 'exception', name: text, message: `Error when inserting: ${text}` })
  })

  test.each([
    '<e:Fault><faultstring>RFC_NO_AUTHORITY</faultstring><detail><message>User RELAY has no RFC authorization for function group OPTB.</message></detail></e:Fault>',
    '<e:Fault><faultstring>No RFC authorization for function module ARCHIV_GET_CONNECTIONS</faultstring></e:Fault>',
    '<e:Fault><faultstring>Keine RFC-Berechtigung für Funktionsbaustein ARCHIV_GET_CONNECTIONS</faultstring></e:Fault>',
    '<e:Fault><faultstring>Error</faultstring><detail><r:Error xmlns:r="urn:r"><type>RFC_NO_AUTHORITY</type></r:Error></detail></e:Fault>',
    '<r:F.Exception xmlns:r="urn:r"><Name>RFC_NO_AUTHORITY</Name></r:F.Exception>',
    '<r:F.Exception xmlns:r="urn:r">RFC_NO_AUTHORITY</r:F.Exception>',
  ])('that says that the user may not call functions is told from an exception: %s', (body) => {
    expect(readRfcAnswer(answerOf(body), [])).toMatchObject({ kind: 'unauthorized', message: expect.stringMatching(/RFC/) })
  })

  test('with names of the prototype changes no object', () => {
    const body = '<F.Response><__proto__><POLLUTED>1</POLLUTED></__proto__><T><item><constructor>1</constructor></item></T></F.Response>'
    const answer = readRfcAnswer(answerOf(body), ['T', '__PROTO__'])
    expect(({} as Record<string, unknown>)['POLLUTED']).toBeUndefined()
    const fields = answer.kind === 'result' ? [answer.exports, answer.tables] : [{}]
    for (const each of fields) expect(Object.getPrototypeOf(each)).toBe(Object.prototype)
    const call = JSON.parse('{"__proto__": {"A": "1"}, "constructor": "2"}') as Record<string, RfcValue>
    expect(() => rfcEnvelope({ functionName: 'F', imports: call, tables: {} })).not.toThrow()
    expect(({} as Record<string, unknown>)['A']).toBeUndefined()
  })

  test('with a BAPI success message is read as a result', () => {
    const body = '<F.Response><RETURN><TYPE>S</TYPE><MESSAGE>Posted</MESSAGE></RETURN></F.Response>'
    expect(readRfcAnswer(answerOf(body), [])).toEqual({
      kind: 'result',
      exports: { RETURN: { TYPE: 'S', MESSAGE: 'Posted' } },
      tables: {},
    })
  })

  test.each([
    ['a login page', '<html><body>Please log on</body></html>'],
    ['an empty body', ''],
    ['JSON', '{"a":1}'],
    ['broken XML', '<e:Envelope><e:Body>'],
    ['an empty envelope', answerOf('')],
    ['a document type in lower case', `<!doctype x [<!ENTITY a "aaaa">]>${answerOf('<F.Response><A>&a;</A></F.Response>')}`],
    ['a document type in the body', answerOf('<!DOCTYPE x [<!ENTITY a "aaaa">]><F.Response><A>&a;</A></F.Response>')],
    ['its own entities', `<!DOCTYPE x [<!ENTITY a "aaaa">]>${answerOf('<F.Response><A>&a;</A></F.Response>')}`],
    ['a fault of the call itself', answerOf('<e:Fault><faultstring>Deserialization of P failed</faultstring></e:Fault>')],
  ])('with %s is read as a fault', (_, xml) => {
    expect(readRfcAnswer(xml, [])).toMatchObject({ kind: 'fault', message: expect.stringMatching(/\w/) })
  })
})
