import { readFile } from 'node:fs/promises'
import { refusals } from '../../src/domain/refusal-codes.ts'

test('docs/source-system.md lists exactly the codes of refusals, with their status', async () => {
  const page = await readFile(new URL('../../docs/source-system.md', import.meta.url), 'utf8')
  const rows = page.split('\n').flatMap((line) => {
    const [, codes, status] = /^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| (\d{3}) \|/.exec(line) ?? []
    return (codes?.match(/[a-z_]+/g) ?? []).map((code) => [code, Number(status)])
  })
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(Object.entries(refusals).map(([code, { status }]) => [code, status])))
})
