import { readFile } from 'node:fs/promises'
import { checkLockfile, type Lockfile } from '../../script/audit.ts'

const integrity = 'sha512-9lpSSU4Mly3mrtruwLs1eLK6+gzbzqeBFwRNjIjE+9LuDpWdYctrQlQ3ej1Ilgi7gknpsTRnPoLP8DpCHqHIJw=='
const lockfileOf = (entry: object): Lockfile => ({
  packages: { '': {}, 'node_modules/a/node_modules/left': { version: '1.0.0', integrity, license: 'MIT', ...entry } },
})

test('package-lock.json has no problem', async () => {
  const lockfile = JSON.parse(await readFile(new URL('../../package-lock.json', import.meta.url), 'utf8')) as Lockfile
  expect(Object.keys(lockfile.packages).length).toBeGreaterThan(300)
  expect(checkLockfile(lockfile)).toEqual([])
})

test.each([
  ['without an address', {}],
  ['of this repository', { link: true, integrity: undefined, license: undefined }],
  ['for development with any licence', { dev: true, license: 'GPL-3.0' }],
])('a package %s is accepted', (_, entry) => {
  expect(checkLockfile(lockfileOf(entry))).toEqual([])
})

test.each([
  ['of another registry', { resolved: 'https://npm.evil.example/left.tgz' }, 'comes from'],
  ['of a Git repository', { resolved: 'git+ssh://git@github.com/left/left.git#abc' }, 'comes from'],
  ['of an archive', { resolved: 'https://github.com/left/left/archive/main.tar.gz' }, 'comes from'],
  ['without a hash', { integrity: undefined }, 'has no hash'],
  ['with a weak hash', { integrity: 'md5-rL0Y20zC+Fzt72VPzMSk2A==' }, 'has no hash'],
  ['with a script', { hasInstallScript: true }, 'runs a script'],
  ['with another licence', { license: 'AGPL-3.0' }, 'has the licence AGPL-3.0'],
  ['without a licence', { license: undefined }, 'has the licence of an unknown name'],
])('a package %s is reported', (_, entry, problem) => {
  expect(checkLockfile(lockfileOf(entry))).toEqual([expect.stringContaining(`node_modules/a/node_modules/left: ${problem}`)])
})
