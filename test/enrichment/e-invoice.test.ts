import { deflateSync } from 'node:zlib'
import { readEInvoice } from '../../src/enrichment/e-invoice.ts'
import { cii, pdfWith, ubl, zugferd1 } from './invoices.ts'

/** Returns XML in ISO-8859-1 that declares an encoding. */
const latin1 = (xml: string, declared: string): Buffer => Buffer.from(xml.replace('encoding="UTF-8"', `encoding="${declared}"`), 'latin1')

const read = (data: Buffer | string) => readEInvoice({ data: new Uint8Array(Buffer.from(data as string)) })

const ofUbl = {
  invoice_number: 'RE-4711',
  seller: 'Müller & Söhne GmbH',
  total: '1190.00',
  currency: 'EUR',
  profile: 'urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0',
}
const ofCii = { invoice_number: 'FX-0815', seller: 'Acme Ltd', total: '238.00', currency: 'EUR', profile: 'urn:factur-x.eu:1p0:basicwl' }
const ofZugferd1 = {
  invoice_number: 'ZF-2014',
  seller: 'Beispiel AG',
  total: '59.50',
  currency: 'EUR',
  profile: 'urn:ferd:CrossIndustryDocument:invoice:1p0:basic',
}

test.each([
  ['XRechnung in UBL', ubl, ofUbl],
  ['XRechnung in UBL with a byte order mark', `\ufeff${ubl}`, ofUbl],
  ['XRechnung in UBL in UTF-16', Buffer.from(`\ufeff${ubl}`, 'utf16le'), ofUbl],
  ['XRechnung in UBL in UTF-16, big endian', Buffer.from(`\ufeff${ubl}`, 'utf16le').swap16(), ofUbl],
  ['a text around CDATA and a comment', ubl.replace('&amp; S&#246;hne', '<![CDATA[& Söhne]]><!-- and sons -->'), ofUbl],
  ['a text that a printer has wrapped', ubl.replace('M&#252;ller &amp; S', 'M&#252;ller\n      &amp; S'), ofUbl],
  ['a text with an element and an instruction', ubl.replace('&amp; S&#246;hne', '<b>&amp;</b> <?x y?>S&#246;hne'), ofUbl],
  [
    'a note with a document type',
    ubl.replace('<cbc:IssueDate>', '<cbc:Note><![CDATA[<!DOCTYPE html><p>]]></cbc:Note><cbc:IssueDate>'),
    ofUbl,
  ],
  ['another prefix', ubl.replaceAll('cbc:', 'x:').replace('xmlns:cbc', 'xmlns:x'), ofUbl],
  ['a credit note', ubl.replaceAll('ubl:Invoice', 'ubl:CreditNote').replace('Invoice-2', 'CreditNote-2'), ofUbl],
  [
    'an invoice without a registered name',
    ubl.replace(/<cac:PartyLegalEntity>.*<\/cac:PartyLegalEntity>/, ''),
    { ...ofUbl, seller: 'Müller' },
  ],
  ['a Cross Industry Invoice', cii, ofCii],
  ['ZUGFeRD 1.0', zugferd1, ofZugferd1],
  [
    'the release candidate of ZUGFeRD 1.0',
    zugferd1
      .replaceAll('rsm:CrossIndustryDocument', 'rsm:Invoice')
      .replace('"urn:ferd:CrossIndustryDocument:invoice:1p0"', '"urn:un:unece:uncefact:data:standard:CBFBUY:5"'),
    ofZugferd1,
  ],
  ['a PDF of ZUGFeRD 1.0', pdfWith(Buffer.from(zugferd1), { name: 'ZUGFeRD-invoice.xml' }), ofZugferd1],
  ['a PDF of Factur-X', pdfWith(Buffer.from(cii)), ofCii],
  ['a PDF with a compressed invoice', pdfWith(deflateSync(cii), { filter: '/Filter /FlateDecode' }), ofCii],
  ['a PDF of ZUGFeRD 2.0', pdfWith(Buffer.from(cii), { name: 'zugferd-invoice.xml' }), ofCii],
  ['a PDF whose invoice has another name', pdfWith(Buffer.from(ubl), { name: 'UBL-Invoice-2.1.xml' }), ofUbl],
  ['a PDF whose invoice says by its type that it is XML', pdfWith(Buffer.from(ubl), { name: 'invoice.att' }), ofUbl],
  ['a PDF whose invoice has a path', pdfWith(Buffer.from(cii), { name: 'c:/temp/FACTUR-X.XML' }), ofCii],
  ['a PDF of XRechnung', pdfWith(Buffer.from(ubl), { name: 'xrechnung.xml' }), ofUbl],
])('%s is recognised', async (_, data, expected) => {
  expect(await read(data)).toEqual(expected)
})

const notInNames: [place: string, options: Parameters<typeof pdfWith>[1]][] = [
  ['associated with the document', { names: '/AF [4 0 R]' }],
  ['associated with the document, in a list of its own', { names: '/AF 6 0 R', objects: ['[4 0 R]'] }],
  ['associated with the page', { names: '', page: '/AF [4 0 R]' }],
  ['pinned to the page', { names: '', page: '/Annots [<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 20 20] /FS 4 0 R >>]' }],
  ['associated with an annotation', { names: '', page: '/Annots [<< /Type /Annot /Subtype /Text /Rect [9 9 20 20] /AF [4 0 R] >>]' }],
  [
    'associated with a picture of the page',
    {
      names: '',
      page: '/Resources << /XObject << /X 6 0 R >> >>',
      objects: ['<< /Type /XObject /Subtype /Form /BBox [0 0 1 1] /AF [4 0 R] /Length 0 >>\nstream\n\nendstream'],
    },
  ],
  ['associated with a part of the structure', { names: '/StructTreeRoot << /K [<< /S /Document /AF [4 0 R] >>] >>' }],
  ['associated with the document, without a list of its own', { names: '/AF 4 0 R' }],
  [
    'in a file specification of PDF 1.2',
    {
      names: '/AF [6 0 R]',
      objects: ['<< /Type /Filespec /Unix (factur-x.xml) /EF << /Unix 5 0 R >> >>'],
    },
  ],
  [
    'listed and associated, by two specifications',
    {
      name: 'invoice.xml',
      names: '/AF [6 0 R] /Names << /EmbeddedFiles << /Names [(invoice.xml) 4 0 R] >> >>',
      objects: ['<< /Type /Filespec /F (invoice.xml) /EF << /F 5 0 R >> >>'],
    },
  ],
]

test.each(notInNames)('an invoice in a PDF is found: %s', async (_, options) => {
  expect(await read(pdfWith(Buffer.from(cii), options))).toEqual(ofCii)
})

test('a PDF without end is no invoice, and ends', async () => {
  const circle = ['[7 0 R 6 0 R]', '<< /A 6 0 R /B 7 0 R /Kids [7 0 R] >>']
  expect(await read(pdfWith(Buffer.from(cii), { names: '/AF 6 0 R /Names 7 0 R', objects: circle }))).toEqual({
    problem: 'the PDF contains no electronic invoice',
  })
})

const soap = 'http://schemas.xmlsoap.org/soap/envelope/'

test.each([
  ['another text', 'hello', 'the document is neither XML nor a PDF'],
  ['nothing', '', 'the document is neither XML nor a PDF'],
  ['another XML', '<order><ID>1</ID></order>', 'the XML is no invoice of a known format: its root is the element order'],
  ['an invoice without anything', '<Invoice/>', 'the XML is no invoice of a known format: its root is the element Invoice'],
  [
    'an invoice of another vocabulary',
    '<Invoice xmlns="urn:sfti:documents:BasicInvoice:1:0"><ID>15</ID></Invoice>',
    'the XML is no invoice of a known format: its root is the element Invoice of urn:sfti:documents:BasicInvoice:1:0',
  ],
  [
    'a report on an invoice',
    `<report xmlns="urn:x">${ubl.replace(/^<\?xml.*\n/, '')}</report>`,
    'the XML is no invoice of a known format: its root is the element report of urn:x',
  ],
  [
    'an envelope without an invoice',
    `<s:Envelope xmlns:s="${soap}"><s:Body><a>AAAAAAAAAAAAAAAAAAAAAAAAAAAA</a></s:Body></s:Envelope>`,
    `the XML contains no invoice of a known format: its root is the element Envelope of ${soap}`,
  ],
  ['a comment', '<!-- an invoice -->', 'the XML has no element'],
  ['a PDF without a file', pdfWith(Buffer.from(cii), { names: '' }), 'the PDF contains no electronic invoice'],
  [
    'a PDF with another file',
    pdfWith(Buffer.from(cii), { name: 'notes.txt', type: 'text#2Fplain' }),
    'the PDF contains no electronic invoice',
  ],
  ['a PDF with another XML', pdfWith(Buffer.from('<order/>'), { name: 'notes.xml' }), 'the PDF contains no electronic invoice'],
  [
    'a PDF whose invoice has another vocabulary',
    pdfWith(Buffer.from('<order/>')),
    'the file factur-x.xml in the PDF is not read: the XML is no invoice of a known format: its root is the element order',
  ],
  ['a PDF whose invoice is empty', pdfWith(Buffer.alloc(0)), 'the file factur-x.xml in the PDF is not read: it is empty'],
])('%s says that it is no invoice', async (_, data, problem) => {
  expect(await read(data)).toEqual({ problem })
})

test('an element with a long or hostile name is named as one short line', async () => {
  const { problem } = await read(`<${'x'.repeat(10_000)}/>`)
  expect(problem!.length).toBeLessThan(200)
  const file = pdfWith(Buffer.alloc(0), { name: `${'\\n'.repeat(50)}${'x'.repeat(5_000)}.xml` })
  const { problem: ofFile } = await read(file)
  expect(ofFile).toMatch(/^the file x+\.\.\. in the PDF is not read: it is empty$/)
})

const entities = Array.from({ length: 12 }, (_, index) => `<!ENTITY e${index + 1} "${`&e${index};`.repeat(10)}">`).join('')
const bomb = `<?xml version="1.0"?><!DOCTYPE i [<!ENTITY e0 "x">${entities}]><Invoice><ID>&e12;</ID></Invoice>`

test.each([
  ['entities that expand without end', bomb, 'document type declaration'],
  [
    'an external entity',
    '<!doctype i [<!ENTITY e SYSTEM "file:///etc/passwd">]><Invoice><ID>&e;</ID></Invoice>',
    'document type declaration',
  ],
  ['elements that are nested too deeply', `<Invoice>${'<a>'.repeat(200_000)}${'</a>'.repeat(200_000)}</Invoice>`, 'cannot be read'],
  ['XML that is too large', `<Invoice><ID>${'x'.repeat(15_000_001)}</ID></Invoice>`, 'more than 15000000 bytes'],
  ['a PDF that is cut off', pdfWith(Buffer.from(cii)).subarray(0, 250), 'the PDF is damaged, and contains no electronic invoice'],
  ['a PDF of noise', Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(100_000, 7)]), 'cannot be read'],
  [
    'an encrypted PDF',
    pdfWith(Buffer.from(cii), {
      trailer: `/ID [<00><00>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >>`,
    }),
    'is encrypted',
  ],
  [
    'an encoding that nobody knows',
    latin1(ubl.replace('M&#252;ller', 'M\u00fcller'), 'EBCDIC-DE'),
    'the encoding EBCDIC-DE, which is not known',
  ],
  [
    'a PDF that collects invoices',
    pdfWith(Buffer.from(cii), {
      name: 'a.xml',
      names: '/Names << /EmbeddedFiles << /Names [(a.xml) 4 0 R (b.xml) 6 0 R] >> >>',
      objects: [
        '<< /Type /Filespec /F (b.xml) /EF << /F 7 0 R >> >>',
        `<< /Type /EmbeddedFile /Length ${cii.length} >>\nstream\n${cii}\nendstream`,
      ],
    }),
    'several invoices',
  ],
  ['a PDF whose invoice cannot be decoded', pdfWith(Buffer.from('no zlib'), { filter: '/Filter /FlateDecode' }), 'cannot be decoded'],
  ['a PDF whose invoice has an unknown filter', pdfWith(Buffer.from(cii), { filter: '/Filter /ZipDecode' }), 'cannot be decoded'],
  ['a PDF whose invoice is hostile', pdfWith(Buffer.from(bomb)), 'document type declaration'],
])('%s: says so, and has no fields', async (_, data, problem) => {
  expect(await read(data)).toEqual({ problem: expect.stringContaining(problem) })
})

const withoutDeclaration = ubl.replace(/^<\?xml.*\n/, '')
const header = 'http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader'

test.each([
  [
    'SOAP',
    `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><send xmlns="urn:x">${withoutDeclaration}</send></s:Body></s:Envelope>`,
  ],
  [
    'the header of UN/CEFACT',
    `<StandardBusinessDocument xmlns="${header}"><StandardBusinessDocumentHeader><HeaderVersion>1.0</HeaderVersion></StandardBusinessDocumentHeader>${withoutDeclaration}</StandardBusinessDocument>`,
  ],
  ['a text', `<AttachedDocument xmlns="urn:x"><Attachment><Description><![CDATA[${ubl}]]></Description></Attachment></AttachedDocument>`],
  ['base64', `<XHE xmlns="urn:x"><Payload><Content>${Buffer.from(ubl).toString('base64')}</Content></Payload></XHE>`],
])('an invoice in an envelope is read: %s', async (_, data) => {
  expect(await read(data)).toEqual(ofUbl)
})

test.each(['ISO-8859-1', 'iso-8859-15', 'windows-1252', 'latin1'])('an invoice in %s is read', async (encoding) => {
  const inAscii = /&#(\d+);/g
  const text = ubl.replaceAll(inAscii, (_, code: string) => String.fromCharCode(Number(code)))
  expect(await read(latin1(text, encoding))).toEqual(ofUbl)
  expect(await read(pdfWith(latin1(text, encoding)))).toEqual(ofUbl)
})

test('UTF-16 without a byte order mark is read', async () => {
  const data = Buffer.from(ubl.replace('"UTF-8"', '"UTF-16"'), 'utf16le')
  expect(await read(data)).toEqual(ofUbl)
  expect(await read(data.swap16())).toEqual(ofUbl)
})

test('a value that is not in UTF-8 is lost, and says so; U+FFFD in the file is a character', async () => {
  const { seller, ...others } = ofUbl
  expect(await read(latin1(ubl.replace('M&#252;ller &amp;', 'M\u00fcller &amp;'), 'UTF-8'))).toEqual({
    ...others,
    lost: { seller: 'is not in UTF-8' },
  })
  expect(await read(ubl.replace('M&#252;ller &amp;', 'M\ufffdller &amp;'))).toEqual({
    ...others,
    seller: seller.replace('\u00fc', '\ufffd'),
  })
})

test('the name of a seller may be longer than other fields', async () => {
  const found = await read(ubl.replace('M&#252;ller &amp;', 'x'.repeat(600)))
  expect(found.seller).toHaveLength(500)
})

test('names of elements are no names of properties', async () => {
  const hostile = '<Invoice><__proto__><ID>1</ID></__proto__><constructor>2</constructor><ID><toString>3</toString></ID></Invoice>'
  const found = await read(hostile)
  expect(found).not.toHaveProperty('invoice_number')
  expect(({} as Record<string, unknown>)['ID']).toBeUndefined()
})
