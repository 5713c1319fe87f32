import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createReadTokenFile, tokenFilePath } from '../../../src/connectors/shared/token-files.ts'
import { failure } from '../payloads.ts'

const base = await realpath(await mkdtemp(join(tmpdir(), 'relay-tokens-')))
const root = join(base, 'tokens')
await mkdir(join(root, '..data'), { recursive: true })
await writeFile(join(base, 'secret'), 'a secret of the relay')
await writeFile(join(root, '..data', 'azure'), 'header.payload.signature\n')
await symlink(join('..data', 'azure'), join(root, 'azure'))
await symlink(join(base, 'secret'), join(root, 'outside'))
await writeFile(join(root, 'empty'), ' \n')
await writeFile(join(root, 'long'), 'x'.repeat(64 * 1_024 + 1))
await mkdir(`${root}-of-others`)
await writeFile(join(`${root}-of-others`, 'azure'), 'of others')
afterAll(() => rm(base, { recursive: true }))

const read = createReadTokenFile([{ value: root }, { value: join(base, 'missing') }])

test('a file below an allowed directory is read, also through the links that Kubernetes makes', async () => {
  expect(await read(join(root, 'azure'), 'acme/invoices')).toBe('header.payload.signature')
  const linked = join(base, 'link')
  await symlink(root, linked)
  expect(await createReadTokenFile([{ value: linked }])(join(linked, 'azure'), 'acme/invoices')).toBe('header.payload.signature')
})

test.each([
  ['no directory is allowed', createReadTokenFile([]), join(root, 'azure')],
  ['another directory', read, join(base, 'secret')],
  ['a file of the machine', read, '/proc/self/environ'],
  ['a directory whose name begins alike', read, join(`${root}-of-others`, 'azure')],
  ['a link that leads outside', read, join(root, 'outside')],
  ['a file that does not exist outside', read, join(base, 'nothing')],
])('%s: the file is not read, and nothing is told of it', async (_what, readFile, path) => {
  const error = await failure(readFile(path, 'acme/invoices'))
  expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
  expect(error.message).toBe(
    `${path} is not below a directory that the operator of the relay allows to acme/invoices for tokens (RELAY_TOKEN_FILE_ROOTS), or a symbolic link leads outside`,
  )
})

test('a directory that is allowed to one workspace, or to each its own, is read by no other', async () => {
  const own = join(root, 'acme/first')
  await mkdir(own, { recursive: true })
  await writeFile(join(own, 'token'), 'of acme/first')
  for (const grant of [{ workspace: 'acme/first', value: own }, { value: join(root, '{workspace}') }]) {
    const readOwn = createReadTokenFile([grant])
    expect(await readOwn(join(own, 'token'), 'acme/first')).toBe('of acme/first')
    for (const other of ['acme/second', 'acme/first2', 'other/first']) {
      const error = await failure(readOwn(join(own, 'token'), other))
      expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
    }
    await mkdir(join(root, 'acme/second'), { recursive: true })
    await symlink(join(own, 'token'), join(root, 'acme/second/token')).catch(() => {})
    expect(await failure(readOwn(join(root, 'acme/second/token'), 'acme/second'))).toMatchObject({ permanent: true })
  }
})

test.each([
  ['missing', /ENOENT/],
  ['empty', /is empty/],
  ['long', /more than 64 KiB/],
])('a file that is %s is read again by the next attempt', async (name, message) => {
  const error = await failure(read(join(root, name), 'acme/invoices'))
  expect(error).toMatchObject({ code: 'credentials_refused', permanent: false, message: expect.stringMatching(message) as string })
})

test.each(['tokens/azure', '/var/run/../etc/passwd', '/var//run', '/a\0b', './x'])('%j is no path of such a file', (path) => {
  expect(tokenFilePath.safeParse(path).success).toBe(false)
})
