import { readFile } from 'node:fs/promises'
import { refusals } from '../../src/domain/refusal-codes.ts'

const rowsOf = async (page: string) =>
  (await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8')).split('\n').flatMap((line) => {
    const [, codes, status] = /^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| (\d{3}) \|/.exec(line) ?? []
    return (codes?.match(/[a-z_]+/g) ?? []).map((code) => [code, Number(status)] as const)
  })
const known = Object.entries(refusals).map(([code, { status }]) => [code, status] as const)

test('docs/errors.md lists every code of a refusal, and docs/source-system.md no other, with their status', async () => {
  expect(await rowsOf('errors.md')).toEqual(expect.arrayContaining(known))
  const explained = await rowsOf('source-system.md')
  expect(explained.length).toBeGreaterThan(10)
  expect(known).toEqual(expect.arrayContaining(explained))
})
