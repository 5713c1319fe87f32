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
const kinds = ['objstore', 'blob', 'teamsite', 'drive', 'sftp', 'email', 'webhook']
const marks: Record<string, string> = { passed: 'ok', failed: 'FAILED' }

/** Which row of test/connectors/conformance.ts came out how for which kind; nothing where no conformance suite ran. */
const matrixOf = (results: Results) => {
  const columns = new Map<string, Map<string, string>>()
  const doubles = new Set<string>()
  for (const { ancestorTitles, title, status } of results.testResults.flatMap((file) => file.testResults)) {
    const [, kind, double] = /^the (\w+)( \(against a double\))? connector$/.exec(ancestorTitles[0] ?? '') ?? []
    if (kind === undefined) continue
    if (double) doubles.add(kind)
    columns.set(kind, (columns.get(kind) ?? new Map<string, string>()).set(title, marks[status] ?? '-'))
  }
  const shown = kinds.filter((kind) => columns.has(kind))
  const rows = [...new Set(shown.flatMap((kind) => [...columns.get(kind)!.keys()]))]
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  const table = [
    line(['row', ...shown.map((kind) => (doubles.has(kind) ? `${kind} (double)` : kind))]),
    line(['---', ...shown.map(() => '---')]),
    ...rows.map((row) => line([row, ...shown.map((kind) => columns.get(kind)!.get(row) ?? '-')])),
  ]
  const isWhole = kinds.every((kind) => rows.every((row) => columns.get(kind)?.get(row) === 'ok'))
  return { shown, text: `${table.join('\n')}\n`, isWhole: shown.length === kinds.length && isWhole }
}

/** Prints the matrix after a run of conformance suites. A run of all seven that is not what the page tells fails. */
export default class ConformanceMatrix {
  private fault: Error | undefined

  onRunComplete(_contexts: unknown, results: Results) {
    const { shown, text, isWhole } = matrixOf(results)
    if (shown.length === 0) return
    process.stdout.write(`\nConformance of the connectors (test/connectors/conformance.ts)\n\n${text}\n`)
    if (!isWhole) return
    const before = readFileSync(page, 'utf8')
    const [from, to] = [before.indexOf(begin) + begin.length, before.indexOf(end)]
    if (before.slice(from, to).trim() !== text.trim())
      this.fault = new Error(`docs/connectors/README.md shows another matrix than this run`)
  }

  getLastError() {
    return this.fault
  }
}
