import { deflateSync } from 'node:zlib'
import { readEInvoice } from '../../src/enrichment/e-invoice.ts'
import { cii, pdfWith, ubl } from './invoices.ts'

const read = (data: Buffer | string) => readEInvoice({ data: new Uint8Array(Buffer.from(data as string)) })

const ofUbl = {
  invoice_number: 'RE-4711',
  seller: 'Müller & Söhne GmbH',
  total: '1190.00',
  currency: 'EUR',
  profile: 'urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0',
}
const ofCii = { invoice_number: 'FX-0815', seller: 'Acme Ltd', total: '238.00', currency: 'EUR', profile: 'urn:factur-x.eu:1p0:basicwl' }

test.each([
  ['XRechnung in UBL', ubl, ofUbl],
  ['XRechnung in UBL with a byte order mark', `\ufeff${ubl}`, ofUbl],
  ['XRechnung in UBL in UTF-16', Buffer.from(`\ufeff${ubl}`, 'utf16le'), ofUbl],
  ['XRechnung in UBL in UTF-16, big endian', Buffer.from(`\ufeff${ubl}`, 'utf16le').swap16(), ofUbl],
  ['a text around CDATA and a comment', ubl.replace('&amp; S&#246;hne', '<![CDATA[& Söhne]]><!-- and sons -->'), ofUbl],
  ['a credit note', ubl.replaceAll('ubl:Invoice', 'ubl:CreditNote'), ofUbl],
  [
    'an invoice without a registered name',
    ubl.replace(/<cac:PartyLegalEntity>.*<\/cac:PartyLegalEntity>/, ''),
    { ...ofUbl, seller: 'Müller' },
  ],
  ['a Cross Industry Invoice', cii, ofCii],
  ['a PDF of Factur-X', pdfWith(Buffer.from(cii)), ofCii],
  ['a PDF with a compressed invoice', pdfWith(deflateSync(cii), { filter: '/Filter /FlateDecode' }), ofCii],
  ['a PDF of ZUGFeRD 2.0', pdfWith(Buffer.from(cii), { name: 'zugferd-invoice.xml' }), ofCii],
  ['a PDF of XRechnung', pdfWith(Buffer.from(ubl), { name: 'xrechnung.xml' }), ofUbl],
])('%s is recognised', async (_, data, expected) => {
  expect(await read(data)).toEqual(expected)
})

test.each([
  ['another text', 'hello'],
  ['nothing', ''],
  ['another XML', '<order><ID>1</ID></order>'],
  ['an invoice without anything', '<Invoice/>'],
  ['a PDF with another attachment', pdfWith(Buffer.from(cii), { name: 'notes.xml' })],
])('%s has no fields', async (_, data) => {
  expect(await read(data)).toEqual({})
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
  ['a PDF that is cut off', pdfWith(Buffer.from(cii)).subarray(0, 250), 'cannot be read'],
  ['a PDF of noise', Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(100_000, 7)]), 'cannot be read'],
  [
    'an encrypted PDF',
    pdfWith(Buffer.from(cii), {
      trailer: `/ID [<00><00>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >>`,
    }),
    'is encrypted',
  ],
  ['an invoice of ZUGFeRD 1.0', cii.replaceAll('CrossIndustryInvoice', 'CrossIndustryDocument'), 'ZUGFeRD 1.0'],
  ['a PDF whose invoice is hostile', pdfWith(Buffer.from(bomb)), 'document type declaration'],
])('%s: says so, and has no fields', async (_, data, problem) => {
  expect(await read(data)).toEqual({ problem: expect.stringContaining(problem) })
})

test('names of elements are no names of properties', async () => {
  const hostile = '<Invoice><__proto__><ID>1</ID></__proto__><constructor>2</constructor><ID><toString>3</toString></ID></Invoice>'
  const found = await read(hostile)
  expect(found).not.toHaveProperty('invoice_number')
  expect(({} as Record<string, unknown>)['ID']).toBeUndefined()
})
