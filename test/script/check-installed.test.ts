import { findDifferences } from '../../script/check-installed.ts'

const locked = { packages: { '': { version: '1.0.0' }, 'node_modules/left': { version: '1.2.3', integrity: 'sha512-a' } } }

test.each([
  ['the locked package', { 'node_modules/left': { version: '1.2.3', integrity: 'sha512-a' } }, []],
  ['a workspace', { 'node_modules/client': { link: true } }, []],
  ['nothing', {}, []],
  [
    'another version',
    { 'node_modules/left': { version: '1.2.4', integrity: 'sha512-b' } },
    ['node_modules/left is 1.2.4, package-lock.json has 1.2.3'],
  ],
  [
    'another hash',
    { 'node_modules/left': { version: '1.2.3', integrity: 'sha512-b' } },
    ['node_modules/left 1.2.3 has another hash than in package-lock.json'],
  ],
  [
    'a package that is not locked',
    { 'node_modules/right': { version: '0.0.1', integrity: 'sha512-c' } },
    ['node_modules/right 0.0.1 is not in package-lock.json'],
  ],
])('compares %s with package-lock.json', (_, packages, differences) => {
  expect(findDifferences({ packages }, locked)).toEqual(differences)
})
