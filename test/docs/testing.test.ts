import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const faultTable = 'docs/measurements/faults.md'
const page = readFileSync(join(root, 'docs/testing.md'), 'utf8')
const claims = page
  .slice(page.indexOf('## Claims'))
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| Claim'))
  .map((line) => line.split('|').map((cell) => cell.trim()))

test('every claim of docs/testing.md names a test that exists, by its file and its title, or the rows of a file', () => {
  expect(claims.length).toBeGreaterThan(15)
  const missing = claims.filter(([, , named]) => {
    const [, file, title] = /^`([^`]+)`(?:: (.+))?$/.exec(named!) ?? []
    if (file === undefined || !existsSync(join(root, file))) return true
    return title === undefined ? !file.startsWith('faults/rows/') : !readFileSync(join(root, file), 'utf8').includes(title)
  })
  expect(missing).toEqual([])
})

test('every row of the fault table that a claim names exists', () => {
  const names = new Set([...readFileSync(join(root, faultTable), 'utf8').matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name))
  const named = claims.flatMap(([, , , seed]) =>
    seed!.startsWith('row') ? [...seed!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!) : [],
  )
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((name) => !names.has(name))).toEqual([])
})
