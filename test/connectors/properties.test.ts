import { propertyRulesOf } from '../../src/connectors/index.ts'
import { propertiesOf } from '../../src/connectors/target.ts'
import type { TemplateDocument } from '../../src/domain/template.ts'

const document: TemplateDocument = {
  repoId: 'Z1',
  docId: 'D1',
  compId: 'data.pdf',
  contentType: 'application/pdf',
  erpObjectType: 'BKPF',
  erpObjectId: null,
  arObject: null,
  fileName: null,
  description: null,
  fields: { vendor_name: 'Müller & Söhne / GmbH', city: 'Straße 5, Łódź', long: '1'.repeat(200), blank: '?' },
  receivedAt: new Date('2026-03-02T10:15:30Z'),
}
const of = (kind: string, templates: Record<string, string>) => propertiesOf(propertyRulesOf(kind), templates, document)

test('a property is left out until every value in it is known', () => {
  const templates = {
    a: '{repo_id}/{ext}',
    b: '{erp_object_type}',
    c: '{erp_object_id}',
    d: '{meta.vendor_number}',
    e: '{meta.blank}-{ar_object}',
  }
  expect(of('directory', templates)).toEqual({ a: 'Z1/pdf', b: 'BKPF' })
})

test.each<[string, string, string]>([
  ['objstore', 'Müller _ Söhne / GmbH', 'Straße 5_ Łódź'],
  ['blob', 'Muller _ Sohne / GmbH', 'Strasse 5_ _odz'],
  ['teamsite', 'Müller & Söhne / GmbH', 'Straße 5, Łódź'],
  ['drive', 'Müller & Söhne / GmbH', 'Straße 5, Łódź'],
  ['sftp', 'Müller & Söhne / GmbH', 'Straße 5, Łódź'],
  ['directory', 'Müller & Söhne / GmbH', 'Straße 5, Łódź'],
])('%s gets what it accepts', (kind, vendor, city) => {
  expect(of(kind, { Vendor: '{meta.vendor_name}', City: '{meta.city}' })).toEqual({ Vendor: vendor, City: city })
})

test.each([
  ['objstore', 256],
  ['blob', 256],
  ['teamsite', 255],
  ['drive', 120],
  ['sftp', 1_000],
])('%s gets a long value cut', (kind, characters) => {
  expect(of(kind, { Long: '{meta.long}'.repeat(6) })['Long']).toHaveLength(characters)
})

test('a value of wide characters is cut between two of them', () => {
  const { Wide = '' } = propertiesOf(propertyRulesOf('drive'), { Wide: '{meta.wide}' }, { ...document, fields: { wide: '🧾'.repeat(100) } })
  expect(Wide).toBe('🧾'.repeat(30))
  const { Tag = '' } = propertiesOf(
    propertyRulesOf('teamsite'),
    { Tag: 'x{meta.wide}' },
    { ...document, fields: { wide: '🧾'.repeat(200) } },
  )
  expect(Tag).toBe(`x${'🧾'.repeat(127)}`)
})

test('mails and webhooks have no properties', () => {
  expect([of('email', { a: 'b' }), of('webhook', { a: 'b' })]).toEqual([{}, {}])
})
