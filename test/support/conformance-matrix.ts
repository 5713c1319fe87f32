import { readFileSync } from 'node:fs'

interface Outcome {
  ancestorTitles: string[]
  title: string
  status: string
}

interface Results {
  testResults: { testResults: Outcome[] }[]
}

const page = new URL('../../docs/connectors/README.md', import.meta.url)
const [begin, end] = ['<!-- matrix: made by npm run conformance -->\n', '<!-- end of matrix -->']
const marks: Record<string, string> = { passed: 'ok', failed: 'FAILED' }

/**
 * Returns the outcome of every row of test/connectors/conformance.ts for every kind of the run. A kind has only the
 * rows that apply to it.
 */
const columnsOf = (results: Results) => {
  const columns = new Map<string, Map<string, string>>()
  const doubles = new Set<string>()
  for (const { ancestorTitles, title, status } of results.testResults.flatMap((file) => file.testResults)) {
    const [, kind, double] = /^the (\w+)( \(against a double\))? connector$/.exec(ancestorTitles[0] ?? '') ?? []
    if (kind === undefined) continue
    if (double) doubles.add(kind)
    columns.set(kind, (columns.get(kind) ?? new Map<string, string>()).set(title, marks[status] ?? 'not run'))
  }
  return { columns, doubles }
}

const tableOf = (kinds: readonly string[], { columns, doubles }: ReturnType<typeof columnsOf>) => {
  const rows = [...new Set(kinds.flatMap((kind) => [...columns.get(kind)!.keys()]))]
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  const table = [
    line(['row', ...kinds.map((kind) => (doubles.has(kind) ? `${kind} (double)` : kind))]),
    line(['---', ...kinds.map(() => '---')]),
    ...rows.map((row) => line([row, ...kinds.map((kind) => columns.get(kind)!.get(row) ?? 'does not apply')])),
  ]
  return `${table.join('\n')}\n`
}

/**
 * A jest reporter that prints the matrix after conformance suites. Fails a run of all kinds whose matrix differs from
 * docs/connectors/README.md.
 */
export default class ConformanceMatrix {
  private difference: Error | undefined

  async onRunComplete(_contexts: unknown, results: Results) {
    const outcome = columnsOf(results)
    if (outcome.columns.size === 0) return
    // Imported only if needed, because the registry loads every SDK, which takes two seconds.
    const { connectorTypes } = await import('../../src/connectors/index.ts')
    const kinds = connectorTypes.filter((kind) => outcome.columns.has(kind))
    const table = tableOf(kinds, outcome)
    process.stdout.write(`\nConformance of the connectors (test/connectors/conformance.ts)\n\n${table}\n`)
    const isComplete = kinds.length === connectorTypes.length
    if (!isComplete || [...outcome.columns.values()].some((column) => [...column.values()].some((mark) => mark !== 'ok'))) return
    const text = readFileSync(page, 'utf8')
    const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
    if (text.slice(from, to).trim() !== table.trim()) {
      this.difference = new Error('docs/connectors/README.md contains another matrix: paste the one above')
      process.stdout.write(`${this.difference.message}\n`)
    }
  }

  getLastError() {
    return this.difference
  }
}
