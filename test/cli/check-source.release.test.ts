import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { checksOf } from '../../clients/check-source/src/checks.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'
import { createFolder } from '../support/folder.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const scene = share(await startScene())

/** Starts `relay check source`. Without variables, it has no database. */
const start = (args: string[], variables: Record<string, string> = {}) => {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = execFile(process.execPath, [main, 'check', 'source', ...args], { env: { PATH, HOME, NODE_COMPILE_CACHE, ...variables } })
  const ended = Promise.all([once(child, 'close'), text(child.stdout!), text(child.stderr!)])
  return { child, ended: ended.then(([[status], stdout, stderr]) => ({ status: status as number | null, stdout, stderr })) }
}
const run = (...args: Parameters<typeof start>) => start(...args).ended

describe('relay check source --url, without a database', () => {
  test('prints a line per check, and exits with 0 if none fails', async () => {
    await using server = await startOldContentServer()
    const { status, stdout, stderr } = await run(['--url', server.url, '--repository', 'Z1', '--profile', 'smoke'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^ok {4}server-info: serverInfo reports the server and the repository as running {2}\d+ ms$/)
    expect(lines.slice(-3)).toEqual([
      `${server.url}, repository Z1 (old content server 1.0), unsigned, profile smoke`,
      expect.stringMatching(/^\d+ passed, 0 failed, 0 not offered, 3 not checked, in \d+\.\d s\.$/),
      'Nothing was left behind: every document of the run is deleted.',
    ])
    expect(server.documents.size).toBe(0)
  })

  test.each(['json', 'junit', 'html'])('prints %s, and exits with 1 if a check fails', async (format) => {
    await using server = await startOldContentServer({ faults: ['range_excludes_end'] })
    const { status, stdout, stderr } = await run(['--url', server.url, '--repository', 'Z1', '--format', format])
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    const failure = {
      json: () => JSON.parse(stdout).results.filter((result: { status: string }) => result.status === 'failed'),
      junit: () => [...stdout.matchAll(/name="([\w-]+): [^"]*" time="[\d.]+"><failure/g)].map(([, id]) => ({ id })),
      html: () => [...stdout.matchAll(/<tr class="failed"><td>failed<\/td><td><code>([\w-]+)/g)].map(([, id]) => ({ id })),
    }[format]!()
    expect(failure).toMatchObject([{ id: 'get-range' }])
  })

  test('signs with a new key, and waits until its certificate is activated', async () => {
    await using server = await startOldContentServer({ isSigned: true })
    const { child, ended } = start(['--url', server.url, '--repository', 'Z1', '--profile', 'smoke', '--throw-away'])
    const [asked] = (await once(child.stderr!, 'data')) as [string]
    expect(asked).toMatch(
      /Activate it for repository Z1: authId CN=content-server-check-[0-9a-f]+,OU=Document Relay, SHA-256 [0-9a-f]{64}\./,
    )
    for (const certificate of server.certificates) certificate.isActive = true
    const { status, stdout } = await ended
    expect(status).toBe(0)
    expect(stdout).toMatch(/ signed, profile smoke\n\d+ passed, 0 failed, 0 not offered, 0 not checked/)
  })

  test('signs with a certificate that the server knows', async () => {
    await using server = await startOldContentServer({ isSigned: true })
    await using folder = await createFolder()
    const { certificate, privateKey } = await createThrowAwayKey('rsa', 'TST', 1)
    const [certificateFile, keyFile] = [join(folder.path, 'certificate.pem'), join(folder.path, 'key.pem')]
    await Promise.all([writeFile(certificateFile, certificate), writeFile(keyFile, privateKey)])
    server.trust(certificate, 'CN=TST')
    const signing = ['--certificate', certificateFile, '--key', keyFile, '--auth-id', 'CN=TST']
    const { status, stdout } = await run(['--url', server.url, '--repository', 'Z1', '--profile', 'smoke', ...signing])
    expect([status, stdout]).toEqual([0, expect.stringContaining('0 failed')])
  })

  test('deletes its documents on Ctrl-C', async () => {
    await using server = await startOldContentServer()
    const { child, ended } = start(['--url', server.url, '--repository', 'Z1', '--profile', 'wire'])
    // While the check of the dates waits for another second.
    for (let printed = ''; !printed.includes('component-headers:');) printed += ((await once(child.stdout!, 'data')) as [string])[0]
    child.kill('SIGINT')
    const outcome = await ended
    expect(outcome).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('The run was stopped before its end.\nNothing was left behind'),
    })
    expect([server.documents.size, server.requests.some((request) => request.startsWith('create'))]).toEqual([0, true])
  })

  test('names an address that nobody listens on', async () => {
    const { status, stdout } = await run(['--url', 'http://127.0.0.1:1/cs', '--repository', 'Z1'])
    expect(status).toBe(1)
    expect(stdout).toContain('FAIL  server-info: serverInfo reports the server and the repository as running: serverInfo was not answered')
    expect(stdout).toContain('ECONNREFUSED')
  })

  test.each<[string, string[]]>([
    ['Name a repository of this relay, as in acme/invoices/Z1, or the address', []],
    ['--url needs --repository', ['--url', 'http://cs.example/']],
    ['ftp://cs.example is not an address', ['--url', 'ftp://cs.example', '--repository', 'Z1']],
    ['ends before the question mark', ['--url', 'http://cs.example/?get', '--repository', 'Z1']],
    ['Signing needs --certificate, --key and --auth-id', ['--url', 'http://cs.example/', '--repository', 'Z1', '--key', 'x']],
    ['--timeout must be a number', ['--url', 'http://cs.example/', '--repository', 'Z1', '--timeout', '0']],
  ])('says what is wrong: %s', async (message, args) => {
    const { status, stderr } = await run(args)
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)])
  })
})

describe('relay check source for a repository of this relay', () => {
  const variables = { DATABASE_URL: scene.database.url, RELAY_BASE_URL: scene.api.baseUrl, TEMPORAL_ADDRESS: '127.0.0.1:1' }

  test('signs if the repository requires it, and leaves no certificate', async () => {
    const { name, repositoryId } = await scene.workspace()
    await scene.db('repositories').where({ id: repositoryId }).update({ signature_verification: true })
    const { status, stdout, stderr } = await run([`${name}/Z1`, '--deliver', '--profile', 'wire', '--format', 'json'], variables)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const wire = checksOf('wire').length
    expect(JSON.parse(stdout)).toMatchObject({ passed: wire, not_checked: 0, signed: true, left_behind: [], server: 'Document Relay 1.0' })
    expect(await scene.db('certificates').where({ repository_id: repositoryId })).toEqual([])
  })

  test('names the destinations before anything is delivered', async () => {
    const { name } = await scene.workspace([{ name: 'archive' }, { name: 'mail' }])
    const { status, stderr } = await run([`${name}/Z1`], variables)
    expect([status, stderr]).toEqual([1, expect.stringContaining('from repository Z1 to archive, mail. Repeat the command with --deliver')])
  })

  test('says that a repository without a connection keeps no document, and that an inactive one refuses requests', async () => {
    const { name, repositoryId } = await scene.workspace()
    await scene.db('connection_repositories').where({ repository_id: repositoryId }).delete()
    const unconnected = await run([`${name}/Z1`, '--deliver'], variables)
    expect(unconnected).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('No connection leads from the repository to a destination'),
    })
    await scene.db('repositories').where({ id: repositoryId }).update({ status: 'inactive' })
    const inactive = await run([`${name}/Z1`, '--deliver'], variables)
    expect(inactive).toMatchObject({ status: 1, stderr: expect.stringContaining('The repository is inactive: it refuses requests.') })
  })

  test.each([
    ['acme/prod', 'is not of the form acme/invoices/Z1'],
    ['acme/prod/NOSUCH', 'There is no repository NOSUCH in acme/prod.'],
    ['acme/nosuch/Z1', 'There is no workspace acme/nosuch.'],
  ])('says that %s does not exist', async (name, message) => {
    const { status, stderr } = await run([name], variables)
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)])
  })
})
