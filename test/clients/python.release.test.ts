import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'

// The package document-relay-client for Python, as it is published.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const { path: workDir } = share(await createFolder())
const checkout = join(workDir, 'checkout/clients/python')
const generated = /\/(api|models|client\.py|errors\.py|types\.py|__pycache__)$/

/** Copies what the repository contains of the client. */
const copyClient = (target: string) =>
  cp(join(root, 'clients/python'), target, { recursive: true, filter: (path) => !generated.test(path) })

const python = (cwd: string, args: string[], ...paths: string[]) => {
  const tools = process.env['TEST_API_TOOLS_DIR']
  if (!tools) throw new Error('TEST_API_TOOLS_DIR is not set: the set-up of the tests could not install the tools of the client for Python')
  const env = { PATH: process.env['PATH'], HOME: workDir, PYTHONPATH: [...paths, tools].join(':') }
  // What mypy finds is on standard output.
  return run('python3', args, { cwd, env, maxBuffer: 16 * 1024 * 1024 }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`python3 ${args.join(' ')}\n${stdout}${stderr}`)
    },
  )
}

const user = `
from typing import assert_type

from document_relay_client import create_client, pages, unwrap, wait_for_document
from document_relay_client.api.documents import list_documents
from document_relay_client.models import Document, DocumentStatusInput

relay = create_client("https://relay.example", "acme/prod", "relay_key")


def first() -> str:
    for page in pages(list_documents.sync, client=relay, status=DocumentStatusInput.FAILED):
        assert_type(page.data, list[Document])
    documents = unwrap(list_documents.sync(client=relay)).data
    return wait_for_document(relay, documents[0].id).attributes.status
`
const wrong = `${user}
pages(list_documents.sync, client=relay, statuses="failed")
`

// Builds, virtual environments and a check of types, which take minutes while other tests build programs.
test('the package is built from a checkout, contains what is generated, and is built again from its own source', async () => {
  await mkdir(join(workDir, 'checkout/clients'), { recursive: true })
  await copyClient(checkout)
  await cp(join(root, 'openapi.json'), join(workDir, 'checkout/openapi.json'))
  const built = join(workDir, 'built')
  await python(checkout, ['-m', 'hatchling', 'build', '-t', 'sdist', '-d', built])
  const [source] = await readdir(built)
  expect(source).toMatch(/^document_relay_client-.+\.tar\.gz$/)
  const unpacked = join(workDir, 'unpacked')
  await mkdir(unpacked)
  await run('tar', ['-xzf', join(built, source!), '--strip-components=1', '-C', unpacked])
  await python(unpacked, ['-m', 'hatchling', 'build', '-t', 'wheel', '-d', built])
  await python(checkout, ['-m', 'hatchling', 'build', '-t', 'wheel', '-d', join(workDir, 'again')])

  const wheel = (await readdir(built)).find((name) => name.endsWith('.whl'))
  const packed = [join(built, source!), join(built, wheel!)]
  expect(await python(workDir, ['-m', 'twine', '--no-color', 'check', '--strict', ...packed])).not.toMatch(/WARNING|FAILED/)
  const list = 'import sys, zipfile; print("\\n".join(sorted(zipfile.ZipFile(sys.argv[1]).namelist())))'
  const files = await python(workDir, ['-c', list, join(built, wheel!)])
  expect(files).toBe(await python(workDir, ['-c', list, join(workDir, 'again', wheel!)]))
  const outside = files
    .trim()
    .split('\n')
    .filter((path) => !path.startsWith('document_relay_client/'))
  expect(outside.map((path) => path.replace(/^document_relay_client-[^/]+\//, ''))).toEqual([
    'METADATA',
    'RECORD',
    'WHEEL',
    'licenses/LICENSE',
  ])
  for (const path of ['py.typed', 'pages.py', 'client.py', 'api/documents/list_documents.py', 'models/document.py']) {
    expect(files).toContain(`document_relay_client/${path}\n`)
  }

  const installed = join(workDir, 'installed')
  await python(workDir, ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-index', '--target', installed, join(built, wheel!)])
  const folder = join(workDir, 'user')
  await mkdir(folder)
  await writeFile(join(folder, 'user.py'), user)
  await writeFile(join(folder, 'wrong.py'), wrong)
  const check = (file: string) => python(folder, ['-m', 'mypy', '--strict', '--cache-dir', join(workDir, 'cache'), file], installed)
  expect(await check('user.py')).toContain('Success')
  await expect(check('wrong.py')).rejects.toThrow('Unexpected keyword argument "statuses"')
  await python(folder, ['user.py'], installed)
}, 600_000)

test('what is written by hand, the tests and the example are strictly typed, linted and formatted', async () => {
  const folder = join(workDir, 'typed')
  await copyClient(folder)
  await python(folder, ['generate.py', join(root, 'openapi.json')])
  expect(await python(folder, ['-m', 'mypy', '--cache-dir', join(workDir, 'typed-cache')])).toContain('Success')
  expect(await python(folder, ['-m', 'ruff', 'check', '--no-cache', '.'])).toContain('All checks passed!')
  expect(await python(folder, ['-m', 'ruff', 'format', '--no-cache', '--check', '.'])).toContain('already formatted')
}, 600_000)
