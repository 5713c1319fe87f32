import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createKeyRing, credentialsOf } from '../src/security/seal.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { createWiring, testConfig } from './support/factories.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

interface Ran {
  status: number
  stdout: string
  stderr: string
}

const relay = (args: string[], variables: Record<string, string> = { DATABASE_URL: database.url }): Promise<Ran> =>
  new Promise((resolve) => {
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], TEMPORAL_ADDRESS: '127.0.0.1:1', ...variables }
    execFile(process.execPath, [main, ...args], { env }, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })

const json = async (args: string[]) => {
  const { status, stdout, stderr } = await relay([...args, '--json'])
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as unknown
}

describe('relay on the command line', () => {
  it('makes workspaces and keys, lists them, and shows a key once', async () => {
    const created = await json(['workspace', 'create', 'acme/invoices'])
    expect(created).toEqual({ id: expect.any(String), user_slug: 'acme', workspace_slug: 'invoices' })
    expect(await json(['workspace', 'list'])).toEqual([created])

    expect(await json(['workspace', 'tier', 'acme/invoices', 'compliance'])).toEqual({ ...(created as object), tier: 'compliance' })
    expect(await relay(['workspace', 'tier', 'acme/invoices', 'gold'])).toMatchObject({ status: 1 })

    const key = (await json(['key', 'create', 'acme/invoices', '--level', 'admin'])) as { id: string; key: string }
    expect(key).toEqual({ id: expect.any(String), key: expect.stringMatching(new RegExp(`^relay_${key.id}_`)), level: 'admin' })
    const listed = await json(['key', 'list', 'acme/invoices'])
    expect(listed).toMatchObject([{ id: key.id, level: 'admin' }])
    expect(JSON.stringify(listed)).not.toContain(key.key)

    expect(await json(['key', 'list'])).toEqual(listed)

    const hers = ['--member', 'ada@example.org', '--expires-at', '2099-01-01T00:00:00Z', '--name', 'Reader']
    await json(['key', 'create', 'acme/invoices', '--level', 'viewer', ...hers])
    expect(await json(['key', 'list', 'acme/invoices'])).toMatchObject([
      { id: key.id, user_id: null, expires_at: null },
      { name: 'Reader', user_id: expect.any(String), expires_at: '2099-01-01T00:00:00.000Z' },
    ])
    expect(await json(['key', 'revoke', key.id])).toEqual({ id: key.id, revoked: true })
    expect(await relay(['key', 'revoke', key.id])).toMatchObject({ status: 1 })
  })

  it('rotates sealing keys, and ends with 1 where no key opens some credentials, naming whose they are', async () => {
    const keyOf = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`
    const [older, newer, lost] = [keyOf('2025', 1), keyOf('2026', 2), keyOf('2024', 3)]
    const { workspaceId, destinations } = await createWiring(database.db, [{ name: 'archive' }])
    const id = destinations['archive']!
    const owner = credentialsOf(workspaceId, id)
    const sealUnder = (key: string) =>
      database
        .db('destinations')
        .where({ id })
        .update({ credentials_sealed: createKeyRing([key]).seal({ password: 'canary' }, owner) })
    const rotate = (...more: string[]) =>
      relay(['keys', 'rotate', ...more], { DATABASE_URL: database.url, RELAY_SECRET_KEYS: `${newer},${older}` })

    await sealUnder(older)
    const first = await rotate('--json')
    expect({ ...first, stdout: JSON.parse(first.stdout) }).toEqual({ status: 0, stdout: { resealed: 1, unreadable: [] }, stderr: '' })
    const { credentials_sealed } = await database.db('destinations').where({ id }).first('credentials_sealed')
    expect(createKeyRing([newer]).open(credentials_sealed, owner)).toEqual({ password: 'canary' })
    expect(await rotate()).toEqual({ status: 0, stdout: 'Sealed anew under key 2026: 0.\n', stderr: '' })

    await sealUnder(lost)
    const ended = await rotate('--json')
    expect({ ...ended, stdout: JSON.parse(ended.stdout) }).toEqual({
      status: 1,
      stdout: { resealed: 0, unreadable: [id] },
      stderr: `No key of RELAY_SECRET_KEYS opens the credentials of these destinations, save them again: ${id}\n`,
    })
  })

  it('prints the description of the API, for which it needs nothing', async () => {
    const { status, stdout } = await relay(['openapi', '--json'], {})
    const committed = await readFile(new URL('../openapi.json', import.meta.url), 'utf8')
    expect({ status, stdout }).toEqual({ status: 0, stdout: committed })
  })

  it('migrates, and says that search attributes can wait where Temporal is away', async () => {
    expect(await json(['migrate'])).toEqual({ applied: [], search_attributes: false })
  })

  it('tells by doctor what is away, and ends with 1', async () => {
    const { status, stdout } = await relay(['doctor', '--json'])
    expect(status).toBe(1)
    const findings = JSON.parse(stdout) as { name: string; ok: boolean }[]
    expect(Object.fromEntries(findings.map(({ name, ok }) => [name, ok]))).toEqual({
      node: true,
      database: true,
      schema: true,
      'secret keys': false,
      temporal: false,
      'search attributes': false,
      schedules: false,
    })
  })

  it.each([
    [['workspace', 'create', 'Acme'], 'user/workspace'],
    [['key', 'create', 'no/where', '--level', 'admin'], 'no workspace no/where'],
    [['key', 'create', 'acme/invoices', '--level', 'king'], 'Allowed choices are viewer, member, admin'],
    [['api'], 'RELAY_SECRET_KEYS is empty'],
  ])('answers %j with a sentence, not a stack trace', async (args, sentence) => {
    const { status, stderr } = await relay(args)
    expect(status).toBe(1)
    expect(stderr).toContain(sentence)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it('says what to do where the database was never migrated', async () => {
    const bare = new URL(database.url)
    bare.pathname = '/postgres'
    const { status, stderr } = await relay(['workspace', 'list'], { DATABASE_URL: bare.href })
    expect(status).toBe(1)
    expect(stderr).toBe('relay: the database has no schema of ours yet: run relay migrate\n')
  })

  it('says which port is taken, and that Temporal is not there', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const port = String((taken.address() as AddressInfo).port)
    const variables = { DATABASE_URL: database.url, RELAY_SECRET_KEYS: testConfig().RELAY_SECRET_KEYS.join(','), RELAY_HOST: '127.0.0.1' }
    expect(await relay(['api'], { ...variables, RELAY_PORT: port })).toMatchObject({
      status: 1,
      stderr: `relay: port ${port} is in use: choose another RELAY_PORT\n`,
    })
    taken.close()
    expect(await relay(['worker'], variables)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^relay: Temporal cannot be reached at 127\.0\.0\.1:1: /),
    })
  })

  it('says what is missing where there is no database', async () => {
    const { status, stderr } = await relay(['workspace', 'list'], { RELAY_DATA_DIR: '/nowhere/at/all' })
    expect(status).toBe(1)
    expect(stderr).toBe('relay: DATABASE_URL is not set, and no running script/server was found in RELAY_DATA_DIR\n')
  })
})
