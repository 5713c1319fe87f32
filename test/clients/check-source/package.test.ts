import { readFile } from 'node:fs/promises'

// What clients/check-source installs is what its entry imports, directly or through others. One import too many would bring the database.

interface Manifest {
  version: string
  dependencies: Record<string, string>
  engines: object
}

const root = new URL('../../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, root), 'utf8')
const manifestOf = async (path: string) => JSON.parse(await read(`${path}package.json`)) as Manifest

/** Returns the files that an entry imports, types included, and the packages that these import. */
const importsOf = async (entry: string) => {
  const [files, packages] = [new Set([entry]), new Set<string>()]
  // The iteration of a set includes what is added during it.
  for (const path of files) {
    for (const [, specifier = ''] of (await read(path)).matchAll(/(?:^(?:import|export)\b[^'"]*? from |\bimport\()'([^']+)'/gm)) {
      if (specifier.startsWith('.')) files.add(new URL(specifier, new URL(path, root)).href.slice(root.href.length))
      else if (!specifier.startsWith('node:')) packages.add(specifier)
    }
  }
  return { files: [...files], packages: [...packages] }
}

test('the package content-server-check imports nothing of the database, Temporal or the HTTP server of the relay', async () => {
  const { files, packages } = await importsOf('clients/check-source/main.ts')
  expect(files).toEqual(expect.arrayContaining(['clients/check-source/src/checks/load.ts', 'src/security/asn1.ts']))
  const rooms = new Set(files.map((path) => path.slice(0, path.lastIndexOf('/'))))
  expect([...rooms].toSorted()).toEqual([
    'clients/check-source',
    'clients/check-source/src',
    'clients/check-source/src/checks',
    'src/base',
    'src/cli',
    'src/content-server',
    'src/security',
  ])
  expect(packages.toSorted()).toEqual(['asn1js', 'commander', 'undici'])
  expect((await importsOf('src/cli/check-source.ts')).packages).toContain('knex')
})

test('it names the packages that it imports, with the versions of the relay', async () => {
  const [relay, own] = [await manifestOf(''), await manifestOf('clients/check-source/')]
  const { packages } = await importsOf('clients/check-source/main.ts')
  expect(own).toMatchObject({ version: relay.version, engines: relay.engines })
  expect(own.dependencies).toEqual(Object.fromEntries(packages.map((name) => [name, relay.dependencies[name]])))
})
