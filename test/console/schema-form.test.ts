import { changedValues, newValues, placeDetails, textOf, textsOf } from '../../console/form.ts'
import { fieldsOf, signInField, signInPath, type JsonSchema, type SchemaField } from '../../console/schema-form.ts'
import { en as certificates } from '../../console/texts/certificates.ts'
import { en as connections } from '../../console/texts/connections.ts'
import * as fieldTexts from '../../console/texts/connector-fields.ts'
import { en as enrichments } from '../../console/texts/enrichments.ts'
import { en as apiKeys } from '../../console/texts/keys.ts'
import { en as notifications } from '../../console/texts/notifications.ts'
import { en as repositories } from '../../console/texts/repositories.ts'
import { en as settings } from '../../console/texts/settings.ts'
import { en as subscriptions } from '../../console/texts/subscriptions.ts'
import { presentConnectorType } from '../../src/api/connector-types.ts'
import { describeRequests, formOperations } from '../../src/api/console/request-schemas.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { testConfig } from '../support/factories.ts'

const connectors = createConnectors({ RELAY_DIRECTORY_ROOTS: [{ value: '/srv/archive' }] }).all
const schemas = new Map(
  connectors
    .map(presentConnectorType)
    .map(({ id, attributes: { configSchema, credentialsSchema } }) => [
      id,
      { config: configSchema as JsonSchema, credentials: credentialsSchema as JsonSchema },
    ]),
)

const textsOfExample = (fields: readonly SchemaField[], values: Record<string, unknown>) => ({
  ...textsOf(fields),
  ...Object.fromEntries(fields.filter(({ key }) => key in values).map((field) => [field.path, textOf(field, values[field.key])])),
})

describe.each(connectors.map((connector) => [connector.kind, connector] as const))('the form of %s', (kind, connector) => {
  const form = {
    config: fieldsOf(schemas.get(kind)!.config, 'config'),
    credentials: fieldsOf(schemas.get(kind)!.credentials, 'credentials'),
  }

  test('makes config and credentials of the example of the texts that stand for them', () => {
    const config = newValues(form.config, textsOfExample(form.config, connector.example.config))
    expect(config.problems).toEqual({})
    expect(connector.config.parse(config.values['config'])).toEqual(connector.config.parse(connector.example.config))
    const keys = Object.keys(connector.example.credentials)
    const signIn = schemas.get(kind)!.credentials['x-sign-in']?.find(({ required }) => required.some((key) => keys.includes(key)))
    const credentials = newValues(form.credentials, {
      ...textsOfExample(form.credentials, connector.example.credentials),
      [signInPath]: signIn?.name ?? 'none',
    })
    expect(credentials.problems).toEqual({})
    expect(credentials.values['credentials'] ?? {}).toEqual(connector.example.credentials)
  })

  test('requires what the schema requires, and nothing else', () => {
    for (const part of ['config', 'credentials'] as const) {
      const { values, problems } = newValues(form[part], textsOf(form[part]))
      expect(values).toEqual({})
      const schema = schemas.get(kind)![part]
      // What a way to sign in needs is required once that is chosen.
      const required = (schema.required ?? []).filter((key) => !schema['x-sign-in']?.some((signIn) => signIn.required.includes(key)))
      expect(problems).toEqual(Object.fromEntries(required.map((key) => [`${part}.${key}`, 'required'])))
    }
  })

  test('shows stored values, except secrets, and changes nothing by itself', () => {
    const stored = textsOf(form.config, { config: connector.example.config })
    expect(changedValues(form.config, stored, stored)).toEqual({ values: {}, problems: {} })
    const texts = textsOf(form.credentials, { credentials: connector.example.credentials })
    for (const { path } of form.credentials.filter(({ isSecret }) => isSecret)) expect(texts[path]).toBe('')
  })
})

test('only the fields of the chosen sign-in are a part of the request', () => {
  const schema = schemas.get('webhook')!.credentials
  expect(signInField(schema)).toMatchObject({ choices: ['none', 'bearer_token', 'basic', 'header', 'oauth2'], fallback: 'none' })
  const fields = fieldsOf(schema, 'credentials')
  const texts = { ...textsOf(fields), 'credentials.bearer_token': 'b', 'credentials.header_name': 'X-Key', 'credentials.secret': 's' }
  expect(newValues(fields, { ...texts, [signInPath]: 'bearer_token' }).values).toEqual({ credentials: { bearer_token: 'b', secret: 's' } })
  expect(newValues(fields, { ...texts, [signInPath]: 'header' })).toEqual({
    values: { credentials: { header_name: 'X-Key', secret: 's' } },
    problems: { 'credentials.header_value': 'required' },
  })
  expect(newValues(fields, { ...texts, [signInPath]: 'none' }).values).toEqual({ credentials: { secret: 's' } })
  expect(signInField(schemas.get('directory')!.credentials)).toBeUndefined()
})

test('every sign-in can be filled in, and has a name in both languages', () => {
  for (const { credentials } of schemas.values()) {
    for (const { name, required, optional } of credentials['x-sign-in'] ?? []) {
      expect(Object.keys(credentials.properties!)).toEqual(expect.arrayContaining([...required, ...optional]))
      for (const words of [fieldTexts.en, fieldTexts.de]) expect(words.signIn(name)).not.toBe('')
    }
  }
})

test('the hints of the limits say the defaults of the installation', () => {
  const { DELIVERY_MAX_CONCURRENT_PER_DESTINATION: slots, DELIVERY_MAX_PER_MINUTE_PER_DESTINATION: rate } = testConfig({})
  expect(rate).toBe(0)
  for (const words of [fieldTexts.en, fieldTexts.de])
    expect(words.description('sftp', 'max_concurrent_deliveries')).toContain(`: ${slots},`)
})

test('each connector and each of its fields has texts in both languages', () => {
  for (const [kind, { config, credentials }] of schemas) {
    for (const words of [fieldTexts.en, fieldTexts.de]) {
      expect(words.connector(kind)).not.toBe(kind)
      expect(words.purpose(kind)).toMatch(/\w/)
    }
    for (const { key, description: described = '' } of [...fieldsOf(config, 'config'), ...fieldsOf(credentials, 'credentials')]) {
      expect([fieldTexts.en.label(key, ''), fieldTexts.de.label(key, '')]).not.toContain('')
      expect(fieldTexts.en.description(kind, key, described)).toMatch(/\w/)
      expect(fieldTexts.de.description(kind, key, '')).toMatch(/\w/)
    }
  }
})

test('a German hint differs between kinds where the description of the API does', () => {
  // What a kind says of its own folder or prefix is the same thing in other words.
  const ofOneMeaning = new Set(['host', 'path', 'port', 'prefix', 'username', 'password', 'url', 'ca_certificate'])
  const hints = new Map<string, Map<string, { kind: string; german: string }[]>>()
  for (const [kind, { config, credentials }] of schemas) {
    for (const { key, description = '' } of [...fieldsOf(config, 'config'), ...fieldsOf(credentials, 'credentials')]) {
      if (ofOneMeaning.has(key)) continue
      const ofKey = hints.get(key) ?? new Map<string, { kind: string; german: string }[]>()
      hints.set(key, ofKey)
      ofKey.set(description, [...(ofKey.get(description) ?? []), { kind, german: fieldTexts.de.description(kind, key, '') }])
    }
  }
  const shared = [...hints].flatMap(([key, ofKey]) => {
    const groups = [...ofKey.values()].map((kinds) => new Set(kinds.map(({ german }) => german)))
    return groups.flatMap((group, at) =>
      groups.slice(at + 1).flatMap((other) => [...group].filter((german) => other.has(german)).map(() => key)),
    )
  })
  expect(shared).toEqual([])
})

const requests = describeRequests()
const pathsOf = (operation: (typeof formOperations)[number]) => fieldsOf(requests[operation] as JsonSchema)

test.each([
  ['POST /api-keys', apiKeys],
  ['POST /connections', connections],
  ['POST /enrichments', enrichments],
  ['POST /event-subscriptions', subscriptions],
  ['POST /event-subscriptions/:id/replay', subscriptions],
  ['POST /notifications', notifications],
  ['POST /repositories', repositories],
  ['POST /repositories/:id/certificates', certificates],
  ['PATCH /settings', settings],
] as const)('each field of %s has a label, and each of its choices', (operation, { fields, ...words }) => {
  const choices = 'choices' in words ? words.choices : {}
  const shown = pathsOf(operation).filter(({ path }) => !['user_id', 'status'].includes(path) && !path.startsWith('credentials.'))
  expect(Object.keys(fields)).toEqual(expect.arrayContaining(shown.map(({ path }) => path)))
  const chosen = shown.filter((field) => field.choices.length > 0)
  const labelled = Object.fromEntries(Object.entries<object>(choices).map(([path, labels]) => [path, Object.keys(labels).toSorted()]))
  expect(labelled).toMatchObject(Object.fromEntries(chosen.map((field) => [field.path, field.choices.toSorted()])))
})

test('the fields of requests follow from their schemas', () => {
  const fields = new Map(formOperations.map((operation) => [operation, new Map(pathsOf(operation).map((field) => [field.path, field]))]))
  const at = (operation: (typeof formOperations)[number], path: string) => fields.get(operation)!.get(path)
  expect(at('POST /notifications', 'events')).toMatchObject({ input: 'checks', isRequired: true })
  expect(at('POST /notifications', 'quiet_seconds')).toMatchObject({ input: 'number', isRequired: true, fallback: '900', maximum: 604_800 })
  expect(at('POST /notifications', 'is_active')).toMatchObject({ input: 'switch', fallback: 'true' })
  expect(at('POST /enrichments', 'repository_ids')).toMatchObject({ input: 'list', isRequired: false, empty: [] })
  expect(at('POST /enrichments', 'steps')).toMatchObject({ input: 'json', isRequired: true })
  expect(at('POST /enrichments', 'http')).toMatchObject({ input: 'object', fallback: 'false' })
  expect(at('POST /enrichments', 'http.url')!.when!({ http: 'false' })).toBe(false)
  expect(at('POST /enrichments', 'http.url')!.when!({ http: 'true' })).toBe(true)
  expect(at('POST /repositories', 'upstream.private_key')).toMatchObject({ input: 'lines', isSecret: true })
  expect(at('POST /api-keys', 'expires_at')).toMatchObject({ input: 'date', isRequired: false })
  expect(at('PATCH /settings', 'content_days')).toMatchObject({ input: 'number', isRequired: false })
  expect(at('PATCH /settings', 'max_retries')).toMatchObject({ input: 'number', isRequired: true, minimum: 0, maximum: 100 })
})

test('the system of an enrichment is signed in at as a webhook is', () => {
  const credentials = (requests['POST /enrichments'] as JsonSchema).properties!['credentials']!
  expect(signInField(credentials)!.choices).toEqual(signInField(schemas.get('webhook')!.credentials)!.choices)
  for (const { key, description: described = '' } of fieldsOf(credentials, 'credentials')) {
    expect(fieldTexts.de.label(key, '')).not.toBe('')
    expect(fieldTexts.en.description('webhook', key, described)).toMatch(/\w/)
    expect(fieldTexts.de.description('webhook', key, '')).toMatch(/\w/)
  }
})

test('every kind of input is in use, and each field has the one that fits it', () => {
  const inputs = [...schemas].flatMap(([kind, { config, credentials }]) =>
    [...fieldsOf(config, 'config'), ...fieldsOf(credentials, 'credentials')].map(({ key, input, isSecret }) => [
      `${kind}.${key}`,
      isSecret ? `secret ${input}` : input,
    ]),
  )
  expect(Object.fromEntries(inputs)).toMatchObject({
    'webhook.url': 'text',
    'webhook.method': 'choice',
    'webhook.headers': 'pairs',
    'webhook.ca_certificate': 'lines',
    'webhook.secret': 'secret text',
    'webhook.max_concurrent_deliveries': 'number',
    'email.to': 'list',
    'drive.service_account': 'secret json',
    'sftp.private_key': 'secret lines',
    'sftp.username': 'text',
  })
})

const valueOf = (schema: object, text: string) => {
  const fields = fieldsOf({ properties: { it: schema } }, 'config')
  const { values, problems } = changedValues(fields, { 'config.it': text }, { 'config.it': 'true' })
  return problems['config.it'] ?? (values['config'] as { it: unknown }).it
}
const port = { type: 'integer', minimum: 1, maximum: 65_535 }
const addresses = { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] }
const headers = { type: 'object', additionalProperties: { type: 'string' } }
const oneOrSeveral = { type: 'object', additionalProperties: addresses }

test.each([
  ['a number', port, ' 22 ', 22],
  ['a number that is none', port, 'ssh', 'number'],
  ['a number with a fraction', port, '1.5', 'integer'],
  ['a number outside of the bounds', port, '70000', 'range'],
  ['an empty text', { type: 'string' }, '  ', null],
  ['a text with spaces around it', { type: 'string' }, ' a b ', 'a b'],
  ['a secret with spaces around it', { type: 'string', writeOnly: true }, ' s ', ' s '],
  ['a switch', { type: 'boolean' }, 'false', false],
  ['one or several', addresses, 'a@b.example\n\nc@d.example', ['a@b.example', 'c@d.example']],
  ['pairs', headers, 'X-Client: relay\nX-Address: a:b', { 'X-Client': 'relay', 'X-Address': 'a:b' }],
  ['pairs of one or several', oneOrSeveral, 'kind: RE\ncode: 1, 2', { kind: 'RE', code: ['1', '2'] }],
  ['pairs without a colon', headers, 'X-Client', 'pairs'],
  ['an object', { type: 'object' }, '{"a":1}', { a: 1 }],
  ['an object that is none', { type: 'object' }, '{"a":', 'json'],
] as const)('%s', (_, schema, text, expected) => {
  expect(valueOf(schema, text)).toEqual(expected)
})

test('the messages of an error response are put beside their fields', () => {
  const details = [
    { path: 'config.to.0', message: 'must be an address' },
    { path: 'config.to.2', message: 'must be an address' },
    { path: 'config.headers.X-A', message: 'must be printable' },
    { path: 'config.colour', message: 'unknown key' },
    { path: 'credentials', message: 'required' },
    { path: 'credentials.size', message: 'unknown key' },
    { path: 'credentials.user', message: 'must not be empty' },
  ]
  const places = ['config.to', 'config.headers', 'config.t', 'credentials', 'credentials.user']
  expect(placeDetails(details, places)).toEqual({
    at: {
      'config.to': ['must be an address'],
      'config.headers': ['X-A: must be printable'],
      credentials: ['required', 'size: unknown key'],
      'credentials.user': ['must not be empty'],
    },
    others: [{ path: 'config.colour', message: 'unknown key' }],
  })
})
