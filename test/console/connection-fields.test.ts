import { connectionFields, defaultPathTemplate, settingsOf } from '../../console/connection-fields.ts'
import { textsOf, type Texts } from '../../console/form.ts'
import { fieldsOf, type JsonSchema } from '../../console/schema-form.ts'
import { describeRequests } from '../../src/api/console/request-schemas.ts'
import { connectionSettings, connectionSettingsFields } from '../../src/domain/connection-settings.ts'

const all = fieldsOf(describeRequests()['POST /connections'] as JsonSchema)
const fields = connectionFields(all, { isNew: true })
const settingsIn = (texts: Texts) => settingsOf(fields, texts)

test('what is not filled in is left to the default', () => {
  expect(settingsIn(textsOf(fields))).toEqual({})
  expect(connectionSettings({}).pathTemplate).toBe(defaultPathTemplate(all))
})

test('settings stay the same when they are edited and nothing is changed', () => {
  const settings = {
    on_resume: 'skip',
    path_template: '{repo_id}/{doc_id}-{comp_id}.{ext}',
    properties: { Vendor: '{meta.vendor_name}', 'Invoice number': 'No: {erp_object_id}' },
    filter: {
      content_types: ['application/pdf', 'image/tiff'],
      comp_ids: ['data', 'a b.pdf'],
      min_bytes: 0,
      max_bytes: 5_000_000,
      fields: { company_code: ['1000', '2000'], kind: 'RE' },
    },
  }
  expect(connectionSettingsFields.parse(settings)).toEqual(settings)
  expect(settingsIn(textsOf(fields, { settings }))).toEqual(settings)
})

test('lists are separated by commas, and content types by blanks, too', () => {
  const texts = {
    ...textsOf(fields),
    'settings.filter.content_types': ' application/pdf,image/tiff  text/plain, ',
    'settings.filter.comp_ids': 'data, my file.pdf,',
  }
  expect(settingsIn(texts)).toEqual({
    filter: { content_types: ['application/pdf', 'image/tiff', 'text/plain'], comp_ids: ['data', 'my file.pdf'] },
  })
})
