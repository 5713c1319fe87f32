import { inspect } from 'node:util'
import { Option } from 'commander'
import { UserError } from '../base/errors.ts'
import { visibleLine, visibleLines } from '../base/text.ts'

export interface OutputOptions {
  json?: boolean
}

/** Reads an option that is a day: `2026-11-28`. @throws `UserError` */
export const parseDay = (text: string): string => {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(text) : undefined
  if (!(Number(time) >= 0) || !time!.toISOString().startsWith(text))
    throw new UserError(`${JSON.stringify(text)} is no day, like 2026-11-28.`)
  return text
}

export const jsonOption = new Option('--json', 'print JSON')

/** Prints the result of a command to standard output: JSON, or lines for people. */
export const printResult = ({ json }: OutputOptions, result: unknown, lines: string[]): void => {
  if (json) printJson(result)
  else for (const line of lines) print(visibleLine(line))
}

/** Returns a table with aligned columns. @param rows cells, as many in each row as the header has */
export const tableOf = (header: string[], rows: string[][]): string[] => {
  const all = [header, ...rows].map((row) => row.map(visibleLine))
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}

/** Returns a time for a table, in UTC and without milliseconds: `2026-11-24 09:30:00`. */
export const cellOf = (time: Date | string | null): string =>
  time === null ? '-' : new Date(time).toISOString().slice(0, 19).replace('T', ' ')

/** Returns what precedes the result of a dry run. */
export const dryRunNote = (dryRun: boolean | undefined): string => (dryRun ? 'Nothing was changed. A run would report: ' : '')

export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2))

/**
 * Prints text to standard output. Texts of others are plain where they enter; here, whatever a terminal would still obey is written as in JSON,
 * which changes no JSON.
 */
export const print = (text: string): void => {
  process.stdout.write(`${visibleLines(text)}\n`)
}

/** Ends the process without an error if the reader of its output has gone, as `head` does when it has its lines. */
export const endWithReader = (): void => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

/** Prints to standard error, which is apart from the result of the command. */
export const printProgress = (text: string): void => {
  process.stderr.write(`${visibleLines(text)}\n`)
}

/**
 * Prints why a program has failed to standard error. A `UserError`, which a refusal is too, describes a problem that the user can fix: its
 * message is enough. Anything else is a bug and is printed with its stack trace.
 */
export const printFailure = (thrown: unknown, program: string): void =>
  printProgress(thrown instanceof UserError ? `${program}: ${thrown.message}` : inspect(thrown))

const leftoverMaxMs = 2_000

/**
 * Ends a process that has done its work, even if a library has left something open without a way to close it, as the Temporal SDK does with the threads
 * of workflows if its worker cannot be created, and with a call to a server that does not answer.
 */
export const endLeftovers = (): void => void setTimeout(() => process.exit(), leftoverMaxMs).unref()
