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
 * rows that apply to it. A kind that runs against several targets has a column for each.
 */
const columnsOf = (results: Results) => {
  const columns = new Map<string, Map<string, string>>()
  for (const { ancestorTitles, title, status } of results.testResults.flatMap((file) => file.testResults)) {
    const [, kind, target] = /^the ([\w-]+)(?: \(against an? (.+)\))? connector$/.exec(ancestorTitles[0] ?? '') ?? []
    if (kind === undefined) continue
    const name = target === undefined ? kind : `${kind} (${target})`
    columns.set(name, (columns.get(name) ?? new Map<string, string>()).set(title, marks[status] ?? 'not run'))
  }
  return columns
}

const tableOf = (names: readonly string[], columns: ReturnType<typeof columnsOf>) => {
  const rows = [...new Set(names.flatMap((name) => [...columns.get(name)!.keys()]))]
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  const table = [
    line(['row', ...names]),
    line(['---', ...names.map(() => '---')]),
    ...rows.map((row) => line([row, ...names.map((name) => columns.get(name)!.get(row) ?? 'does not apply')])),
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
    const columns = columnsOf(results)
    if (columns.size === 0) return
    // Imported only if needed, because the registry loads every SDK, which takes two seconds.
    const { connectorTypes } = await import('../../src/connectors/index.ts')
    const namesOf = (kind: string) => [...columns.keys()].filter((name) => name.split(' ')[0] === kind).toSorted()
    const names = connectorTypes.flatMap(namesOf)
    const table = tableOf(names, columns)
    process.stdout.write(`\nConformance of the connectors (test/connectors/conformance.ts)\n\n${table}\n`)
    const isComplete = connectorTypes.every((kind) => namesOf(kind).length > 0)
    if (!isComplete || [...columns.values()].some((column) => [...column.values()].some((mark) => mark !== 'ok'))) return
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
