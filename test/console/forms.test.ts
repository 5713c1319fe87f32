import { readMetadata } from '../../console/audit-changes.ts'
import { readNumber } from '../../console/form-values.ts'
import { readSettings, textsOfSettings, type Settings, type SettingsTexts } from '../../console/settings-form.ts'
import { changeSettings, settingsPatchFields, workspaceSettings, workspaceSettingsFields } from '../../src/domain/settings.ts'
import { toCamelCase, toSnakeCase } from '../../src/domain/casing.ts'

const defaults = { ...(toSnakeCase(workspaceSettingsFields, workspaceSettings({})) as object), tier: 'standard' } as Settings

/** Reads the form after some fields have been filled in. */
const fill = (change: (texts: SettingsTexts) => void, current: Settings = defaults) => {
  const texts = textsOfSettings(current)
  change(texts)
  return readSettings(texts, current)
}

test('a form that nobody has touched changes nothing', () => {
  expect(fill(() => {})).toEqual({ change: {} })
  const rfc = { url: 'https://erp.example', client: '100', allowed_functions: ['Z_A', 'Z_B'] }
  expect(fill(() => {}, { ...defaults, rfc, content_days: 30, receiver_allowed_cidrs: ['10.0.0.0/8'] })).toEqual({ change: {} })
})

test('only what differs is sent', () => {
  const read = fill((texts) => {
    texts.numbers.max_retries = ' 3 '
    texts.numbers.content_days = '90'
    texts.allowedCidrs = '10.0.0.0/8\n\n fd00::/8 '
  })
  expect(read).toEqual({ change: { max_retries: 3, content_days: 90, receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'] } })
  expect(fill((texts) => void (texts.numbers.content_days = ''), { ...defaults, content_days: 90 })).toEqual({
    change: { content_days: null },
  })
})

test.each<[string, (texts: SettingsTexts) => void, object]>([
  ['too many retries', ({ numbers }) => void (numbers.max_retries = '101'), { max_retries: 'tooLarge' }],
  ['a shorter audit log', ({ numbers }) => void (numbers.audit_days = '364'), { audit_days: 'tooSmall' }],
  ['no number', ({ numbers }) => void (numbers.captured_bodies_days = 'seven'), { captured_bodies_days: 'notANumber' }],
  ['an empty field', ({ numbers }) => void (numbers.retry_ttl_seconds = ''), { retry_ttl_seconds: 'required' }],
  [
    'a wait over the longest',
    ({ numbers }) => void (numbers.retry_initial_interval_seconds = '3601'),
    { retry_initial_interval_seconds: 'orderOfWaits' },
  ],
  [
    'a time that ends before the second attempt',
    ({ numbers }) => void (numbers.retry_ttl_seconds = '9'),
    { retry_ttl_seconds: 'ttlTooShort' },
  ],
])('%s is refused before it is sent, and the relay refuses it, too', (_, change, problems) => {
  expect(fill(change)).toEqual({ problems })
  const texts = textsOfSettings(defaults)
  change(texts)
  const [name] = Object.keys(problems) as [keyof SettingsTexts['numbers']]
  const text = texts.numbers[name]
  const parsed = settingsPatchFields.safeParse({ [name]: /^\d+$/.test(text) ? Number(text) : text })
  const isRefused = !parsed.success || changeSettings({}, toCamelCase(settingsPatchFields, parsed.data), 'standard').issues.length > 0
  expect(isRefused).toBe(true)
})

test('in the compliance tier, the retention of the audit log is not sent', () => {
  const compliance: Settings = { ...defaults, tier: 'compliance', audit_days: null }
  expect(fill(({ numbers }) => void (numbers.max_retries = '5'), compliance)).toEqual({ change: { max_retries: 5 } })
})

describe('the bridge', () => {
  const rfc = { url: 'https://erp.example', client: '100', language: 'EN', allowed_functions: ['Z_A'] }
  const on: Settings = { ...defaults, rfc }

  test('is switched on with all its values, and off with null', () => {
    const read = fill((texts) => {
      texts.isBridgeOn = true
      Object.assign(texts.rfc, { url: rfc.url, client: '100', allowed_functions: 'Z_A\nZ_B', user: 'RELAY', password: 'p' })
    })
    expect(read).toEqual({
      change: { rfc: { url: rfc.url, client: '100', allowed_functions: ['Z_A', 'Z_B'], credentials: { user: 'RELAY', password: 'p' } } },
    })
    expect(fill((texts) => void (texts.isBridgeOn = false), on)).toEqual({ change: { rfc: null } })
  })

  test('keeps the credentials that are stored unless new ones are given', () => {
    expect(fill((texts) => void (texts.rfc.client = '200'), on)).toEqual({ change: { rfc: { client: '200' } } })
    expect(fill((texts) => void (texts.rfc.password = 'new'), on)).toEqual({
      change: { rfc: { credentials: { user: '', password: 'new' } } },
    })
  })
})

test('a number is whole and within its bounds', () => {
  expect(['', '-1', '1.5', '0', '10', '11', '1e1'].map((text) => readNumber(text, { min: 0, max: 10 }))).toEqual([
    { problem: 'required' },
    { problem: 'tooSmall' },
    { problem: 'notANumber' },
    { value: 0 },
    { value: 10 },
    { problem: 'tooLarge' },
    { problem: 'notANumber' },
  ])
  expect(readNumber('', { min: 1 }, true)).toEqual({ value: null })
})

test('the metadata of an audit log entry are its changes, the key, and the rest', () => {
  const metadata = { before: { max_retries: 10, gone: 'x' }, after: { max_retries: 3, list: ['a'] }, key_id: 'K1', repo_id: 'Z1', count: 2 }
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
  })
  expect(readMetadata({ name: 'A' })).toEqual({ changes: [], others: [['name', 'A']], keyId: undefined })
})
