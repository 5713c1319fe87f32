import { readMetadata } from '../../console/audit-changes.ts'
import { changedValues, fieldAt, newValues, textsOf, withWhole, type Texts } from '../../console/form.ts'
import { fieldsOf, type JsonSchema } from '../../console/schema-form.ts'
import { checkSettings, settingsFields, type Settings } from '../../console/settings-form.ts'
import { describeRequests } from '../../src/api/console/request-schemas.ts'
import { toCamelCase, toSnakeCase } from '../../src/domain/casing.ts'
import { changeSettings, settingsPatchFields, workspaceSettings, workspaceSettingsFields } from '../../src/domain/settings.ts'

const defaults = { ...(toSnakeCase(workspaceSettingsFields, workspaceSettings({})) as object), tier: 'standard' } as Settings

const all = fieldsOf(describeRequests()['PATCH /settings'] as JsonSchema)

/** Reads the form of the settings after some texts have been entered. */
const fill = (entered: Texts, current: Settings = defaults) => {
  const fields = settingsFields(all, current)
  const first = textsOf(fields, current)
  const texts = { ...first, ...entered }
  const { values, problems } = changedValues(fields, texts, first)
  return { change: values, problems: { ...checkSettings(newValues(fields, texts).values), ...problems } }
}
const changed = (entered: Texts, current?: Settings) => {
  const { change, problems } = fill(entered, current)
  expect(problems).toEqual({})
  return change
}

test('a form that nobody has touched changes nothing', () => {
  expect(changed({})).toEqual({})
  const rfc = { url: 'https://erp.example', client: '100', allowed_functions: ['Z_A', 'Z_B'] }
  expect(changed({}, { ...defaults, rfc, content_days: 30, receiver_allowed_cidrs: ['10.0.0.0/8'] })).toEqual({})
})

test('only what differs is sent', () => {
  expect(changed({ max_retries: ' 3 ', content_days: '90', receiver_allowed_cidrs: '10.0.0.0/8\n\n fd00::/8 ' })).toEqual({
    max_retries: 3,
    content_days: 90,
    receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'],
  })
  expect(changed({ max_retries: ' 10 ' })).toEqual({})
  expect(changed({ content_days: '' }, { ...defaults, content_days: 90 })).toEqual({ content_days: null })
  expect(changed({ receiver_allowed_cidrs: '' }, { ...defaults, receiver_allowed_cidrs: ['10.0.0.0/8'] })).toEqual({
    receiver_allowed_cidrs: [],
  })
})

test.each([
  ['too many retries', 'max_retries', '101', 'range'],
  ['a shorter audit log', 'audit_days', '364', 'range'],
  ['no number', 'captured_bodies_days', 'seven', 'number'],
  ['a fraction', 'captured_bodies_days', '1.5', 'integer'],
  ['an empty field', 'retry_ttl_seconds', '', 'required'],
  ['a wait over the longest', 'retry_initial_interval_seconds', '3601', 'orderOfWaits'],
  ['a time that ends before the second attempt', 'retry_ttl_seconds', '9', 'ttlTooShort'],
] as const)('%s is refused before it is sent, and the relay refuses it, too', (_, name, text, problem) => {
  expect(fill({ [name]: text }).problems).toEqual({ [name]: problem })
  const parsed = settingsPatchFields.safeParse({ [name]: /^[\d.]+$/.test(text) ? Number(text) : text })
  const isRefused = !parsed.success || changeSettings({}, toCamelCase(settingsPatchFields, parsed.data), 'standard').issues.length > 0
  expect(isRefused).toBe(true)
})

test('in the compliance tier, the retention of the audit log is not sent', () => {
  const compliance: Settings = { ...defaults, tier: 'compliance', audit_days: null }
  expect(changed({ max_retries: '5' }, compliance)).toEqual({ max_retries: 5 })
})

describe('the bridge', () => {
  const rfc = { url: 'https://erp.example', client: '100', language: 'EN', allowed_functions: ['Z_A'], ca_certificate: 'PEM' }
  const on: Settings = { ...defaults, rfc }

  test('is switched on with all its values, and off with null', () => {
    const entered = {
      rfc: 'true',
      'rfc.url': rfc.url,
      'rfc.client': '100',
      'rfc.allowed_functions': 'Z_A\nZ_B',
      'rfc.credentials.user': 'RELAY',
      'rfc.credentials.password': ' p',
    }
    expect(changed(entered)).toEqual({
      rfc: { url: rfc.url, client: '100', allowed_functions: ['Z_A', 'Z_B'], credentials: { user: 'RELAY', password: ' p' } },
    })
    expect(fill({ rfc: 'true' }).problems).toEqual({ 'rfc.url': 'required', 'rfc.client': 'required' })
    expect(changed({ rfc: 'false' }, on)).toEqual({ rfc: null })
    // What was entered while it was on is not sent.
    expect(changed({ ...entered, rfc: 'false' }, on)).toEqual({ rfc: null })
  })

  test('keeps the credentials that are stored unless new ones are given, which must be complete', () => {
    expect(changed({ 'rfc.client': '200', 'rfc.ca_certificate': '' }, on)).toEqual({ rfc: { client: '200', ca_certificate: '' } })
    expect(changed({ 'rfc.credentials.user': 'B', 'rfc.credentials.password': 'new' }, on)).toEqual({
      rfc: { credentials: { user: 'B', password: 'new' } },
    })
    expect(fill({ 'rfc.credentials.password': 'new' }, on).problems).toEqual({ 'rfc.credentials.user': 'required' })
  })
})

test('a number is whole and within its bounds', () => {
  const read = (text: string, more: object = {}) => {
    const { values, problems } = newValues(
      [fieldAt('it', 'number', { isRequired: true, isInteger: true, minimum: 0, maximum: 10, ...more })],
      {
        it: text,
      },
    )
    return problems['it'] ?? values['it']
  }
  expect(['', '-1', '1.5', '0', '10', '11', '1e1', '0x1', '1,5'].map((text) => read(text))).toEqual([
    'required',
    'range',
    'integer',
    0,
    10,
    'range',
    'number',
    'number',
    'number',
  ])
  expect(read('', { isRequired: false })).toBeUndefined()
})

test('values are found and put at their paths', () => {
  const fields = [fieldAt('name', 'text'), fieldAt('config.url', 'text'), fieldAt('config.to', 'checks'), fieldAt('is_active', 'switch')]
  const values = { name: 'A', config: { url: 'https://a.example', to: ['b', 'c'] }, is_active: false }
  const texts = textsOf(fields, values)
  expect(texts).toEqual({ name: 'A', 'config.url': 'https://a.example', 'config.to': 'b\nc', is_active: 'false' })
  expect(newValues(fields, texts)).toEqual({ values, problems: {} })
  expect(changedValues(fields, { ...texts, 'config.url': '', is_active: 'true' }, texts)).toEqual({
    values: { config: { url: null }, is_active: true },
    problems: {},
  })
})

test('an object that the API replaces is sent whole', () => {
  const fields = [fieldAt('name', 'text'), fieldAt('http', 'object'), fieldAt('http.url', 'text'), fieldAt('http.headers', 'pairs')]
  const stored = textsOf(fields, { name: 'A', http: { url: 'https://a.example', headers: { a: '1' } } })
  const body = (entered: Texts) => {
    const texts = { ...stored, ...entered }
    return withWhole(changedValues(fields, texts, stored).values, ['http'], fields, texts)
  }
  expect(body({ name: 'B' })).toEqual({ name: 'B' })
  expect(body({ 'http.headers': 'b: 2' })).toEqual({ http: { url: 'https://a.example', headers: { b: '2' } } })
  expect(body({ 'http.headers': '' })).toEqual({ http: { url: 'https://a.example' } })
})

test('the metadata of an audit log entry are its changes, the key or person, and the rest', () => {
  const metadata = {
    before: { max_retries: 10, gone: 'x' },
    after: { max_retries: 3, list: ['a'] },
    key_id: 'K1',
    key_name: 'CI',
    repo_id: 'Z1',
    count: 2,
  }
  expect(readMetadata(metadata)).toEqual({
    changes: [
      { name: 'max_retries', before: '10', after: '3' },
      { name: 'gone', before: 'x', after: undefined },
      { name: 'list', before: undefined, after: '["a"]' },
    ],
    others: [
      ['repo_id', 'Z1'],
      ['count', '2'],
    ],
    keyId: 'K1',
    keyName: 'CI',
  })
  expect(readMetadata({ person_id: 'P1', person_name: 'ada@example.com' })).toMatchObject({
    others: [],
    personId: 'P1',
    personName: 'ada@example.com',
  })
  expect(readMetadata({ name: 'A' })).toEqual({ changes: [], others: [['name', 'A']], keyId: undefined, keyName: undefined })
})
