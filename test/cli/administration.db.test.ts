import { createCli } from '../../src/cli/cli.ts'
import { printFailure } from '../../src/cli/output.ts'
import { createKeyRing, credentialsOf } from '../../src/security/seal.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'

// Verbs of administrators, run in this process. test/cli/cli.system.test.ts runs the command.

const database = share(await createTestDatabase())

/** Runs a verb as src/main.ts does. @returns its status and what it prints */
const relay = async (args: string[], variables: Record<string, string> = {}) => {
  const printed = { stdout: '', stderr: '' }
  const { exitCode, stdout, stderr } = process
  const writes = { stdout: stdout.write, stderr: stderr.write }
  const record = (name: keyof typeof printed) => (text: unknown) => {
    printed[name] += String(text)
    return true
  }
  Object.assign(stdout, { write: record('stdout') })
  Object.assign(stderr, { write: record('stderr') })
  process.exitCode = 0
  try {
    await createCli({ DATABASE_URL: database.url, ...variables }).parseAsync(['node', 'relay', ...args])
    return { status: process.exitCode, ...printed }
  } catch (thrown) {
    printFailure(thrown, 'relay')
    return { status: 1, ...printed }
  } finally {
    Object.assign(stdout, { write: writes.stdout })
    Object.assign(stderr, { write: writes.stderr })
    process.exitCode = exitCode
  }
}

const json = async (args: string[]) => {
  const { status, stdout, stderr } = await relay([...args, '--json'])
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as unknown
}

test.each(['2026-13-99', '2026-02-30', '26-1-1', 'yesterday'])('%s is no day', async (day) => {
  const { workspaceSlug } = await createRoutes(database.db, [])
  const commands = [
    ['describe', `acme/${workspaceSlug}`, '--restore-test', day],
    ['proof', 'export', `acme/${workspaceSlug}`, '--day', day],
  ]
  for (const command of commands) {
    expect(await relay(command)).toMatchObject({ status: 1, stderr: expect.stringContaining('is no day, like 2026-11-28.') })
  }
})

test('sets, lists and lifts legal holds, with a reason', async () => {
  const { workspaceId, workspaceSlug } = await createRoutes(database.db, [])
  const name = `acme/${workspaceSlug}`
  expect(await relay(['hold', 'set', name, '--reason', 'x'])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('must name a repository'),
  })
  const set = ['hold', 'set', name, '--object-type', 'BKPF', '--object-id', '10001', '--reason', 'Tax audit']
  const hold = (await json(set)) as { id: string }
  expect(hold).toMatchObject({ scope: 'business_object', erp_object_type: 'BKPF', reason: 'Tax audit', documents: 0, set_by: null })
  expect((await relay(['hold', 'list', name])).stdout).toMatch(/- +business object BKPF 10001 +0 +Tax audit/)
  expect((await relay(['workspace', 'delete', name, '--yes'])).stderr).toContain('It has 1 legal hold: lift them first.')
  expect((await relay(['hold', 'set', name, '--object-type', 'BKPF', '--object-id', '4711', '--reason', 'x'])).stdout).toMatch(
    /: 01[0-9A-Z]+\nIt applies to 0 documents, and to those that arrive later\.\nIs this the type/,
  )
  const others = Array.from({ length: 1_100 }, (_, index) => ({
    id: `${index}`.padStart(26, '0'),
    workspace_id: workspaceId,
    scope: 'repository',
    repo_id: `Z${index}`,
    reason: 'x',
    documents: 0,
  }))
  await database.db('legal_holds').insert(others)
  expect(await json(['hold', 'list', name])).toHaveLength(1_102)
  await database.db('legal_holds').where({ workspace_id: workspaceId }).whereNot({ id: hold.id }).delete()
  const lifted = await relay(['hold', 'lift', name, hold.id, '--reason', 'It has ended'])
  expect(lifted).toMatchObject({ status: 0, stdout: `Lifted the legal hold on business object BKPF 10001: ${hold.id}\n` })
  expect(await json(['hold', 'list', name])).toEqual([])
  const audited = await database.db('audit_logs').where({ workspace_id: workspaceId }).orderBy('id').pluck('event')
  expect(audited).toEqual(['legal_hold.set', 'legal_hold.set', 'legal_hold.lifted'])
  // The next test counts the workspaces.
  expect(await relay(['workspace', 'delete', name, '--yes'])).toMatchObject({ status: 0 })
})

test('creates and lists workspaces and API keys, and prints a key only once', async () => {
  const created = await json(['workspace', 'create', 'acme/invoices'])
  expect(created).toEqual({ id: expect.any(String), user_slug: 'acme', workspace_slug: 'invoices' })
  const { stdout: states } = await relay(['workspace', 'list'])
  expect(states).toMatch(
    /^WORKSPACE +TROUBLE +OPEN +OLDEST OPEN \(UTC\) +LAST REQUEST \(UTC\) +STORED BYTES +ID\n(?:.*\n)*acme\/invoices +- +0 +- +- +0 +\w+\n/,
  )
  const state = {
    ...(created as object),
    attention: 0,
    open: 0,
    failing: 0,
    held: 0,
    refusing: 0,
    oldest_open_at: null,
    last_request_at: null,
    stored_bytes: 0,
    max_bytes: expect.any(Number),
  }
  expect(await json(['workspace', 'list'])).toContainEqual(state)

  expect(await json(['workspace', 'tier', 'acme/invoices', 'compliance'])).toEqual({ ...(created as object), tier: 'compliance' })

  await json(['workspace', 'create', 'acme/unused'])
  const listing = { status: 1, stdout: expect.stringMatching(/^Workspace acme\/unused would be deleted: 0 repositories, /) }
  expect(await relay(['workspace', 'delete', 'acme/unused'])).toMatchObject(listing)
  expect(await json(['workspace', 'delete', 'acme/unused', '--yes'])).toMatchObject({ deleted: true, contents: { documents: 0 } })
  expect(await json(['workspace', 'list'])).toContainEqual(state)

  const key = (await json(['key', 'create', 'acme/invoices', '--level', 'admin'])) as { id: string; key: string }
  expect(key).toEqual({ id: expect.any(String), key: expect.stringMatching(new RegExp(`^relay_${key.id}_`)), level: 'admin' })
  const listed = await json(['key', 'list', 'acme/invoices'])
  expect(listed).toMatchObject([{ id: key.id, level: 'admin' }])
  expect(JSON.stringify(listed)).not.toContain(key.key)

  expect(await json(['key', 'list'])).toEqual(listed)

  const memberOptions = ['--member', 'ada@example.org', '--expires-at', '2099-01-01T00:00:00Z', '--name', 'Reader']
  await json(['key', 'create', 'acme/invoices', '--level', 'viewer', ...memberOptions])
  expect(await json(['key', 'list', 'acme/invoices'])).toMatchObject([
    { id: key.id, user_id: null, expires_at: null },
    { name: 'Reader', user_id: expect.any(String), expires_at: '2099-01-01T00:00:00.000Z' },
  ])
  expect(await json(['key', 'revoke', key.id])).toEqual({ id: key.id, revoked: true })
  const table = (await relay(['key', 'list'])).stdout.trimEnd().split('\n')
  expect(table[0]).toMatch(/^WORKSPACE +NAME +LEVEL +LAST USED \(UTC\) +EXPIRES \(UTC\) +REVOKED \(UTC\) +ID$/)
  expect(table.slice(1)).toEqual([
    expect.stringMatching(new RegExp(`^acme/invoices +made on the command line +admin +- +- +2\\d{3}-[^ ]+ [^ ]+ +${key.id}$`)),
    expect.stringMatching(/^acme\/invoices +Reader +viewer +- +2099-01-01 00:00:00 +- +\w{26}$/),
  ])
  expect(await relay(['key', 'revoke', key.id])).toMatchObject({ status: 1 })
})

test('rotates sealing keys, and exits with 1 and the ids of credentials that no key opens', async () => {
  const keyOf = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`
  const [older, newer, lost] = [keyOf('2025', 1), keyOf('2026', 2), keyOf('2024', 3)]
  const { workspaceId, destinations } = await createRoutes(database.db, [{ name: 'archive', config: { url: 'https://example.org' } }])
  const id = destinations['archive']!
  const owner = credentialsOf(workspaceId, id, [['url', 'https://example.org']])
  const sealWith = (key: string) =>
    database
      .db('destinations')
      .where({ id })
      .update({ credentials_sealed: createKeyRing([key]).seal({ password: 'canary' }, owner) })
  const rotate = (...more: string[]) => relay(['secrets', 'rotate', ...more], { RELAY_SECRET_KEYS: `${newer},${older}` })

  await sealWith(older)
  const first = await rotate('--json')
  expect({ ...first, stdout: JSON.parse(first.stdout) }).toEqual({ status: 0, stdout: { resealed: 1, unreadable: [] }, stderr: '' })
  const { credentials_sealed } = await database.db('destinations').where({ id }).first('credentials_sealed')
  expect(createKeyRing([newer]).open(credentials_sealed, owner)).toEqual({ password: 'canary' })
  expect(await rotate()).toEqual({ status: 0, stdout: 'Credentials re-sealed with key 2026: 0\n', stderr: '' })

  await sealWith(lost)
  const second = await rotate('--json')
  expect({ ...second, stdout: JSON.parse(second.stdout) }).toEqual({
    status: 1,
    stdout: { resealed: 0, unreadable: [id] },
    stderr: `No key in RELAY_SECRET_KEYS opens the credentials of these destinations, enrichments, repositories or workspaces. Enter them again: ${id}\n`,
  })
})
