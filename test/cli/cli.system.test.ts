import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { version } from '../../src/base/version.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

const database = share(await createTestDatabase())

interface RunResult {
  status: number
  stdout: string
  stderr: string
}

const relay = (args: string[], variables: Record<string, string> = { DATABASE_URL: database.url }): Promise<RunResult> =>
  new Promise((resolve) => {
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
    const env = { PATH, HOME, NODE_COMPILE_CACHE, TEMPORAL_ADDRESS: '127.0.0.1:1', ...variables }
    execFile(process.execPath, [main, ...args], { env, maxBuffer: 16 * 2 ** 20 }, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })

describe('the relay command line', () => {
  test.each([
    ['openapi', 'openapi.json'],
    ['json-schema', 'docs/relay.schema.json'],
  ])('%s prints %s without a database', async (verb, path) => {
    const { status, stdout } = await relay([verb, '--json'], {})
    const committed = await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toEqual(JSON.parse(committed))
  })

  test('migrates the database while Temporal is unavailable, and then exits with 1 unless --without-search-attributes', async () => {
    const variables = { DATABASE_URL: database.url, TEMPORAL_START_TIMEOUT_MS: '100' }
    const strict = await relay(['migrate', '--json'], variables)
    expect({ status: strict.status, stdout: JSON.parse(strict.stdout) }).toEqual({
      status: 1,
      stdout: { applied: [], search_attributes: false },
    })
    expect(strict.stderr).toContain('--without-search-attributes')
    const lenient = await relay(['migrate', '--without-search-attributes'], { ...variables, TEMPORAL_START_TIMEOUT_MS: '1000' })
    expect(lenient.status).toBe(0)
    expect(lenient.stderr).toMatch(/^Temporal does not answer at 127\.0\.0\.1:1\. .* Trying again for up to \d+ s\.\n$/)
    expect(lenient.stdout).toContain('Temporal does not answer at 127.0.0.1:1. Check that it runs')
  })

  test('doctor reports what is unavailable in plain words, what it could not check, and exits with 1', async () => {
    const { status, stdout, stderr } = await relay(['doctor', '--json'], { DATABASE_URL: database.url, TEMPORAL_START_TIMEOUT_MS: '500' })
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    const findings = JSON.parse(stdout) as { name: string; status: string; message: string }[]
    expect(Object.fromEntries(findings.map((finding) => [finding.name, finding.status]))).toMatchObject({
      environment: 'ok',
      node: 'ok',
      schema: 'ok',
      'secret keys': 'failed',
      credentials: 'not_checked',
      documents: 'ok',
      'public address': 'warning',
      'sealing keys': 'not_checked',
      temporal: 'failed',
      'search attributes': 'not_checked',
      workers: 'not_checked',
      schedules: 'not_checked',
    })
    const messageOf = (name: string) => findings.find((finding) => finding.name === name)!.message
    expect(findings.find(({ name }) => name === 'temporal')).toMatchObject({
      message: 'Temporal does not answer at 127.0.0.1:1.',
      remedy: 'Check that it runs, and that TEMPORAL_ADDRESS is correct.',
    })
    expect(messageOf('environment')).toContain(new URL(database.url).host)
    expect(stdout).not.toContain(new URL(database.url).password)

    await createRoutes(database.db, [])
    expect((await relay(['doctor'])).stdout).toMatch(
      /^warn {2}open receivers: Everybody who can reach these receivers .*: acme\/\w+ Z1(, .*)?\.\n {6}Do: Turn signature_verification on/m,
    )

    const away = await relay(['doctor'], { DATABASE_URL: 'postgres://relay:canary@127.0.0.1:1/relay', TEMPORAL_START_TIMEOUT_MS: '500' })
    expect(away.stdout).toContain('FAIL  database: PostgreSQL does not answer at 127.0.0.1:1/relay.')
    expect(away.stdout + away.stderr).not.toMatch(/canary|^\s+at /m)
  })

  test('prints its version', async () => {
    expect(await relay(['--version'], {})).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
  })

  test('secrets rotate demands RELAY_SECRET_KEYS, so that it cannot report success with the key of a running script/server', async () => {
    const { status, stderr } = await relay(['secrets', 'rotate'])
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('relay: Set RELAY_SECRET_KEYS to the new key') })
  })

  test.each([
    [['workspace', 'create', 'Acme'], 'user/workspace'],
    [['key', 'create', 'no/where', '--level', 'admin'], 'no workspace no/where'],
    [['key', 'create', 'acme/invoices', '--level', 'king'], 'Allowed choices are viewer, member, admin'],
    [['workspace', 'tier', 'acme/invoices', 'gold'], 'Allowed choices are'],
    [['api'], 'RELAY_SECRET_KEYS is empty'],
  ])('%j prints a message and no stack trace', async (args, message) => {
    const { status, stderr } = await relay(args)
    expect(status).toBe(1)
    expect(stderr).toContain(message)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('an unknown command is answered with a hint, not with the help', async () => {
    const { status, stderr } = await relay(['fnd', 'x'])
    const hint = 'relay --help lists the commands, relay COMMAND --help the options of one.'
    expect({ status, stderr }).toEqual({ status: 1, stderr: `error: unknown command 'fnd'\n(Did you mean find?)\n${hint}\n` })
  })

  test('asks to run relay migrate if the database has no schema', async () => {
    const withoutSchema = new URL(database.url)
    withoutSchema.pathname = '/postgres'
    const { status, stderr } = await relay(['workspace', 'list'], { DATABASE_URL: withoutSchema.href })
    expect(status).toBe(1)
    expect(stderr).toBe('relay: The database has no schema yet. Run: relay migrate\n')
  })

  test('reads variables from a file, and names those that it does not know', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'env-'))
    const path = join(directory, 'relay.env')
    await writeFile(path, `DATABASE_URL=${database.url}\nRELAY_PROT=1\n`)
    const { stdout } = await relay(['--env-file', path, 'doctor', '--json'], { TEMPORAL_ADDRESS: '127.0.0.1:1' })
    await rm(directory, { recursive: true })
    const [environment] = JSON.parse(stdout) as { message: string; warnings: string[] }[]
    expect(environment!.message).toContain(new URL(database.url).host)
    expect(environment!.warnings).toEqual(['The relay does not know the variable RELAY_PROT.'])
  })

  test('ends without an error if the reader of its output has gone', async () => {
    const child = spawn(process.execPath, [main, 'workspace', 'list'], { env: { ...process.env, DATABASE_URL: database.url } })
    child.stdout.destroy()
    const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  test('find ends with 1 if there is no such document', async () => {
    expect(await relay(['find', '4711'])).toMatchObject({ status: 1, stdout: 'No document was found.\n', stderr: '' })
  })

  test('reports that DATABASE_URL is missing', async () => {
    const { status, stderr } = await relay(['workspace', 'list'], { RELAY_DATA_DIR: '/nowhere/at/all' })
    expect(status).toBe(1)
    expect(stderr).toBe(
      'relay: DATABASE_URL is not set, and no script/server runs on the data directory /nowhere/at/all. Set DATABASE_URL, name a file that has it with --env-file, or start script/server.\n',
    )
  })
})
