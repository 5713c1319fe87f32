import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse, stringify } from 'yaml'
import { createApiKeys } from '../../../src/access/api-keys.ts'
import { createKey, listKeys, revokeKey } from '../../../src/access/key-administration.ts'
import { createMembers } from '../../../src/access/members.ts'
import { UserError } from '../../../src/base/errors.ts'
import { applyFile, withApplyDeps } from '../../../src/cli/apply/apply.ts'
import { isDrift, type ApplyOptions } from '../../../src/cli/apply/change.ts'
import { exportWorkspaces } from '../../../src/cli/apply/export.ts'
import { systemActor } from '../../../src/db/audit.ts'
import { createAuthenticator, newApiKey } from '../../../src/security/api-keys.ts'
import { createAttemptLimit } from '../../../src/security/attempt-limit.ts'
import { apiKeyParts } from '../../support/api-key.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { testConfig } from '../../support/factories.ts'
import { waitsForLock } from '../../support/locks.ts'
import { until } from '../../support/until.ts'

const secrets = {
  ERP_USER: 'erp-user-8412',
  ERP_PASSWORD: 'erp-password-5530',
  ARCHIVE_USER: 'archive-user-7711',
  DMS_SECRET: `whsec_${Buffer.from('a secret of the webhook, 32 byte').toString('base64')}`,
}
const filePassword = 'archive-password-9024'
const everySecret = [...Object.values(secrets), filePassword]

let database: TestDatabase
let folder: string
let file: string

const page = await readFile(new URL('../../../docs/configuration-as-code.md', import.meta.url), 'utf8')
const example = /```yaml\n([^]*?)```/.exec(page)![1]!
const generateKey = /```bash\n(echo "relay_[^]*?)```/.exec(page)![1]!
beforeEach(async () => {
  database = await createTestDatabase()
  folder = await mkdtemp(join(tmpdir(), 'relay-apply-'))
  file = join(folder, 'relay.yaml')
  await mkdir(join(folder, 'secrets'))
  await writeFile(join(folder, 'secrets/archive-password'), `${filePassword}\n`)
  await writeFile(file, example)
})
afterEach(async () => {
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

const apply = (options: ApplyOptions = {}, variables: NodeJS.ProcessEnv = secrets) =>
  withApplyDeps(testConfig(), variables, (deps) => applyFile(database.db, file, deps, options))

const readAll = () => withApplyDeps(testConfig(), {}, (deps) => exportWorkspaces(database.db, undefined, deps))
const exportAll = async () => (await readAll()).text

interface Item {
  name: string
  [key: string]: unknown
}
interface Workspace {
  slug: string
  settings: Record<string, unknown>
  members: { email: string; name?: string }[]
  api_keys: Item[]
  repositories: (Item & { repo_id: string })[]
  destinations: (Item & { config: Record<string, unknown>; credentials?: Record<string, unknown> })[]
  connections: Item[]
  notifications: Item[]
  enrichments?: Item[]
  event_subscriptions?: Item[]
}

/** Writes the example to the file, after a change. */
const edit = async (change: (workspace: Workspace) => void) => {
  const document = parse(example) as { workspaces: [Workspace] }
  change(document.workspaces[0])
  await writeFile(file, stringify(document))
}

const tables = [
  'workspaces',
  'members',
  'api_keys',
  'repositories',
  'destinations',
  'connections',
  'connection_repositories',
  'connection_destinations',
  'notifications',
  'event_subscriptions',
  'audit_logs',
  'outbox',
]

/** Returns every row of the tables that a file describes, and of the audit log. */
const snapshot = async () => {
  const rows: Record<string, unknown[]> = {}
  for (const table of tables) rows[table] = await database.db(table).select('*').orderByRaw(`${table}::text`)
  return JSON.stringify(rows)
}

const auditEvents = async (): Promise<{ event: string; actor_type: string; metadata: { name?: string } }[]> =>
  database.db('audit_logs').select('event', 'actor_type', 'metadata').orderBy('id')

const membersInDatabase = async (): Promise<{ id: string; email: string; name: string }[]> =>
  database.db('members').select('id', 'email', 'name').orderBy('id')

const exampleKeys = ['api_key billing (member)', 'api_key console (admin, ada@example.com)']

const differences = (changes: Awaited<ReturnType<typeof apply>>) =>
  changes
    .filter(({ action }) => action !== 'unchanged')
    .map(({ kind, name, action, fields }) =>
      [action, kind, name, ...(fields ? [fields.map((field) => field.name).join(', ')] : [])].join(' '),
    )

/** Returns what the command reports, with the lines of the file. */
const reportedLines = async (options: ApplyOptions = {}, variables: NodeJS.ProcessEnv = secrets): Promise<string[]> => {
  const before = await snapshot()
  const thrown: unknown = await apply(options, variables).catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(UserError)
  expect(await snapshot()).toBe(before)
  return (thrown as UserError).message
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
}

const refusal = async (...given: Parameters<typeof reportedLines>): Promise<string[]> =>
  (await reportedLines(...given)).map((line) => line.replace(/^line \d+: /, ''))

test('the example of the documentation creates everything, and a second run changes and records nothing', async () => {
  const empty = await snapshot()
  const plan = await apply({ dryRun: true, printNewKeys: true })
  expect(await snapshot()).toBe(empty)

  const applied = await apply({ printNewKeys: true })
  expect(differences(applied)).toEqual([
    'create workspace acme/prod',
    expect.stringContaining('update settings acme/prod max_retries, content_days, receiver_allowed_cidrs, rfc.url'),
    'create member ada@example.com',
    ...exampleKeys.map((each) => `create ${each}`),
    'create destination Archive',
    'create destination DMS',
    'create destination Operators',
    'create repository Z1',
    'create repository Z2',
    'create connection Invoices to the archive and the DMS',
    'create connection Delivery notes',
    'create notification Failures',
  ])
  expect(applied).toEqual(plan.map((change) => (change.kind === 'api_key' ? { ...change, key: expect.stringMatching(/^relay_/) } : change)))
  const entries = await auditEvents()
  expect(new Set(entries.map(({ actor_type }) => actor_type))).toEqual(new Set(['system']))
  expect(entries.map(({ event }) => event)).toEqual([
    'settings.updated',
    'member.created',
    'apikey.created',
    'apikey.created',
    'destination.created',
    'destination.created',
    'destination.created',
    'repository.created',
    'repository.created',
    'connection.created',
    'connection.created',
    'notification.created',
  ])
  expect(await database.db('repositories').where({ status: 'inactive' }).pluck('repo_id')).toEqual(['Z2'])

  const before = await snapshot()
  for (const secret of everySecret) expect(before + JSON.stringify(applied)).not.toContain(secret)
  for (const { key } of applied) if (key !== undefined) expect(before).not.toContain(apiKeyParts(key).secret)
  expect((await apply({ prune: true, printNewKeys: true })).filter(isDrift)).toEqual([])
  expect(await snapshot()).toBe(before)
})

test('a missing API key is reported, and is not created without the option', async () => {
  expect((await apply()).filter(({ kind }) => kind === 'api_key')).toEqual(
    ['billing (member)', 'console (admin, ada@example.com)'].map((name) => ({
      workspace: 'acme/prod',
      kind: 'api_key',
      name,
      action: 'not_created',
    })),
  )
  expect(await database.db('api_keys')).toEqual([])
  expect(differences(await apply())).toEqual(exampleKeys.map((each) => `not_created ${each}`))
})

/** Writes the example to the file, with a reference to the value of the key `billing`. */
const editWithValue = (change: (workspace: Workspace) => void = () => {}) =>
  edit((workspace) => {
    workspace.api_keys[0]!['value'] = { env: 'BILLING_KEY' }
    change(workspace)
  })
const withKey = (key: string) => ({ ...secrets, BILLING_KEY: key })
const billingKeys = async () =>
  (await listKeys(database.db)).filter(({ name }) => name === 'billing').map(({ id, revoked_at: at }) => ({ id, isRevoked: at !== null }))

test('an API key is created with the value that the file refers to, and the value is shown nowhere', async () => {
  await editWithValue(({ api_keys: keys }) => (keys[1]!['value'] = { file: 'secrets/console-key' }))
  const consoleKey = newApiKey().key
  await writeFile(join(folder, 'secrets/console-key'), `${consoleKey}\n`)
  // The command of the page generates a valid value.
  const billing = execFileSync('bash', ['-c', generateKey], { encoding: 'utf8' }).trim()

  const planned = await apply({ dryRun: true }, withKey(billing))
  expect(differences(planned)).toEqual(expect.arrayContaining(exampleKeys.map((each) => `create ${each}`)))
  expect(await database.db('api_keys')).toEqual([])
  const applied = await apply({ printNewKeys: true }, withKey(billing))
  expect(applied.filter(({ kind }) => kind === 'api_key')).toEqual([
    { workspace: 'acme/prod', kind: 'api_key', name: 'billing (member)', action: 'create' },
    { workspace: 'acme/prod', kind: 'api_key', name: 'console (admin, ada@example.com)', action: 'create' },
  ])

  const before = await snapshot()
  const authenticator = createAuthenticator({
    findKey: (id) => createApiKeys(database.db).find(id),
    recordUse: () => Promise.resolve(),
    wrongKeys: createAttemptLimit(1),
  })
  const path = { userSlug: 'acme', workspaceSlug: 'prod' }
  const actors = await Promise.all([billing, consoleKey].map((key) => authenticator.authenticate(`Bearer ${key}`, '192.0.2.1', path)))
  expect(actors).toMatchObject([
    { level: 'member', userId: null },
    { level: 'admin', userId: (await membersInDatabase())[0]!.id },
  ])
  const exported = await exportAll()
  for (const key of [billing, consoleKey])
    expect(before + exported + JSON.stringify([planned, applied])).not.toContain(apiKeyParts(key).secret)
  expect((await auditEvents()).filter(({ event }) => event === 'apikey.created')).toMatchObject([
    { actor_type: 'system', metadata: { name: 'billing' } },
    { actor_type: 'system', metadata: { name: 'console' } },
  ])

  expect(differences(await apply({ prune: true, printNewKeys: true }, withKey(billing)))).toEqual([])
  expect(await snapshot()).toBe(before)
  // The export contains no value, and finds the keys by name.
  const { workspaces } = parse(exported) as { workspaces: [Workspace] }
  expect(workspaces[0].api_keys.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([
    { name: 'billing', level: 'member' },
    { name: 'console', level: 'admin', member: 'ada@example.com' },
  ])
  await writeFile(file, example)
  expect(differences(await apply({ prune: true }))).toEqual([])
  expect(await snapshot()).toBe(before)
})

test('another value makes a second API key, and --prune revokes the first one', async () => {
  const [first, second] = [newApiKey(), newApiKey()]
  await apply({ printNewKeys: true })
  const [generated] = await billingKeys()
  await editWithValue()
  expect(differences(await apply({ prune: true }, withKey(first.key)))).toEqual([`create ${exampleKeys[0]}`, `delete ${exampleKeys[0]}`])
  expect(await billingKeys()).toEqual([
    { id: generated!.id, isRevoked: true },
    { id: first.id, isRevoked: false },
  ])

  expect(differences(await apply({}, withKey(second.key)))).toEqual([`create ${exampleKeys[0]}`, `not_in_file ${exampleKeys[0]}`])
  expect((await billingKeys()).slice(1)).toEqual([
    { id: first.id, isRevoked: false },
    { id: second.id, isRevoked: false },
  ])
  expect(differences(await apply({}, withKey(second.key)))).toEqual([`not_in_file ${exampleKeys[0]}`])
  expect(differences(await apply({ prune: true }, withKey(second.key)))).toEqual([`delete ${exampleKeys[0]}`])
  expect((await billingKeys()).slice(1)).toEqual([
    { id: first.id, isRevoked: true },
    { id: second.id, isRevoked: false },
  ])
  expect((await auditEvents()).filter(({ event }) => event === 'apikey.revoked')).toHaveLength(2)
  expect(differences(await apply({ prune: true }, withKey(second.key)))).toEqual([])
})

test('keys whose ids contain no time are listed by their creation, newest first', async () => {
  const [newer, older] = ['0'.repeat(26), '7'.repeat(26)]
  await editWithValue()
  for (const id of [older, newer]) await apply({}, withKey(`relay_${id}_${apiKeyParts(newApiKey().key).secret}`))
  const [{ id: workspaceId }] = await database.db('workspaces').select('id')
  const listed = await createApiKeys(database.db).list(workspaceId, { page: 1, perPage: 10 })
  expect(listed.items.map(({ id }) => id)).toEqual([newer, older])
  expect((await listKeys(database.db)).map(({ id }) => id)).toEqual([older, newer])
})

test('a value that is no API key, has no random secret or belongs to another key is refused, and not quoted', async () => {
  await editWithValue()
  const path = 'acme/prod, API key billing, value'
  const { id, key } = newApiKey()
  expect(await refusal({}, secrets)).toEqual([`${path}: the environment variable BILLING_KEY is not set`])
  for (const value of ['hunter2', `${key} `, key.slice(0, -1), key.toLowerCase()])
    expect(await refusal({}, withKey(value))).toEqual([
      `${path}: must be an API key: relay_, an id of 26 characters, _ and 43 characters of base64url`,
    ])
  expect(await refusal({}, withKey(`relay_${id}_${'changeme'.repeat(6).slice(0, 43)}`))).toEqual([
    `${path}: must have a random secret, and this one has only 7 different characters`,
  ])
  await edit(({ api_keys: keys }) => (keys[0]!['value'] = key))
  expect(await refusal()).toEqual([`${path}: must be { env: NAME } or { file: PATH }`])

  await editWithValue()
  await apply({}, withKey(key))
  const sameId = `relay_${id}_${apiKeyParts(newApiKey().key).secret}`
  expect(await refusal({}, withKey(sameId))).toEqual([`${path}: has the id of the existing key and another secret. Generate a new value`])
  await editWithValue(({ api_keys: keys }) => (keys[0]!['level'] = 'viewer'))
  expect(await refusal({}, withKey(key))).toEqual([`${path}: is the value of the key billing (member). Generate a new value`])

  const isTaken = [`${path}: is, or was, the value of another key of this or another workspace. Generate a new value`]
  await editWithValue((workspace) => (workspace.slug = 'acme/test'))
  expect(await refusal({}, withKey(key))).toEqual(isTaken.map((issue) => issue.replace('acme/prod', 'acme/test')))
  await revokeKey(database.db, id)
  await editWithValue()
  expect(await refusal({}, withKey(key))).toEqual(isTaken)
  await editWithValue(({ api_keys: keys }) => (keys[1]!['value'] = { env: 'BILLING_KEY' }))
  expect(await refusal({}, withKey(newApiKey().key))).toEqual(isTaken.map((issue) => issue.replace('billing', 'console')))
})

test('a repository names its home as the file does, and an export is found unchanged', async () => {
  await edit((workspace) => Object.assign(workspace.repositories[0]!, { home: 'Archive', home_after_days: 7 }))
  await apply()
  const archive = database.db('destinations').select('id').where({ name: 'Archive' })
  const homes = await database.db('repositories').where({ home_destination_id: archive.clone() }).pluck('home_after_days')
  expect(homes).toEqual([7])
  const exported = parse(await exportAll()) as { workspaces: [Workspace] }
  expect(exported.workspaces[0].repositories.map(({ home }) => home)).toEqual(['Archive', null])
  expect(differences(await apply()).filter((each) => !each.startsWith('not_created'))).toEqual([])
  await edit((workspace) => Object.assign(workspace.repositories[0]!, { home: 'Nowhere' }))
  expect(await refusal()).toEqual([expect.stringContaining('there is no such destination in this workspace')])
  await edit((workspace) => Object.assign(workspace.repositories[0]!, { home: 'DMS' }))
  expect(await refusal()).toEqual([expect.stringContaining('must be a destination of the type')])
})

test('only what differs is changed, and credentials are compared with the stored ones', async () => {
  await apply({ printNewKeys: true })
  const recorded = (await auditEvents()).length
  await edit(({ settings, members, repositories, destinations, connections, notifications }) => {
    settings['max_retries'] = 9
    members[0]!.name = 'Ada King'
    repositories[0]!['signature_verification'] = false
    repositories[0]!['accepts_mcreate'] = false
    destinations[1]!.config = { url: 'https://dms.example.com/v2' }
    connections[0]!['destinations'] = ['DMS', 'Operators']
    connections[1]!['is_active'] = true
    notifications[0]!['quiet_seconds'] = 60
  })
  await writeFile(join(folder, 'secrets/archive-password'), 'another-password')
  const expected = [
    'update settings acme/prod max_retries',
    'update member ada@example.com name',
    'update destination Archive credentials',
    'update destination DMS config.url, config.max_concurrent_deliveries',
    'update repository Z1 signature_verification, accepts_mcreate',
    'update connection Invoices to the archive and the DMS destinations',
    'update connection Delivery notes is_active',
    'update notification Failures quiet_seconds',
  ]
  const before = await snapshot()
  expect(differences(await apply({ dryRun: true }))).toEqual(expected)
  expect(await snapshot()).toBe(before)
  const changes = await apply()
  expect(differences(changes)).toEqual(expected)
  expect((await auditEvents()).slice(recorded).map(({ event }) => event)).toEqual([
    'settings.updated',
    'member.updated',
    'destination.updated',
    'destination.updated',
    'repository.updated',
    'connection.updated',
    'connection.toggled',
    'notification.updated',
  ])
  expect(JSON.stringify(changes)).not.toContain('another-password')
  // The credentials of the webhook were sealed for its new address: they open, and are the same.
  expect(differences(await apply())).toEqual([])

  const rotated = await apply({}, { ...secrets, ERP_PASSWORD: 'another-erp-password' })
  expect(differences(rotated)).toEqual(['update settings acme/prod rfc.credentials'])
})

test('an enrichment is created and changed, and what may be a secret of it is only named', async () => {
  const write = (values: object) =>
    edit((workspace) => {
      workspace.enrichments = [{ name: 'Orders', repositories: ['Z1'], steps: [{ kind: 'link' }], ...values }]
    })
  const withTenant = (tenant: string) => ({
    http: { url: 'https://erp.example.com', headers: { 'x-tenant': tenant } },
    credentials: { bearer_token: { env: 'TOKEN' } },
  })
  const applyWith = (token: string) => apply({ printNewKeys: true }, { ...secrets, TOKEN: token })
  await write(withTenant('canary-tenant-1'))
  expect(differences(await applyWith('canary-token-1'))).toContain('create enrichment Orders')
  expect(differences(await applyWith('canary-token-1'))).toEqual([])

  await write({ ...withTenant('canary-tenant-2'), late_days: 1 })
  const changed = (await applyWith('canary-token-2')).find(isDrift)
  expect(changed?.fields).toEqual([{ name: 'late_days', before: 7, after: 1 }, { name: 'http.headers' }, { name: 'credentials' }])
  await write({})
  expect(differences(await applyWith(''))).toEqual(['update enrichment Orders late_days, http, http.headers, credentials'])
  expect(await database.db('enrichments').first()).toMatchObject({ http: null, credentials_sealed: null })
  expect(JSON.stringify(await database.db('audit_logs'))).not.toContain('canary')
})

test('a host key that the relay has stored stays, until the file names another server', async () => {
  await apply()
  const fingerprint = 'SHA256:uNiVztksCsDhcc0u9e8BgrJXVGLmKgF3gg2VqVhF3mI'
  await edit(({ destinations }) => (destinations[0]!.config['host_key_sha256'] = fingerprint))
  expect(differences(await apply())).toContain('update destination Archive config.host_key_sha256')
  await writeFile(file, example)
  expect((await apply()).filter(({ name }) => name === 'Archive')).toMatchObject([{ action: 'unchanged' }])
  await edit(({ destinations }) => (destinations[0]!.config['host'] = 'sftp2.example.com'))
  expect(differences(await apply())).toContain('update destination Archive config.host, config.host_key_sha256')
  expect((await database.db('destinations').where({ name: 'Archive' }).first()).config).not.toHaveProperty('host_key_sha256')
  expect((await apply()).filter(({ name }) => name === 'Archive')).toMatchObject([{ action: 'unchanged' }])
})

test('event subscriptions are created, changed, exported and deleted', async () => {
  const item = { name: 'Data', events: ['document.delivered', 'document.failed'], destination: 'DMS' }
  const editWith = (change: object) => edit((workspace) => (workspace.event_subscriptions = [{ ...item, ...change }]))
  await editWith({})
  expect(differences(await apply({ printNewKeys: true }))).toContain('create event_subscription Data')
  expect(differences(await apply({}))).toEqual([])
  expect(parse(await exportAll())).toMatchObject({ workspaces: [{ event_subscriptions: [{ ...item, is_active: true }] }] })
  await editWith({ is_active: false, events: ['document.failed'] })
  expect(differences(await apply({}))).toEqual(['update event_subscription Data events, is_active'])
  await editWith({ destination: 'Archive' })
  expect(await refusal()).toEqual([expect.stringContaining('must be a destination of the type webhook')])
  await editWith({ destination: 'Unknown' })
  expect(await refusal()).toEqual([expect.stringContaining('has no destination "Unknown"')])
  await edit(() => {})
  expect(differences(await apply({ prune: true }))).toEqual(['delete event_subscription Data'])
  expect(await database.db('event_subscriptions')).toEqual([])
})

test('what is not in the file is reported, and deleted with --prune only', async () => {
  await apply({ printNewKeys: true })
  await edit((workspace) => {
    workspace.members = []
    workspace.api_keys = []
    workspace.repositories.pop()
    workspace.destinations.splice(1)
    workspace.connections = [{ ...workspace.connections[0]!, destinations: ['Archive'] }]
    workspace.notifications = []
  })
  const gone = [
    'notification Failures',
    'connection Delivery notes',
    'destination DMS',
    'destination Operators',
    'repository Z2',
    ...exampleKeys,
    'member ada@example.com',
  ]
  const update = 'update connection Invoices to the archive and the DMS destinations'
  const left = await apply({ dryRun: true })
  expect(differences(left).toSorted()).toEqual([update, ...gone.map((each) => `not_in_file ${each}`)].toSorted())
  expect(left.filter(isDrift)).toHaveLength(1)
  expect(await database.db('notifications')).toHaveLength(1)
  expect(await membersInDatabase()).toHaveLength(1)

  expect(differences(await apply({ prune: true }))).toEqual([update, ...gone.map((each) => `delete ${each}`)])
  expect(await database.db('destinations').whereNull('deleted_at').pluck('name')).toEqual(['Archive'])
  expect(await database.db('repositories').whereNull('deleted_at').pluck('repo_id')).toEqual(['Z1'])
  expect(await database.db('connections').pluck('name')).toEqual(['Invoices to the archive and the DMS'])
  expect(await database.db('api_keys').whereNull('revoked_at')).toEqual([])
  expect(await membersInDatabase()).toEqual([])
  expect(differences(await apply({ prune: true }))).toEqual([])
})

test('a member keeps the id when the name changes, and has the address as the name if the file contains none', async () => {
  await apply()
  const [ada] = await membersInDatabase()
  expect(ada).toMatchObject({ email: 'ada@example.com', name: 'Ada Lovelace' })
  const recorded = (await auditEvents()).length
  await edit(({ members }) => {
    delete members[0]!.name
    members.push({ email: 'Ada@example.com' })
  })
  await apply()
  expect(await membersInDatabase()).toEqual([
    { ...ada, name: 'ada@example.com' },
    { id: expect.any(String), email: 'Ada@example.com', name: 'Ada@example.com' },
  ])
  expect((await auditEvents()).slice(recorded)).toEqual([
    {
      event: 'member.updated',
      actor_type: 'system',
      metadata: { email: 'ada@example.com', before: { name: 'Ada Lovelace' }, after: { name: 'ada@example.com' } },
    },
    { event: 'member.created', actor_type: 'system', metadata: { email: 'Ada@example.com', name: 'Ada@example.com' } },
  ])
  expect((await apply()).filter(({ kind }) => kind === 'member').map(({ action }) => action)).toEqual(['unchanged', 'unchanged'])
  await createMembers(database.db).rename((await database.db('workspaces').first('id')).id, ada!.id, 'ada@example.com', systemActor)
  expect(await auditEvents()).toHaveLength(recorded + 2)
})

test('an API key is found by its name, level and member, and a new one belongs to the member', async () => {
  await apply()
  const { db } = database
  // The same name and level, but of another member or of none.
  await createKey(db, { workspace: 'acme/prod', level: 'admin', name: 'console' })
  await createKey(db, { workspace: 'acme/prod', level: 'member', name: 'billing', member: 'ada@example.com' })
  const differ = ['not_in_file api_key console (admin)', 'not_in_file api_key billing (member, ada@example.com)']
  expect(differences(await apply())).toEqual([...exampleKeys.map((each) => `not_created ${each}`), ...differ])
  expect(differences(await apply({ printNewKeys: true }))).toEqual([...exampleKeys.map((each) => `create ${each}`), ...differ])
  expect(differences(await apply({ printNewKeys: true }))).toEqual(differ)
  const [ada] = await membersInDatabase()
  const keys = await listKeys(db, 'acme/prod')
  expect(keys.map(({ name, level, user_id }) => ({ name, level, user_id }))).toEqual([
    { name: 'console', level: 'admin', user_id: null },
    { name: 'billing', level: 'member', user_id: ada!.id },
    { name: 'billing', level: 'member', user_id: null },
    { name: 'console', level: 'admin', user_id: ada!.id },
  ])
})

test('--prune deletes a member and revokes the keys of the member, which stay in the list of keys', async () => {
  const { db } = database
  await apply({ printNewKeys: true })
  const [ada] = await membersInDatabase()
  const options = { workspace: 'acme/prod', level: 'viewer', member: 'ada@example.com' }
  const revoked = await createKey(db, { ...options, name: 'revoked' })
  await revokeKey(db, revoked.id)
  const expired = await createKey(db, { ...options, name: 'expired', expiresAt: '2099-01-01T00:00:00Z' })
  await db('api_keys')
    .where({ id: expired.id })
    .update({ expires_at: new Date(Date.now() - 1_000) })
  const recorded = (await auditEvents()).length
  await edit((workspace) => {
    workspace.members = [{ email: 'grace@example.com' }]
    workspace.api_keys.splice(1)
  })
  const before = await snapshot()
  const plan = await apply({ prune: true, dryRun: true })
  expect(await snapshot()).toBe(before)
  expect(differences(plan)).toEqual([
    'create member grace@example.com',
    'delete api_key console (admin, ada@example.com)',
    'delete member ada@example.com',
  ])
  expect(await apply({ prune: true })).toEqual(plan)
  expect(await membersInDatabase()).toMatchObject([{ email: 'grace@example.com' }])
  expect((await listKeys(db)).map(({ name, user_id, revoked_at }) => [name, user_id, revoked_at !== null])).toEqual([
    ['billing', null, false],
    ['console', null, true],
    ['revoked', null, true],
    ['expired', null, true],
  ])
  expect((await auditEvents()).slice(recorded)).toMatchObject([
    { event: 'member.created', metadata: { email: 'grace@example.com' } },
    { event: 'apikey.revoked', metadata: { name: 'console' } },
    { event: 'apikey.revoked', metadata: { name: 'expired' } },
    { event: 'member.deleted', actor_type: 'system', metadata: { email: 'ada@example.com', name: 'Ada Lovelace' } },
  ])
  // The entries of the creation still tell to whom the keys belonged.
  const created = await db('audit_logs').where({ event: 'apikey.created' }).whereRaw(`metadata ->> 'belongs_to' = ?`, [ada!.id])
  expect(created).toHaveLength(3)
  expect(differences(await apply({ prune: true }))).toEqual([])
})

test('an API key that is created while its member is being deleted is revoked', async () => {
  const { db } = database
  await apply()
  const [ada] = await membersInDatabase()
  const workspace = await db('workspaces').first('id')
  const { id, secretSha256 } = newApiKey()
  const key = { id, workspaceId: workspace.id, memberId: ada!.id, name: 'late', level: 'admin', secretSha256, expiresAt: null } as const
  const trx = await db.transaction()
  await createApiKeys(trx).insert(key, systemActor)
  const deletion = createMembers(db).delete(workspace.id, ada!.id, systemActor)
  await until('the deletion waits for the key', () => waitsForLock(db))
  await trx.commit()
  await deletion
  expect(await listKeys(db)).toMatchObject([{ name: 'late', user_id: null, revoked_at: expect.any(String) }])
})

test('a failure half way changes nothing', async () => {
  const { db } = database
  await db.raw(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by the test'; end $$;
    create trigger refuse before insert on notifications execute function refuse();
  `)
  const before = await snapshot()
  await expect(apply({ printNewKeys: true })).rejects.toThrow('refused by the test')
  expect(await snapshot()).toBe(before)
  await db.raw('drop trigger refuse on notifications')
  expect((await apply()).filter(isDrift)).toHaveLength(13)
})

test('two runs at the same time create everything once', async () => {
  const runs = await Promise.allSettled([apply(), apply()])
  const refused = runs.flatMap((run) => (run.status === 'rejected' ? [run.reason as unknown] : []))
  expect(refused.length).toBeLessThan(2)
  for (const thrown of refused) expect(thrown).toBeInstanceOf(UserError)
  expect(await database.db('workspaces')).toHaveLength(1)
  expect(await database.db('destinations')).toHaveLength(3)
  expect(differences(await apply())).toEqual(exampleKeys.map((each) => `not_created ${each}`))
})

test('an exported file is applied unchanged, and contains no secret', async () => {
  await edit(({ destinations }) => {
    // Both would have the same variables.
    destinations.push({
      ...destinations[0]!,
      name: 'archive',
      credentials: { username: { env: 'ERP_USER' }, password: { env: 'ERP_PASSWORD' } },
    })
  })
  await apply({ printNewKeys: true })
  await createKey(database.db, { workspace: 'acme/prod', level: 'viewer', name: 'billing', member: 'grace@example.com' })
  const exported = await exportAll()
  expect(parse(exported)).toMatchObject({
    workspaces: [
      {
        members: [{ email: 'ada@example.com', name: 'Ada Lovelace' }, { email: 'grace@example.com' }],
        api_keys: expect.arrayContaining([
          { name: 'billing', level: 'member' },
          { name: 'console', level: 'admin', member: 'ada@example.com' },
          { name: 'billing', level: 'viewer', member: 'grace@example.com' },
        ]),
      },
    ],
  })
  for (const secret of everySecret) expect(exported).not.toContain(secret)
  await writeFile(file, exported)
  const variables = {
    RELAY_CREDENTIAL_ACME_PROD_RFC_USER: secrets.ERP_USER,
    RELAY_CREDENTIAL_ACME_PROD_RFC_PASSWORD: secrets.ERP_PASSWORD,
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_USERNAME: secrets.ARCHIVE_USER,
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD: filePassword,
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_USERNAME_2: secrets.ERP_USER,
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD_2: secrets.ERP_PASSWORD,
    RELAY_CREDENTIAL_ACME_PROD_DMS_SECRET: secrets.DMS_SECRET,
  }
  const before = await snapshot()
  expect(differences(await apply({ prune: true, printNewKeys: true }, variables))).toEqual([])
  expect(await snapshot()).toBe(before)
  expect(await exportAll()).toBe(exported)

  // The same file creates the same workspace in another installation.
  await database.drop()
  database = await createTestDatabase()
  expect((await apply({ printNewKeys: true }, variables)).filter(({ action }) => action === 'not_created')).toEqual([])
  expect(await exportAll()).toBe(exported)
})

test('a workspace of the compliance tier, and a bridge that is switched off, are exported and applied', async () => {
  await apply()
  await edit((workspace) => Object.assign(workspace, { tier: 'compliance', settings: { rfc: null } }))
  expect(differences(await apply({ printNewKeys: true }))).toEqual([
    'update tier compliance tier',
    expect.stringContaining('update settings acme/prod rfc.url'),
    ...exampleKeys.map((each) => `create ${each}`),
  ])
  await writeFile(file, await exportAll())
  const variables = {
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_USERNAME: secrets.ARCHIVE_USER,
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD: filePassword,
    RELAY_CREDENTIAL_ACME_PROD_DMS_SECRET: secrets.DMS_SECRET,
  }
  expect(differences(await apply({}, variables))).toEqual([])
})

test('what the operator does not allow to the workspace is an issue of the file', async () => {
  const config = { path: '/srv/acme/prod/in' }
  await edit(({ destinations }) => Object.assign(destinations[0]!, { connector_type: 'directory', config, credentials: {} }))
  expect(await refusal()).toEqual([
    expect.stringMatching(/^acme\/prod, destination Archive, config.path: is not allowed: .*RELAY_DIRECTORY_ROOTS/),
  ])
  const applyWith = (roots: string) =>
    withApplyDeps(testConfig({ RELAY_DIRECTORY_ROOTS: roots }), secrets, (deps) => applyFile(database.db, file, deps, {}))
  await expect(applyWith('other/prod=/srv/acme/prod')).rejects.toThrow('RELAY_DIRECTORY_ROOTS')
  await applyWith('/srv/{workspace}')
  expect((await database.db('destinations').where({ name: 'Archive' }).first()).config).toEqual(config)
})

test('every issue of the file is reported at once, with its path, and nothing is changed', async () => {
  await edit((workspace) => {
    Object.assign(workspace, { colour: 'red' })
    Object.assign(workspace.settings, { max_retries: -1 })
    workspace.repositories.push(workspace.repositories[0]!)
    workspace.destinations[0]!.config = { host: 'sftp.example.com', folder: 'x' }
    workspace.destinations[0]!.credentials = { username: { env: 'NOT_SET' }, password: { file: 'missing' } }
    workspace.destinations[1]!.config = { url: 'ftp://dms.example.com' }
    workspace.destinations[2]!.credentials = { password: 'written-into-the-file' }
    workspace.members.push({ email: 'Grace' }, workspace.members[0]!)
    workspace.api_keys[0]!['member'] = 'grace@example.com'
    workspace.api_keys.push(workspace.api_keys[1]!)
    workspace.connections[0]!['repositories'] = ['Z1', 'Z9']
    workspace.notifications[0]!['destination'] = 'Nobody'
  })
  const at = 'acme/prod'
  const issues = await refusal()
  expect(issues.toSorted()).toEqual(
    [
      `${at}, colour: unknown key`,
      `${at}, settings.max_retries: must be at least 0`,
      `${at}, member Grace, email: must be an e-mail address`,
      `${at}, member ada@example.com, email: is used by an item before this one`,
      `${at}, API key billing, member: this workspace of the file has no member "grace@example.com"`,
      `${at}, API key console, name: is used by an item before this one`,
      `${at}, repository Z1, repo_id: is used by an item before this one`,
      `${at}, destination Archive, config.folder: unknown key`,
      `${at}, destination Archive, credentials.username: the environment variable NOT_SET is not set`,
      `${at}, destination Archive, credentials.password: the file missing cannot be read (ENOENT)`,
      `${at}, destination DMS, config.url: must be a URL`,
      `${at}, destination Operators, credentials.password: must be { env: NAME } or { file: PATH }`,
      `${at}, connection Invoices to the archive and the DMS, repositories[1]: this workspace of the file has no repository "Z9"`,
      `${at}, notification Failures, destination: this workspace of the file has no destination "Nobody"`,
    ].toSorted(),
  )
  expect(issues.join()).not.toContain('written-into-the-file')
})

test('an issue names the line of the value, or of what should contain it', async () => {
  await writeFile(
    file,
    [
      'workspaces:',
      '  - slug: acme/prod',
      '    colour: red',
      '    destinations:',
      '      - name: DMS',
      '        connector_type: webhook',
      '        config: { folder: x, url: "https://dms.example.com" }',
      '      - connector_type: webhook',
      '    connections:',
      '      - name: All',
      '        repositories:',
      '          - Z1',
      '          - 7',
      '        destinations: [DMS]',
    ].join('\n'),
  )
  expect(await reportedLines()).toEqual([
    'line 3: acme/prod, colour: unknown key',
    'line 7: acme/prod, destination DMS, config.folder: unknown key',
    'line 8: acme/prod, destinations[1].name: is required',
    'line 12: acme/prod, connection All, repositories[0]: this workspace of the file has no repository "Z1"',
    'line 13: acme/prod, connection All, repositories[1]: must be a string',
  ])
})

test('what only the database can tell is reported with its path, and nothing is changed', async () => {
  await apply()
  await edit(({ settings, destinations, notifications }) => {
    settings['audit_days'] = null
    destinations[1] = { name: 'DMS', connector_type: 'directory', config: { path: '/x' } }
    notifications[0]!['destination'] = 'Archive'
  })
  expect(await refusal()).toEqual([expect.stringContaining('acme/prod, destination DMS, config.path: is not allowed')])
  await edit(({ settings, destinations, notifications }) => {
    settings['audit_days'] = null
    destinations[1] = { ...destinations[2]!, name: 'DMS' }
    notifications[0]!['destination'] = 'Archive'
  })
  expect(await refusal()).toEqual([
    expect.stringContaining('acme/prod, settings.audit_days: must be a number'),
    expect.stringContaining('acme/prod, destination DMS, connector_type: cannot be changed'),
    expect.stringContaining('acme/prod, notification Failures, destination: must be a destination of the type email or webhook'),
  ])
})

test('two objects with one name are refused, in the workspace as in an export', async () => {
  await apply()
  await database.db('destinations').where({ name: 'DMS' }).update({ name: 'Archive' })
  expect(await refusal()).toEqual([
    expect.stringContaining('acme/prod, destination Archive: the workspace has 2 destinations with this name'),
  ])
  await expect(exportAll()).rejects.toThrow('acme/prod has several destinations with the name "Archive"')
})

test.each([
  ['workspaces: [', /line 1: /],
  ['workspaces: []', /^line 1: workspaces: must not be empty$/],
  ['- just a list', /^line 1: the file: must be an object$/],
  ['workspaces:\n  - slug: acme\n  - slug: acme/prod\n    slug: acme/prod\n', /line 4: Map keys must be unique/],
])('the file %j is refused', async (content, message) => {
  await writeFile(file, content)
  expect((await reportedLines()).join('\n')).toMatch(message)
})

test.each([
  ['workspaces: *missing', 'has an alias without an anchor'],
  ['workspaces: "a\\0b"', 'contains a NUL character'],
])('the text %j is refused', async (content, message) => {
  await writeFile(file, content)
  await expect(apply()).rejects.toThrow(message)
})

test('the command prints no secret, and its exit status shows drift', async () => {
  const relay = async (...options: string[]) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL('../../../src/main.ts', import.meta.url)), ...options], {
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: database.url,
        RELAY_SECRET_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
        ...secrets,
      },
    })
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    for (const secret of everySecret) expect(output + errors).not.toContain(secret)
    return { status: child.exitCode, output, errors }
  }
  const dryRun = ['apply', '-f', file, '--dry-run', '--exit-code']
  const planned = await relay(...dryRun)
  expect(planned).toMatchObject({ status: 2, output: expect.stringContaining('create       acme/prod  destination Archive\n') })
  expect(planned.output).toContain('update       acme/prod  settings\n             max_retries: 10 -> 8\n')
  expect(planned.output).not.toMatch(/^unchanged/m)
  expect(planned.output).toMatch(/Nothing was changed\. A run would report: 10 created, 1 updated, 0 deleted, 1 unchanged, /)
  const applied = await relay('apply', '-f', file, '--print-new-keys')
  expect(applied).toMatchObject({ status: 0, output: expect.stringMatching(/api key billing \(member\): relay_\S+\n/) })
  expect(await relay(...dryRun)).toMatchObject({ status: 0 })
  await edit(({ destinations, connections, repositories }) => {
    destinations[1]!.config['url'] = 'https://dms.example.com/other?token=canary-8841'
    destinations[1]!.config['max_concurrent_deliveries'] = 3
    Object.assign(connections[0]!, { settings: { path_template: '{doc_id}/{comp_id}' } })
    repositories[0]!['signature_verification'] = false
  })
  await writeFile(join(folder, 'secrets/archive-password'), 'canary-8842')
  const changes = await relay('apply', '-f', file, '--dry-run')
  expect(changes.errors).toBe('')
  expect(changes.output.split('\n')).toEqual([
    'update       acme/prod  destination Archive',
    '             credentials',
    'update       acme/prod  destination DMS',
    '             config.url',
    '             config.max_concurrent_deliveries: 4 -> 3',
    'update       acme/prod  repository Z1',
    '             signature_verification: true -> false',
    'update       acme/prod  connection Invoices to the archive and the DMS',
    '             settings.path_template: "{repo_id}/{yyyy}/{doc_id}/{comp_id}" -> "{doc_id}/{comp_id}"',
    expect.stringMatching(/^Nothing was changed\. A run would report: 0 created, 4 updated, 0 deleted, \d+ unchanged, /),
    '',
  ])
  await writeFile(join(folder, 'secrets/archive-password'), filePassword)
  await writeFile(file, example)
  const exported = await relay('export', 'acme/prod')
  expect(parse(exported.output)).toMatchObject({ workspaces: [{ slug: 'acme/prod' }] })
  expect(exported.errors).toContain('Warning: acme/prod: url of DMS is in the file as it is, and may contain a key.\n')
  expect(exported.errors).not.toContain('https:')

  await edit(({ destinations }) => (destinations[1]!.config['url'] = 'not a url'))
  const refused = await relay(...dryRun, '--json')
  expect(refused).toMatchObject({
    status: 1,
    output: '',
    errors: expect.stringMatching(/line \d+: acme\/prod, destination DMS, config\.url: /),
  })
})

test('the JSON schema accepts the example and an export, and refuses what the command refuses', async () => {
  const schema = JSON.parse(await readFile(new URL('../../../docs/relay.schema.json', import.meta.url), 'utf8')) as object
  const validate = addFormats.default(new Ajv2020({ strict: false, allErrors: true }), { mode: 'full' }).compile(schema)
  const issuesIn = (document: unknown) => (validate(document) ? [] : validate.errors!.map(({ instancePath }) => instancePath))
  expect(issuesIn(parse(example))).toEqual([])
  await apply()
  expect(issuesIn(parse(await exportAll()))).toEqual([])
  await edit(({ destinations, notifications }) => {
    destinations[0]!.config = {}
    destinations[1]!.credentials = { secret: 'written-into-the-file' }
    notifications[0]!['events'] = ['document.delivered']
  })
  const issues = issuesIn(parse(await readFile(file, 'utf8')))
  for (const path of ['destinations/0/config', 'destinations/1/credentials/secret', 'notifications/0/events/0']) {
    expect(issues).toContain(`/workspaces/0/${path}`)
  }
})

test('credentials that no key opens are written again, and cannot be exported', async () => {
  await apply()
  await database
    .db('destinations')
    .where({ name: 'DMS' })
    .update({ credentials_sealed: Buffer.from('damaged') })
  await expect(exportAll()).rejects.toThrow('No key in RELAY_SECRET_KEYS opens the credentials of DMS in acme/prod')
  expect(differences(await apply({ printNewKeys: true }))).toEqual([
    ...exampleKeys.map((each) => `create ${each}`),
    'update destination DMS credentials',
  ])
  expect(differences(await apply())).toEqual([])
  expect(await exportAll()).toContain('env: RELAY_CREDENTIAL_ACME_PROD_DMS_SECRET')
})
