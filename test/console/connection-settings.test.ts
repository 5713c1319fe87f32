import { defaultPathTemplate, settingsFields, settingsOf } from '../../console/connection-settings.ts'
import { textsOf } from '../../console/form.ts'
import { connectionSettings, connectionSettingsFields } from '../../src/domain/connection-settings.ts'

test('what is not filled in is left to the default', () => {
  expect(settingsOf(textsOf(settingsFields))).toEqual({})
  expect(connectionSettings({}).pathTemplate).toBe(defaultPathTemplate)
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
  expect(settingsOf(textsOf(settingsFields, { settings }))).toEqual(settings)
})

test('lists are separated by commas, and content types by blanks, too', () => {
  const texts = {
    ...textsOf(settingsFields),
    'settings.filter.content_types': ' application/pdf,image/tiff  text/plain, ',
    'settings.filter.comp_ids': 'data, my file.pdf,',
  }
  expect(settingsOf(texts)).toEqual({
    filter: { content_types: ['application/pdf', 'image/tiff', 'text/plain'], comp_ids: ['data', 'my file.pdf'] },
  })
})
