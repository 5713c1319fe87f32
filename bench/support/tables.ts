import { markdownTable } from '../../docs/generated-table.ts'

/** The output of a benchmark with `--json`. */
export interface BenchResult {
  name: string
  date: string
  commit: string
  hardware: string
  settings: Record<string, unknown>
  rows: ({ case: string } & Record<string, unknown>)[]
}

// A process that used less in every case had no part in it.
const smallestCpuMs = 0.05

// More measures than this are rows, and the cases are columns.
const columnsMax = 6

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const isRange = (value: Record<string, unknown>): value is { min: number; median: number; max: number } =>
  ['min', 'median', 'max'].every((name) => typeof value[name] === 'number')

const formatNumber = (value: number): string =>
  Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)))

const words = (name: string) =>
  name
    .replaceAll('_', ' ')
    .replace(/\bmib\b/, 'MiB')
    .replace(/\bmb\b/, 'MB')
    .replace(/\bcpu\b/, 'CPU')

/** Returns the measures of a row with their names: a range as its median with its ends, a record as its entries. Lists are left out. */
export const measuresOf = (row: Record<string, unknown>, prefix = ''): [name: string, text: string][] =>
  Object.entries(row).flatMap(([name, value]): [string, string][] => {
    const full = `${prefix}${words(name)}`
    if (typeof value === 'number') return [[full, formatNumber(value)]]
    if (typeof value === 'string') return [[full, value]]
    if (typeof value === 'boolean') return [[full, String(value)]]
    if (!isRecord(value)) return []
    if (isRange(value)) return [[full, `${formatNumber(value.median)} (${formatNumber(value.min)} to ${formatNumber(value.max)})`]]
    return measuresOf(value, `${full}: `)
  })

/** Returns the cases as a table: as rows or, if there are many measures, as columns. */
export const tableOf = (rows: BenchResult['rows']): string => {
  const measured = rows.map(({ case: name, ...row }) => ({ name, measures: new Map(measuresOf(row)) }))
  const cell = (measures: Map<string, string>, name: string) => measures.get(name) ?? ''
  const isUsed = (name: string) =>
    !/CPU (ms|seconds)/.test(name) || measured.some(({ measures }) => Number(cell(measures, name)) >= smallestCpuMs)
  const names = [...new Set(measured.flatMap(({ measures }) => [...measures.keys()]))].filter(isUsed)
  if (names.length <= columnsMax) {
    return markdownTable(
      ['', ...names],
      measured.map(({ name, measures }) => [name, ...names.map((measure) => cell(measures, measure))]),
    )
  }
  return markdownTable(
    ['', ...measured.map(({ name }) => name)],
    names.map((name) => [name, ...measured.map(({ measures }) => cell(measures, name))]),
  )
}

/** Returns a result as a part of a page: when and how it was measured, and its tables. Cases with other measures have a table of their own. */
export const resultText = ({ date, commit, hardware, settings, rows }: BenchResult): string => {
  const conditions = `${date}, commit ${commit}, ${hardware}. ${measuresOf(settings)
    .map(([name, text]) => `${name}: ${text}`)
    .join('; ')}.`
  const kinds = Map.groupBy(rows, (row) => Object.keys(row).join())
  return `\n${conditions}\n\n${[...kinds.values()].map(tableOf).join('\n')}`
}
