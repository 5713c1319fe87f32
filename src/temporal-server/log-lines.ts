import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Log } from '../base/log.ts'
import { plainText } from '../base/text.ts'

type Level = 'debug' | 'info' | 'warn' | 'error'
// Others are dpanic, panic and fatal.
const levels = new Set<unknown>(['debug', 'info', 'warn', 'error'] satisfies Level[])
// Without PostgreSQL, the server writes hundreds of lines a second that say the same.
const linesPerMinute = 60
const minuteMs = 60_000
const fieldsMax = 20
// Where in Temporal's source code a line was written, which tells an operator nothing.
const leftOut = new Set(['level', 'ts', 'msg', 'stacktrace', 'logging-call-at'])

interface LogLine {
  level: Level
  text: string
  fields: Record<string, string>
}

// What its services answer one another, and the relay, until they have found each other: normal at each start, and an error afterwards.
const startUpErrors = new Set(['Frontend is not healthy yet', 'Not enough hosts to serve the request'])

/** Tells whether a line says only that Temporal is starting. */
export const isOfStart = ({ fields }: LogLine): boolean => startUpErrors.has(fields['error'] ?? '')

/** Returns a line of Temporal's log as level, text and fields, bounded. A line that is not JSON is its own text. */
export const readLogLine = (line: string): LogLine => {
  try {
    const { level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
    const fields = Object.entries(rest)
      .filter(([name]) => !leftOut.has(name))
      .slice(0, fieldsMax)
      .map(([name, value]) => [plainText(name, 100), plainText(typeof value === 'string' ? value : JSON.stringify(value))] as const)
    return { level: levels.has(level) ? (level as Level) : 'error', text: plainText(String(msg)), fields: Object.fromEntries(fields) }
  } catch {
    return { level: 'error', text: plainText(line), fields: {} }
  }
}

/**
 * Writes the lines of Temporal's log as entries of the relay's, with at most `linesPerMinute` of them above debug.
 * @param isQuiet true for a line that is no error, whatever its level: while Temporal stops, its services say much of one another
 * @returns the last texts, for the message of a start that fails
 */
export const forwardLog = (
  output: Readable,
  log: Pick<Log, 'debug' | 'info' | 'warn' | 'error'>,
  isQuiet: (line: LogLine) => boolean,
): (() => string) => {
  const last: string[] = []
  let minuteEndsAt = 0
  let count = 0
  createInterface({ input: output, crlfDelay: Infinity }).on('line', (line) => {
    const read = readLogLine(line)
    const { level, text, fields } = read
    last.push(fields['error'] === undefined ? text : `${text}: ${fields['error']}`)
    if (last.length > 6) last.shift()
    if (isQuiet(read)) return log.debug({ temporal: fields }, `Temporal: ${text}`)
    if (performance.now() > minuteEndsAt) {
      if (count > linesPerMinute) log.warn({ lines: count - linesPerMinute }, 'lines of the log of Temporal were left out')
      minuteEndsAt = performance.now() + minuteMs
      count = 0
    }
    count += 1
    log[count > linesPerMinute ? 'debug' : level]({ temporal: fields }, `Temporal: ${text}`)
  })
  return () => last.join(' | ')
}
