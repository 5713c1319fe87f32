import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { parse, stringify } from 'yaml'
import { applyFile } from '../../src/commands/apply.ts'
import { isDrift, type ApplyOptions } from '../../src/commands/change.ts'
import { withApplyDeps } from '../../src/commands/apply-deps.ts'
import { exportWorkspaces } from '../../src/commands/export.ts'
import { UserError } from '../../src/errors.ts'
import { apiKeyParts } from '../support/api-key.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'

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
let example: string

beforeAll(async () => {
  const page = await readFile(new URL('../../docs/configuration-as-code.md', import.meta.url), 'utf8')
  example = /```yaml\n([^]*?)```/.exec(page)![1]!
})
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
  api_keys: Item[]
  repositories: (Item & { repo_id: string })[]
  destinations: (Item & { config: Record<string, unknown>; credentials?: Record<string, unknown> })[]
  connections: Item[]
  notifications: Item[]
}

/** Writes the example to the file, after a change. */
const edit = async (change: (workspace: Workspace) => void) => {
  const document = parse(example) as { workspaces: [Workspace] }
  change(document.workspaces[0])
  await writeFile(file, stringify(document))
}

const tables = [
  'workspaces',
  'api_keys',
  'repositories',
  'destinations',
  'connections',
  'connection_repositories',
  'connection_destinations',
  'notifications',
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

const differences = (changes: Awaited<ReturnType<typeof apply>>) =>
  changes
    .filter(({ action }) => action !== 'unchanged')
    .map(({ kind, name, action, fields }) => [action, kind, name, ...(fields ? [fields.join(', ')] : [])].join(' '))

const refusal = async (options: ApplyOptions = {}, variables: NodeJS.ProcessEnv = secrets): Promise<string[]> => {
  const before = await snapshot()
  const thrown: unknown = await apply(options, variables).catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(UserError)
  expect(await snapshot()).toBe(before)
  return (thrown as UserError).message
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
}

test('the example of the documentation creates everything, and a second run changes and records nothing', async () => {
  const empty = await snapshot()
  const plan = await apply({ dryRun: true, printNewKeys: true })
  expect(await snapshot()).toBe(empty)

  const applied = await apply({ printNewKeys: true })
  expect(differences(applied)).toEqual([
    'create workspace acme/prod',
    expect.stringContaining('update settings acme/prod max_retries, content_days, receiver_allowed_cidrs, rfc.url'),
    'create api_key billing (member)',
    'create repository Z1',
    'create repository Z2',
    'create destination Archive',
    'create destination DMS',
    'create destination Operators',
    'create connection Invoices to the archive and the DMS',
    'create connection Delivery notes',
    'create notification Failures',
  ])
  const key = applied.find(({ kind }) => kind === 'api_key')?.key
  expect(key).toMatch(/^relay_/)
  expect(applied).toEqual(plan.map((change) => (change.kind === 'api_key' ? { ...change, key } : change)))
  const entries = await auditEvents()
  expect(new Set(entries.map(({ actor_type }) => actor_type))).toEqual(new Set(['system']))
  expect(entries.map(({ event }) => event)).toEqual([
    'settings.updated',
    'apikey.created',
    'repository.created',
    'repository.created',
    'repository.updated',
    'destination.created',
    'destination.created',
    'destination.created',
    'connection.created',
    'connection.created',
    'notification.created',
  ])
  expect(await database.db('repositories').where({ status: 'inactive' }).pluck('repo_id')).toEqual(['Z2'])

  const before = await snapshot()
  for (const secret of everySecret) expect(before + JSON.stringify(applied)).not.toContain(secret)
  expect(before).not.toContain(apiKeyParts(key!).secret)
  expect((await apply({ prune: true, printNewKeys: true })).filter(isDrift)).toEqual([])
  expect(await snapshot()).toBe(before)
})

test('a missing API key is reported, and is not created without the option', async () => {
  expect((await apply()).filter(({ kind }) => kind === 'api_key')).toEqual([
    { workspace: 'acme/prod', kind: 'api_key', name: 'billing (member)', action: 'not_created' },
  ])
  expect(await database.db('api_keys')).toEqual([])
  expect(differences(await apply())).toEqual(['not_created api_key billing (member)'])
})

test('only what differs is changed, and credentials are compared with the stored ones', async () => {
  await apply({ printNewKeys: true })
  const recorded = (await auditEvents()).length
  await edit(({ settings, repositories, destinations, connections, notifications }) => {
    settings['max_retries'] = 9
    repositories[0]!['signature_verification'] = false
    destinations[1]!.config = { url: 'https://dms.example.com/v2' }
    connections[0]!['destinations'] = ['DMS', 'Operators']
    connections[1]!['is_active'] = true
    notifications[0]!['quiet_seconds'] = 60
  })
  await writeFile(join(folder, 'secrets/archive-password'), 'another-password')
  const expected = [
    'update settings acme/prod max_retries',
    'update repository Z1 signature_verification',
    'update destination Archive credentials',
    'update destination DMS config.url, config.max_concurrent_deliveries',
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
    'repository.updated',
    'destination.updated',
    'destination.updated',
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

test('what is not in the file is reported, and deleted with --prune only', async () => {
  await apply({ printNewKeys: true })
  await edit((workspace) => {
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
    'api_key billing (member)',
  ]
  const update = 'update connection Invoices to the archive and the DMS destinations'
  const left = await apply({ dryRun: true })
  expect(differences(left).toSorted()).toEqual([update, ...gone.map((each) => `not_in_file ${each}`)].toSorted())
  expect(left.filter(isDrift)).toHaveLength(1)
  expect(await database.db('notifications')).toHaveLength(1)

  expect(differences(await apply({ prune: true }))).toEqual([update, ...gone.map((each) => `delete ${each}`)])
  expect(await database.db('destinations').whereNull('deleted_at').pluck('name')).toEqual(['Archive'])
  expect(await database.db('repositories').whereNull('deleted_at').pluck('repo_id')).toEqual(['Z1'])
  expect(await database.db('connections').pluck('name')).toEqual(['Invoices to the archive and the DMS'])
  expect(await database.db('api_keys').whereNull('revoked_at')).toEqual([])
  expect(differences(await apply({ prune: true }))).toEqual([])
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
  expect((await apply()).filter(isDrift)).toHaveLength(11)
})

test('two runs at the same time create everything once', async () => {
  const runs = await Promise.allSettled([apply(), apply()])
  const refused = runs.flatMap((run) => (run.status === 'rejected' ? [run.reason as unknown] : []))
  expect(refused.length).toBeLessThan(2)
  for (const thrown of refused) expect(thrown).toBeInstanceOf(UserError)
  expect(await database.db('workspaces')).toHaveLength(1)
  expect(await database.db('destinations')).toHaveLength(3)
  expect(differences(await apply())).toEqual(['not_created api_key billing (member)'])
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
  const exported = await exportAll()
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
    'update tier compliance',
    expect.stringContaining('update settings acme/prod rfc.url'),
    'create api_key billing (member)',
  ])
  await writeFile(file, await exportAll())
  const variables = {
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_USERNAME: secrets.ARCHIVE_USER,
    RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD: filePassword,
    RELAY_CREDENTIAL_ACME_PROD_DMS_SECRET: secrets.DMS_SECRET,
  }
  expect(differences(await apply({}, variables))).toEqual([])
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
    workspace.connections[0]!['repositories'] = ['Z1', 'Z9']
    workspace.notifications[0]!['destination'] = 'Nobody'
  })
  const at = 'workspaces[0]'
  const issues = await refusal()
  expect(issues.toSorted()).toEqual(
    [
      `${at}.colour: unknown key`,
      `${at}.settings.max_retries: must be at least 0`,
      `${at}.repositories[2].repo_id: is used by an item before this one`,
      `${at}.destinations[0].config.folder: unknown key`,
      `${at}.destinations[0].credentials.username: the environment variable NOT_SET is not set`,
      `${at}.destinations[0].credentials.password: the file missing cannot be read (ENOENT)`,
      `${at}.destinations[1].config.url: must be a URL`,
      `${at}.destinations[2].credentials.password: must be { env: NAME } or { file: PATH }`,
      `${at}.connections[0].repositories[1]: this workspace of the file has no repository "Z9"`,
      `${at}.notifications[0].destination: this workspace of the file has no destination "Nobody"`,
    ].toSorted(),
  )
  expect(issues.join()).not.toContain('written-into-the-file')
})

test('what only the database can tell is reported with its path, and nothing is changed', async () => {
  await apply()
  await edit(({ settings, destinations, notifications }) => {
    settings['audit_days'] = null
    destinations[1] = { name: 'DMS', connector_type: 'directory', config: { path: '/x' } }
    notifications[0]!['destination'] = 'Archive'
  })
  expect(await refusal()).toEqual([expect.stringContaining('workspaces[0].destinations[1].config.path: is not allowed')])
  await edit(({ settings, destinations, notifications }) => {
    settings['audit_days'] = null
    destinations[1] = { ...destinations[2]!, name: 'DMS' }
    notifications[0]!['destination'] = 'Archive'
  })
  expect(await refusal()).toEqual([
    expect.stringContaining('workspaces[0].settings.audit_days: must be a number'),
    expect.stringContaining('workspaces[0].destinations[1].connector_type: cannot be changed'),
    expect.stringContaining('workspaces[0].notifications[0].destination: must be a destination of the type email or webhook'),
  ])
})

test('two objects with one name are refused, in the workspace as in an export', async () => {
  await apply()
  await database.db('destinations').where({ name: 'DMS' }).update({ name: 'Archive' })
  expect(await refusal()).toEqual([
    expect.stringContaining('workspaces[0].destinations[0]: the workspace has 2 destinations with this name'),
  ])
  await expect(exportAll()).rejects.toThrow('acme/prod has several destinations with the name "Archive"')
})

test.each([
  ['workspaces: [', /line 1: /],
  ['workspaces: []', /^workspaces: must not be empty$/],
  ['- just a list', /^the file: must be an object$/],
  ['workspaces:\n  - slug: acme\n  - slug: acme/prod\n    slug: acme/prod\n', /line 4: Map keys must be unique/],
])('the file %j is refused', async (content, message) => {
  await writeFile(file, content)
  expect((await refusal()).join('\n')).toMatch(message)
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
    const child = spawn(process.execPath, [fileURLToPath(new URL('../../src/main.ts', import.meta.url)), ...options], {
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
  expect(planned.output).toMatch(/Nothing was changed\. A run would report: 9 created, 1 updated, 0 deleted, 1 unchanged, /)
  const applied = await relay('apply', '-f', file, '--print-new-keys')
  expect(applied).toMatchObject({ status: 0, output: expect.stringMatching(/api key billing \(member\): relay_\S+\n/) })
  expect(await relay(...dryRun)).toMatchObject({ status: 0 })
  const exported = await relay('export', 'acme/prod')
  expect(parse(exported.output)).toMatchObject({ workspaces: [{ slug: 'acme/prod' }] })
  expect(exported.errors).toContain('Warning: acme/prod: url of DMS is in the file as it is, and may contain a key.\n')
  expect(exported.errors).not.toContain('https:')

  await edit(({ destinations }) => (destinations[1]!.config['url'] = 'not a url'))
  const refused = await relay(...dryRun, '--json')
  expect(refused).toMatchObject({ status: 1, output: '', errors: expect.stringContaining('workspaces[0].destinations[1].config.url: ') })
})

test('the JSON schema accepts the example and an export, and refuses what the command refuses', async () => {
  const schema = JSON.parse(await readFile(new URL('../../docs/relay.schema.json', import.meta.url), 'utf8')) as object
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
    'create api_key billing (member)',
    'update destination DMS credentials',
  ])
  expect(differences(await apply())).toEqual([])
  expect(await exportAll()).toContain('env: RELAY_CREDENTIAL_ACME_PROD_DMS_SECRET')
})
