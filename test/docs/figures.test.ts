import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readPages } from './commands.ts'

// A measured figure is true on a date, on a machine and for a commit. The rule: a section of the second level that states one names its date, or
// the measurement, test or program that it comes from. A decision record has its date at the beginning.

const root = fileURLToPath(new URL('../../', import.meta.url))
const figure =
  /\d[\d,.]* (?:documents|creates|requests|deliveries|events) (?:per|a) second|\d CPU-ms|\d\/s\b|\bp9[059]\b.*\d|\d[\d,.]* ms of processor|\b[Mm]easured\b[^.]{0,80}\d|\btook \d/
const source = /\b20\d\d-\d\d-\d\d\b|measurements\/|\btest\/[\w./-]+|\bbench\/|script\/(?:bench|faults|production|upgrade)\b/

/** Returns the headings of the sections of a page that state a measured figure and no source. */
const unsourced = (page: string): string[] =>
  page
    .replaceAll(/^( *)```.*?^\1```$/gms, '')
    .split(/^(?=## )/m)
    .filter((section) => figure.test(section.replaceAll(/\s+/g, ' ')) && !source.test(section))
    .map((section) => section.split('\n')[0]!)

test('every section of README.md, CONTRIBUTING.md and docs that states a measured figure names where it comes from', async () => {
  const pages = (await readPages()).filter(({ path }) => path.endsWith('.md') && !path.startsWith('docs/adr/'))
  const found = pages.map(({ path, text }) => ({ path, sections: unsourced(text) }))
  expect(found.filter(({ sections }) => sections.length > 0)).toEqual([])
})

test.each([
  'It takes 5 CPU-ms.',
  'It carries 276 documents per second.',
  'p95 93 ms alone',
  'measured with 100 clients',
  'an upgrade took 39 seconds',
])('the rule finds "%s", and accepts it with a date, or with the measurement', (sentence) => {
  expect(unsourced(`# A\n\n## B\n\n${sentence}\n`)).toEqual(['## B'])
  expect(unsourced(`# A\n\n## B\n\n${sentence} Measured on 2026-11-24.\n`)).toEqual([])
  expect(unsourced(`# A\n\n## B\n\n${sentence} See [accept](measurements/bench/accept.md).\n`)).toEqual([])
})

test('docs/reliability.md states the totals of the fault table, and each row that falls short', () => {
  const textOf = (path: string) => readFileSync(join(root, 'docs', path), 'utf8')
  const rows = textOf('measurements/faults.md')
  const page = textOf('reliability.md')
  const [, all, met, short] = /(\d+) rows run: (\d+) met every goal, (\d+) are known/.exec(rows)!
  expect(page.replaceAll(/\s+/g, ' ')).toContain(`${all} rows were run: ${met} met every goal, and ${short} are known to fall short`)
  const known = [...rows.matchAll(/^- `([\w-]+)`: known: (.*)$/gm)].map(([, name, reason]) => `| \`${name}\` | ${reason} |`)
  expect(known.filter((row) => !page.includes(row))).toEqual([])
})

/** Returns the first column of numbers of a table in `docs/measurements/bench/`, by the names of the rows. */
const readColumn = (name: string): Map<string, number> => {
  const text = readFileSync(join(root, `docs/measurements/bench/${name}.md`), 'utf8')
  return new Map([...text.matchAll(/^\| ([^|]+) \| ([\d.,]+)/gm)].map(([, row, value]) => [row!, Number(value!.replaceAll(',', ''))]))
}
const monthMs = 30 * 86_400_000

test('README.md states the price of a document as it was measured', () => {
  const page = readFileSync(join(root, 'README.md'), 'utf8').replaceAll(/\s+/g, ' ')
  const parts = [...readColumn('relay')].filter(
    ([row]) => row.startsWith('ours: CPU ms per document: ') && !/: (?:baseline worker|queue)$/.test(row),
  )
  expect(parts.map(([row]) => row.split(': ').at(-1))).toEqual(['postgres', 'temporal', 'relay server'])
  const cpuMs = parts.reduce((sum, [, value]) => sum + value, 0)
  expect(page).toContain(`takes ${cpuMs.toFixed(0)} CPU-ms with PostgreSQL and Temporal`)
  expect(page).toContain(`one core has time for ${(monthMs / cpuMs / 1_000_000).toFixed(0)} million a month`)
  const latencies = readColumn('latency')
  const stated = /arrives (\d+) ms \((p\d+)\) or (\d+) ms \((p\d+)\) after the answer/.exec(page)!
  for (const [value, row] of [stated.slice(1, 3), stated.slice(3, 5)]) expect(latencies.get(row!)?.toFixed(0)).toBe(value)
})
