import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'
import type { Range } from './statistics.ts'

/** Prints progress. Standard output belongs to the result. */
export const say = (line: string) => process.stderr.write(`${line}\n`)

interface Result {
  name: string
  settings: Record<string, unknown>
  rows: object[]
}

/** Returns the commit of a checkout. */
export const commitOf = (folder: string): string =>
  execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8', cwd: folder }).trim()

/** Returns when, on what and of which commit something was measured. */
export const conditionsOf = ({ name, settings }: Pick<Result, 'name' | 'settings'>) => ({
  name,
  date: new Date().toISOString().slice(0, 10),
  commit: commitOf(import.meta.dirname),
  hardware: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`,
  settings,
})

/** Prints the result: as JSON, or as lines for people. */
export const printResult = (isJson: boolean, { name, settings, rows }: Result, lines: string[]): void => {
  const conditions = conditionsOf({ name, settings })
  if (isJson) console.log(JSON.stringify({ ...conditions, rows }, null, 2))
  else
    console.log(
      [`${conditions.hardware}, commit ${conditions.commit}, ${conditions.date}, ${JSON.stringify(settings)}`, ...lines].join('\n'),
    )
}

/** Formats the CPU time of one request or document: the sum, and the processes that used it. */
export const formatCpu = (cpuMs: Record<string, number>): string => {
  const used = Object.entries(cpuMs).filter(([, ms]) => ms >= 0.05)
  const sum = used.reduce((total, [, ms]) => total + ms, 0)
  return `${sum.toFixed(1)} CPU-ms (${used.map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join(', ')})`
}

/** Formats a ratio of several rounds. */
export const formatRange = ({ min, median, max }: Range): string => `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`
