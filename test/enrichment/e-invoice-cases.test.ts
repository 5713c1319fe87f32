import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readFields } from '../../src/enrichment/answer.ts'
import { readEInvoice } from '../../src/enrichment/e-invoice.ts'
import { callOf } from '../../src/enrichment/settings.ts'

// The folder `cases` has one small invoice for each way in which real files differ. They were made for these tests, so they are under the
// licence of this repository. A title is what the file has that others do not.

const folder = join(import.meta.dirname, 'cases')

const usual = {
  invoice_number: 'RE-4711',
  seller: 'Müller GmbH',
  total: '1190.00',
  currency: 'EUR',
  profile: 'urn:cen.eu:en16931:2017',
}

/** The values that differ from the usual ones: null if the file has none that is valid. A file with null is not well-formed. */
const cases: [file: string, title: string, differing: Partial<Record<keyof typeof usual, string | null>> | null][] = [
  ['blank-before-decl.xml', 'newline before declaration (not well-formed, common)', {}],
  ['cdata-doctype.xml', 'a note in HTML within CDATA', {}],
  ['cdata-entity.xml', 'an entity in CDATA is text', { seller: 'A &amp; B' }],
  ['cdata-mixed.xml', 'text and CDATA', { seller: 'Müller & Söhne KG' }],
  ['cdata-whole.xml', 'CDATA', { seller: 'Müller & Söhne' }],
  ['comment-first.xml', 'comment before root', {}],
  ['comment-in-id.xml', 'comment within text', {}],
  ['emoji-ref.xml', 'references above FFFF', { seller: 'Café 😀' }],
  ['enc-ISO-8859-1.xml', 'declared encoding', {}],
  ['enc-latin1.xml', 'declared encoding', {}],
  ['enc-utf16be-bom.xml', 'UTF-16 big endian with BOM', {}],
  ['enc-utf8-undeclared.xml', 'no declaration', {}],
  ['enc-windows-1252.xml', 'declared encoding', {}],
  ['escaped-doctype.xml', 'escaped', {}],
  ['fffd-seller.xml', 'the file itself has U+FFFD', { seller: 'M�ller GmbH' }],
  ['greek-seller.xml', 'other scripts', { seller: 'Ελληνική Εταιρεία 株式会社 ООО' }],
  ['id-attr.xml', 'attributes', {}],
  ['id-empty-then.xml', 'empty', { invoice_number: null }],
  [
    'long-seller.xml',
    'BT-27 of 259 characters',
    {
      seller:
        'Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft Gesellschaft',
    },
  ],
  ['named-entity.xml', 'not well-formed (no DTD)', null],
  ['newline-seller.xml', 'wrapped by a pretty-printer', {}],
  ['nul-ref.xml', 'not well-formed; must not break', null],
  ['pdf-af-only.pdf', 'only /AF of the catalog (no name tree)', {}],
  ['pdf-backslash.pdf', 'name with backslashes', {}],
  ['pdf-bad-startxref.pdf', 'wrong startxref (viewers repair it)', {}],
  ['pdf-bom-xml.pdf', 'BOM in the attachment', {}],
  ['pdf-decoys.pdf', 'other attachments first (mustangproject#709)', {}],
  ['pdf-enc-empty-user.pdf', 'AES-256, opens without a password', {}],
  ['pdf-enc-r3.pdf', 'plain', {}],
  ['pdf-enc-r4.pdf', 'AES-128, opens without a password', {}],
  ['pdf-kids.pdf', 'name tree with Kids (pypdf#3104)', {}],
  ['pdf-latin1-xml.pdf', 'latin-1 XML within (ZUV#25)', {}],
  ['pdf-leading-junk.pdf', '600 bytes before %PDF', {}],
  ['pdf-linear.pdf', 'linearized', {}],
  ['pdf-no-eof.pdf', 'no startxref (viewers repair it)', {}],
  ['pdf-no-uf.pdf', 'F only', {}],
  ['pdf-objstm.pdf', 'object streams', {}],
  ['pdf-other-name.pdf', 'another name: not ZUGFeRD by the standard', {}],
  ['pdf-path.pdf', 'name with a path (mustangproject#211)', {}],
  ['pdf-plain.pdf', 'plain', {}],
  ['pdf-trailing-junk.pdf', 'trailing zeros', {}],
  ['pdf-upper.pdf', 'upper case', {}],
  ['pi-first.xml', 'stylesheet', {}],
  ['surrogate-ref.xml', 'not well-formed; must not break', null],
  ['total-0.xml', "total '+1190.00': xs:decimal", {}],
  ['total-1.xml', "'1.19E3': no xs:decimal", { total: null }],
  ['total-2.xml', "total '.50': xs:decimal", { total: '0.50' }],
  ['total-4.xml', "'1,190.00': no xs:decimal", { total: null }],
  ['total-5.xml', "total '-100.00': xs:decimal", { total: '-100.00' }],
  ['total-6.xml', "total '1190.00\\n ': xs:decimal", {}],
  ['total-7.xml', "total '0': xs:decimal", { total: '0' }],
  ['total-8.xml', "total '12345678901234567890.12': xs:decimal", { total: '12345678901234567890.12' }],
  ['uppercase-decl.xml', 'single quotes', {}],
  ['xml11.xml', 'XML 1.1', {}],
  ['zugferd1.xml', 'ZUGFeRD 1.0', { profile: 'urn:ferd:CrossIndustryDocument:invoice:1p0:comfort' }],
]

const { fields } = callOf({ kind: 'e_invoice', name: 'e_invoice' })

/** Returns the fields that the step stores. */
const fieldsOf = async (file: string) => {
  const read = await readEInvoice({ data: new Uint8Array(readFileSync(join(folder, file))) })
  return { read, values: readFields({ text: JSON.stringify(read), fields }).values }
}

test.each(cases)('%s is read as it should be: %s', async (file, _, differing) => {
  const { read, values } = await fieldsOf(file)
  if (differing === null) {
    expect(JSON.stringify(read).isWellFormed()).toBe(true)
    return
  }
  const expected = Object.entries({ ...usual, ...differing }).filter(([, value]) => value !== null)
  expect(values).toEqual(Object.fromEntries(expected))
})

test('every file of the folder is a case', () => {
  expect(readdirSync(folder).toSorted()).toEqual(cases.map(([file]) => file).toSorted())
})
