import { Option } from 'commander'

export interface OutputOptions {
  json?: boolean
}

export const jsonOption = new Option('--json', 'print JSON')

/** Prints the result of a command to standard output: JSON, or lines for people. */
export const printResult = ({ json }: OutputOptions, result: unknown, lines: string[]): void => {
  if (json) printJson(result)
  else for (const line of lines) print(line)
}

/** Returns what precedes the result of a dry run. */
export const dryRunNote = (dryRun: boolean | undefined): string => (dryRun ? 'Nothing was changed. A run would report: ' : '')

export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2))

export const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/** Prints to standard error, which is apart from the result of the command. */
export const printProgress = (line: string): void => {
  process.stderr.write(`${line}\n`)
}
