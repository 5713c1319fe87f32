import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCertificates } from '../../../src/access/certificates.ts'
import { createKey } from '../../../src/access/key-administration.ts'
import { createMembers } from '../../../src/access/members.ts'
import { newId } from '../../../src/base/ids.ts'
import { describeClockDifference } from '../../../src/cli/doctor/check.ts'
import { diagnose, exitStatusOf } from '../../../src/cli/doctor/doctor.ts'
import { hardeningChecks } from '../../../src/cli/doctor/hardening-checks.ts'
import { checkDisk, reportTemporalSettings } from '../../../src/cli/doctor/operation-checks.ts'
import { systemActor } from '../../../src/db/audit.ts'
import { readFreeBytes } from '../../../src/observe/metrics.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { readCertificate } from '../../../src/security/certificate.ts'
import { createKeyRing, rfcCredentialsOf } from '../../../src/security/seal.ts'
import { insertDocument } from '../../api/insert-document.ts'
import { createTestDatabase } from '../../support/database.ts'
import { createRoutes, testConfig } from '../../support/factories.ts'
import { createFolder } from '../../support/folder.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { startOpenIdServer } from '../../support/openid-provider.ts'
import { share } from '../../support/share.ts'
import { writeSignInFile } from '../../support/sign-in-file.ts'
import { createSigner } from '../../support/signer.ts'

const database = share(await createTestDatabase())

const keys = [`new:${randomBytes(32).toString('base64')}`, `old:${randomBytes(32).toString('base64')}`]

const examine = (variables: Record<string, string> = {}) =>
  diagnose({
    ...testConfig({ DATABASE_URL: database.url, RELAY_SECRET_KEYS: keys.join(','), ...variables }),
    TEMPORAL_START_TIMEOUT_MS: 100,
  })

const warningsOf = async (name: string) => (await examine()).find((finding) => finding.name === name)!.warnings.join('\n')

test('every line of the checklist in docs/security.md is a finding with the same name, wording and remedy, and no other is', async () => {
  const page = await readFile(new URL('../../../docs/security.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('<!-- hardening:'), page.indexOf('<!-- end -->', page.indexOf('<!-- hardening:')))
  const lines = [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].slice(1).map(([, ...cells]) => cells)
  expect(lines).toEqual(hardeningChecks.map(({ name, requirement, remedy }) => [name, requirement, remedy]))

  const findings = await examine()
  for (const [name, requirement, remedy] of lines) {
    const { status, message, remedy: found } = findings.find((finding) => finding.name === name)!
    expect({ name, message }).toEqual({ name, message: requirement!.replaceAll('`', '') })
    expect({ name, remedy: found }).toEqual({ name, remedy: status === 'warning' ? remedy : null })
  }
})

test('findings are in the order of their urgency, after the one that names the environment, and say what to do', async () => {
  const order = ['failed', 'not_checked', 'warning', 'ok']
  const [environment, ...findings] = await examine()
  expect(environment!.name).toBe('environment')
  const statuses = findings.map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set(order))
  expect(statuses).toEqual(statuses.toSorted((one, other) => order.indexOf(one) - order.indexOf(other)))
  for (const { name, status, ok, remedy } of findings) {
    expect({ name, status, ok }).toEqual({ name, status, ok: status === 'ok' || status === 'warning' })
    expect({ name, remedy }).toEqual({ name, remedy: status === 'ok' ? null : expect.stringMatching(/\.$/) })
  }
  // Without Temporal.
  expect(findings.filter(({ status }) => status === 'not_checked').map(({ name }) => name)).toEqual([
    'workers',
    'schedules',
    'Temporal clock',
    'Temporal settings',
    'search attributes',
  ])
})

test('an outgoing proxy is asked, if there is one, and neither its address nor its password is shown', async () => {
  const proxy = await startForwardProxy()
  const found = async (variables: Record<string, string>) => (await examine(variables)).find(({ name }) => name === 'outgoing proxy')
  expect(await found({})).toBeUndefined()
  expect(await found({ RELAY_OUTBOUND_PROXY: proxy.urlWithLogin })).toMatchObject({ status: 'ok' })
  const refused = await found({ RELAY_OUTBOUND_PROXY: proxy.url.replace('//', '//relay:canary@') })
  expect(refused).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('refuses the user and password of the variable (407)'),
  })
  await proxy.stop()
  const away = new URL(proxy.urlWithLogin)
  away.port = String(await findFreePort())
  const down = await found({ RELAY_OUTBOUND_PROXY: away.href })
  expect(down).toMatchObject({ status: 'failed', message: expect.stringContaining('cannot be reached (ECONNREFUSED)') })
  expect(JSON.stringify([refused, down])).not.toMatch(/canary|127\.0\.0\.1/)
})

test('the provider of the sign-in is discovered, its redirect URI is named, and workspaces that do not exist are warned about', async () => {
  await using provider = await startOpenIdServer({ accounts: {} })
  await using folder = await createFolder()
  const path = join(folder.path, 'oidc.json')
  const access = [{ value: 'a', workspace: 'acme/none', level: 'admin' }]
  provider.register([])
  const found = async (change: object = {}, variables: Record<string, string> = { RELAY_BASE_URL: 'https://relay.example/sap/' }) => {
    const RELAY_OIDC_FILE = await writeSignInFile(path, provider, { access, ...change })
    return (await examine({ RELAY_OIDC_FILE, ...variables })).find(({ name }) => name === 'sign-in')!
  }
  expect((await examine()).find(({ name }) => name === 'sign-in')).toBeUndefined()
  expect(await found()).toMatchObject({
    status: 'warning',
    message: `Example Corp answers as ${provider.issuer}. It has to know the redirect URI https://relay.example/sap/console/sign-in/callback`,
    warnings: ['The file gives access to workspaces that do not exist: acme/none.'],
  })
  expect((await found({}, {})).warnings[0]).toMatch(/RELAY_BASE_URL is not set/)
  expect((await found({ claim: 'preferred_username' })).warnings[0]).toMatch(/claim preferred_username, which .* may give to somebody else/)
  expect(await found({ issuer: provider.issuer.replace('localhost', '127.0.0.1') })).toMatchObject({
    status: 'failed',
    message: expect.stringContaining(`its issuer is ${provider.issuer}`) as string,
  })
  expect(await found({ name: '' })).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('name must not be empty') as string,
  })
  provider.setAway(true)
  const away = await found()
  expect(away).toMatchObject({ status: 'failed', message: expect.stringContaining('has answered 503') as string })
  expect(JSON.stringify(away)).not.toContain(provider.clientSecret)
})

test('a workspace of the operator that does not exist is warned about', async () => {
  const found = async (variables: Record<string, string>) => (await examine(variables)).find(({ name }) => name === 'operator')
  expect(await found({})).toBeUndefined()
  expect(await found({ RELAY_OPERATOR_WORKSPACE: 'acme/gone' })).toMatchObject({
    status: 'warning',
    warnings: ['There is no workspace acme/gone: the operator is told of no incident.'],
  })
  const { workspaceSlug } = await createRoutes(database.db, [])
  expect(await found({ RELAY_OPERATOR_WORKSPACE: `acme/${workspaceSlug}` })).toMatchObject({ status: 'ok' })
})

test('the file of the notices for the operator is read, and its destination tested, without a message that people read', async () => {
  await using folder = await createFolder()
  const target = await startHttpTarget()
  const path = join(folder.path, 'notices.json')
  const found = async (content: object) => {
    await writeFile(path, JSON.stringify(content))
    const findings = await examine({ RELAY_NOTICES_FILE: path, RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8' })
    return findings.find(({ name }) => name === 'notices')!
  }
  const webhook = (change: object = {}) => ({
    connector_type: 'webhook',
    config: { url: `${target.origin}/hook-canary-of-the-address`, ...change },
  })
  expect((await examine()).find(({ name }) => name === 'notices')).toBeUndefined()
  expect((await examine({ RELAY_NOTICES_FILE: join(folder.path, 'none.json') })).find(({ name }) => name === 'notices')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('none.json cannot be read'),
  })
  expect(await found({ connector_type: 'sftp', config: {} })).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('must be a kind of destination that takes notices'),
  })
  expect(await found({ ...webhook(), credentials: { secret: { env: 'NOTICES_SECRET_THAT_IS_NOT_SET' } } })).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('NOTICES_SECRET_THAT_IS_NOT_SET'),
  })
  expect(target.arrivals).toEqual([])
  expect(await found(webhook({ notice_format: 'slack' }))).toMatchObject({ status: 'ok', message: expect.stringContaining('not asked') })
  expect(target.arrivals).toEqual([])
  expect(await found(webhook())).toMatchObject({ status: 'ok', message: expect.stringContaining('answered 200 to a ping') })
  expect(target.arrivals).toMatchObject([{ headers: { 'x-relay-event-type': 'ping' } }])
  target.answerWith((_, response) => void response.writeHead(401).end())
  const refused = await found(webhook())
  expect(refused).toMatchObject({ status: 'failed', message: expect.stringContaining('credentials_refused'), remedy: expect.any(String) })
  await target.stop()
  const away = await found(webhook())
  expect(away).toMatchObject({ status: 'failed', message: expect.stringContaining('connection_refused') })
  expect(JSON.stringify([refused, away])).not.toContain('canary')
})

test('what loses documents comes before what delays them, and both before what is a risk', async () => {
  const { db } = database
  const { repositoryId, workspaceId, repoId, destinations } = await createRoutes(db, [{ name: 'archive' }])
  await db('destinations').where({ id: destinations['archive'] }).update({ status: 'failing' })
  await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'failed' })
  await db('repositories').insert({
    ...(await db('repositories').where({ id: repositoryId }).first()),
    id: newId(),
    repo_id: 'Z9',
  })
  const names = (await examine()).filter(({ status }) => status === 'warning').map(({ name }) => name)
  const places = ['unconnected repositories', 'documents', 'destinations', 'open receivers', 'public address'].map((name) =>
    names.indexOf(name),
  )
  expect(places).not.toContain(-1)
  expect(places).toEqual(places.toSorted((one, other) => one - other))
})

test('an older schema fails with its remedy, and what needs it is not checked', async () => {
  const { db } = database
  const [newest] = await db('knex_migrations').orderBy('id', 'desc').limit(1)
  await db('knex_migrations').where({ id: newest.id }).delete()
  const findings = await examine()
  await db('knex_migrations').insert(newest)
  expect(findings.find(({ name }) => name === 'schema')).toMatchObject({
    status: 'failed',
    remedy: expect.stringContaining('Run relay migrate'),
  })
  expect(findings.find(({ name }) => name === 'partitions')).toMatchObject({
    status: 'not_checked',
    remedy: 'Correct schema first, then run relay doctor again.',
  })
})

const GiB = 1024 ** 3

test('the disk of an embedded database is reported by what is left on it; another one by the size of the database', async () => {
  const withFree = (bytes: number) => checkDisk(database.db, '/data', async () => bytes)
  expect(await checkDisk(database.db, undefined)).toMatch(/^The database has 0\.\d GiB\. PostgreSQL does not show/)
  expect(await withFree(50 * GiB)).toMatchObject({
    message: expect.stringContaining('50.0 GiB are free on the disk of /data'),
    warnings: [],
  })
  expect(await withFree(5 * GiB)).toMatchObject({ warnings: [expect.stringContaining('5.0 GiB are free')] })
  await expect(withFree(1 * GiB)).rejects.toMatchObject({
    message: expect.stringContaining('1.0 GiB are free'),
    remedy: expect.stringContaining('Free space'),
  })
  // The real disk.
  expect(await checkDisk(database.db, tmpdir(), async (directory) => Math.max(await readFreeBytes(directory), 20 * GiB))).toMatchObject({
    warnings: [],
  })
})

test('a clock that is more than 5 seconds away from every possible time here is reported', () => {
  const reading = (theirs: number) => describeClockDifference('Temporal', { before: 10_000, theirs, after: 12_000 })
  expect(reading(5_001)).toEqual([])
  expect(reading(16_999)).toEqual([])
  expect(reading(4_000)).toEqual(['The clock of Temporal is 6 seconds behind.'])
  expect(reading(72_000)).toEqual(['The clock of Temporal is 60 seconds ahead.'])
})

test('a Temporal server that ignores fairness keys is a warning, and a newer one names the settings that nobody can read', () => {
  expect(reportTemporalSettings('1.28.1').warnings).toEqual([expect.stringContaining('Temporal 1.28.1 ignores fairness keys')])
  for (const version of ['1.29.1', '1.31.2', '2.0.0', '']) {
    const { warnings, message } = reportTemporalSettings(version)
    expect({ version, warnings }).toEqual({ version, warnings: [] })
    expect(message).toContain('matching.useNewMatcher and matching.enableFairness')
  }
})

test('warnings change the exit status only if they count, failures always', async () => {
  const findings = await examine()
  const withoutFailures = findings.filter(({ ok }) => ok)
  expect(exitStatusOf(findings, false)).toBe(1)
  expect([exitStatusOf(withoutFailures, false), exitStatusOf(withoutFailures, true)]).toEqual([0, 1])
  expect(
    exitStatusOf(
      withoutFailures.filter(({ status }) => status === 'ok'),
      true,
    ),
  ).toBe(0)
})

test('a role with rights beyond the database of the relay is reported', async () => {
  // The role of the tests creates a database for each file.
  expect(await warningsOf('database role')).toMatch(/^The role .*can create databases/)
})

test('API keys that never expire or are not used are named, and revoked ones are not', async () => {
  const { db } = database
  const { workspaceSlug } = await createRoutes(db, [])
  const workspace = `acme/${workspaceSlug}`
  const forever = await createKey(db, { workspace, level: 'admin' })
  const limited = await createKey(db, { workspace, level: 'admin', expiresAt: new Date(Date.now() + 86_400_000).toISOString() })
  const unused = await createKey(db, { workspace, level: 'viewer' })
  const used = await createKey(db, { workspace, level: 'viewer' })
  const revoked = await createKey(db, { workspace, level: 'admin' })
  const longAgo = new Date(Date.now() - 100 * 86_400_000)
  await db('api_keys').whereIn('id', [unused.id, used.id, revoked.id]).update({ created_at: longAgo })
  await db('api_keys').where({ id: used.id }).update({ last_used_at: new Date() })
  await db('api_keys').where({ id: revoked.id }).update({ revoked_at: new Date() })
  expect(await warningsOf('admin keys')).toBe(`These keys never expire: ${workspace} ${forever.id}.`)
  expect(await warningsOf('unused API keys')).toBe(`These keys were not used for 90 days: ${workspace} ${unused.id}.`)
  expect(await warningsOf('admin keys')).not.toContain(limited.id)
})

test('certificates that are weak or expire soon, and repositories with a free order of parameters, are named', async () => {
  const { db } = database
  const { workspaceId, workspaceSlug, repositoryId } = await createRoutes(db, [])
  await db('repositories').where({ id: repositoryId }).update({ signature_verification: true, signed_parameter_order: 'any' })
  const signer = await createSigner('RSA 1024')
  const certificates = createCertificates(db)
  const actor = { type: 'system', userId: null } as const
  const facts = readCertificate(signer.der)!
  const received = await certificates.receive(
    { workspaceId, repositoryId, authId: 'CN=TST', received: signer.der, facts, actor, sentFrom: '192.0.2.1' },
    10,
  )
  await signer.remove()
  const { id } = (received as { certificate: { id: string } }).certificate
  expect(await warningsOf('signer certificates')).toBe('')

  await certificates.setStatus({ workspaceId, repositoryId, actor }, id, 'active')
  const name = `acme/${workspaceSlug} Z1 CN=TST`
  const lineOf = async (start: string) => (await warningsOf('signer certificates')).split('\n').find((line) => line.startsWith(start))
  expect(await lineOf('These certificates have a short key')).toContain(name)
  // The certificate of a signer of the tests is valid for 30 days.
  expect(await lineOf('These certificates expire within 30 days')).toContain(name)
  await db('certificates')
    .where({ id })
    .update({ valid_to: new Date(Date.now() - 1_000), key_bits: 2_048 })
  expect(await lineOf('These certificates have a short key')).toBeUndefined()
  expect(await lineOf('These certificates have expired')).toContain(name)
  expect(await warningsOf('signature rules')).toContain(`in any order: acme/${workspaceSlug} Z1.`)

  await db('repositories').where({ id: repositoryId }).update({ status: 'inactive' })
  expect(await warningsOf('signer certificates')).toBe('')
  expect(await warningsOf('signature rules')).toBe('')
})

test('credentials that an older key has sealed are named', async () => {
  const { db } = database
  const { workspaceId } = await createRoutes(db, [])
  const seal = (entry: string) =>
    db('workspaces')
      .where({ id: workspaceId })
      .update({ rfc_credentials_sealed: createKeyRing([entry]).seal({}, rfcCredentialsOf(workspaceId, [])) })
  await seal(keys[1]!)
  expect(await warningsOf('key rotation')).toBe(`Other keys than new have sealed the credentials of: workspace ${workspaceId}.`)
  await seal(keys[0]!)
  expect(await warningsOf('key rotation')).toBe('')
})

test('tables whose partitions end within a week are named', async () => {
  const { db } = database
  expect(await warningsOf('partitions')).toBe('')
  const { rows } = await db.raw<{ rows: { name: string }[] }>(`
    select relname as name
    from pg_inherits
    join pg_class on pg_class.oid = inhrelid
    where inhparent = 'captured_bodies'::regclass
    order by name desc
    limit 10
  `)
  for (const { name } of rows) await db.raw('drop table ??', [name])
  expect(await warningsOf('partitions')).toBe('The partitions of these tables end too early: captured_bodies.')
})

test('drift from the file of relay apply is a warning, and an invalid file is a failure', async () => {
  const { db } = database
  const { workspaceId, workspaceSlug } = await createRoutes(db, [])
  const folder = await mkdtemp(join(tmpdir(), 'relay-doctor-'))
  const file = join(folder, 'relay.yaml')
  const config = testConfig({ DATABASE_URL: database.url, RELAY_SECRET_KEYS: keys.join(',') })
  const driftFrom = async (name: string, email?: string) => {
    const members = email === undefined ? '' : `members: [{ email: ${email} }], `
    await writeFile(file, `workspaces: [{ slug: acme/${workspaceSlug}, ${members}repositories: [{ repo_id: Z1, name: ${name} }] }]`)
    const options = { source: 'the test', isEmbedded: false, workspacesFile: { path: file, variables: {} } }
    const findings = await diagnose({ ...config, TEMPORAL_START_TIMEOUT_MS: 100 }, options)
    return findings.find((finding) => finding.name === 'drift')
  }
  expect(await driftFrom('Inbox')).toMatchObject({ status: 'ok', message: `the workspaces are as ${file} describes them` })
  const warnings = [`not as ${file} describes them: repository Z1 of acme/${workspaceSlug}`]
  expect(await driftFrom('Invoices')).toMatchObject({ status: 'warning', warnings, remedy: expect.stringContaining('relay apply -f') })
  expect(await driftFrom('5')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining(`acme/${workspaceSlug}, repository Z1, name: must be a string`),
  })
  expect(await db('repositories').where({ name: 'Inbox' })).not.toEqual([])
  expect(await driftFrom('Inbox', 'ada@example.com')).toMatchObject({
    status: 'warning',
    warnings: [`not as ${file} describes them: member ada@example.com of acme/${workspaceSlug}`],
  })
  await createMembers(db).insert(workspaceId, { email: 'ada@example.com', name: 'Ada' }, systemActor)
  expect(await driftFrom('Inbox', 'ada@example.com')).toMatchObject({ status: 'warning' })
  expect(await driftFrom('Inbox', 'ada@example.com, name: Ada')).toMatchObject({ status: 'ok' })
  expect((await examine()).map(({ name }) => name)).not.toContain('drift')
  await rm(folder, { recursive: true })
})
