import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createKey } from '../../src/commands/api-key.ts'
import { createCertificates } from '../../src/db/certificates.ts'
import { diagnose, exitStatusOf } from '../../src/doctor.ts'
import { hardeningChecklist } from '../../src/hardening/checklist.ts'
import { createKeyRing, rfcCredentialsOf } from '../../src/security/seal.ts'
import { readCertificate } from '../../src/security/certificate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { createSigner } from '../support/signer.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const keys = [`new:${randomBytes(32).toString('base64')}`, `old:${randomBytes(32).toString('base64')}`]

const examine = (variables: Record<string, string> = {}) =>
  diagnose({
    ...testConfig({ DATABASE_URL: database.url, RELAY_SECRET_KEYS: keys.join(','), ...variables }),
    TEMPORAL_START_TIMEOUT_MS: 100,
  })

const warningsOf = async (name: string) => (await examine()).find((finding) => finding.name === name)!.warnings.join('\n')

test('every line of the checklist in docs/security.md is a finding with the same name, wording and remedy, and no other is', async () => {
  const page = await readFile(new URL('../../docs/security.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('<!-- hardening:'), page.indexOf('<!-- end -->', page.indexOf('<!-- hardening:')))
  const lines = [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].slice(1).map(([, ...cells]) => cells)
  expect(lines).toEqual(hardeningChecklist.map(({ name, requirement, remedy }) => [name, requirement, remedy]))

  const findings = await examine()
  for (const [name, requirement, remedy] of lines) {
    const { status, message, remedy: found } = findings.find((finding) => finding.name === name)!
    expect({ name, message }).toEqual({ name, message: requirement!.replaceAll('`', '') })
    expect({ name, remedy: found }).toEqual({ name, remedy: status === 'warning' ? remedy : null })
  }
})

test('findings are in the order of their urgency, after the one that names the environment', async () => {
  const order = ['failed', 'not_checked', 'warning', 'ok']
  const [environment, ...findings] = await examine()
  expect(environment!.name).toBe('environment')
  const statuses = findings.map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set(order))
  expect(statuses).toEqual(statuses.toSorted((one, other) => order.indexOf(one) - order.indexOf(other)))
  for (const { status, ok } of findings) expect({ status, ok }).toEqual({ status, ok: status === 'ok' || status === 'warning' })
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
  const received = await certificates.receive({ workspaceId, repositoryId, authId: 'CN=TST', received: signer.der, facts, actor }, 10)
  await signer.remove()
  const { id } = (received as { certificate: { id: string } }).certificate
  expect(await warningsOf('signer certificates')).toBe('')

  await certificates.setStatus(workspaceId, repositoryId, id, 'active', actor)
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
      .update({ rfc_credentials_sealed: createKeyRing([entry]).seal({}, rfcCredentialsOf(workspaceId)) })
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
