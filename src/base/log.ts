import { pino, type DestinationStream, type Logger } from 'pino'
import { visibleLine, visibleLines } from './text.ts'

export type Log = Logger

// Standard output is for the results of commands.
const standardError = 2

/** Creates a logger of JSON lines on standard error. */
export const createLog = (level: string): Log => logTo(jsonLines(), level)

/** Writes JSON in which every character is visible: people read a log in a terminal. */
const jsonLines = (): DestinationStream => {
  const destination = pino.destination({ dest: standardError, sync: true })
  return { write: (line) => destination.write(visibleLines(line)) }
}

/**
 * Creates a logger in the format of RELAY_LOG_FORMAT: lines of JSON for programs, or of text for people.
 * @param fields returns further fields of the line that is being written
 */
export const openLog = async (level: string, format: 'json' | 'pretty', fields?: () => object): Promise<Log> => {
  const lines = format === 'pretty' ? await textLines() : undefined
  const log = logTo(lines ?? jsonLines(), level, fields)
  if (format === 'pretty' && !lines) log.warn('the log is written as JSON: pino-pretty, which writes it as text, is not installed')
  return log
}

/** @returns `undefined` if pino-pretty, which is an optional dependency, is not installed */
const textLines = async (): Promise<DestinationStream | undefined> => {
  try {
    const { default: pretty } = await import('pino-pretty')
    const lines = pretty({ destination: standardError, sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss.l' })
    return { write: (line) => lines.write(withVisibleTexts(line)) }
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw thrown
    return undefined
  }
}

// A message, which a stack begins with, may have lines of its own.
const lineOfMessage = /\n(?! {4}at |caused by: )/g

/** Returns a line of JSON whose texts are lines of a terminal: the formatter writes them as they are. Only a stack has several. */
const withVisibleTexts = (line: string): string => {
  const visible = JSON.parse(line, (key, value: unknown) =>
    typeof value !== 'string' ? value : key === 'stack' ? visibleLines(value.replaceAll(lineOfMessage, visibleLine)) : visibleLine(value),
  )
  return `${JSON.stringify(visible)}\n`
}

const secretNames = ['authorization', 'credentials', 'secret', 'password']

const logTo = (destination: DestinationStream, level: string, fields?: () => object): Log =>
  pino(
    {
      level,
      base: null,
      ...(fields && { mixin: fields }),
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // `detail` and `where` of a PostgreSQL error may quote values of the row.
      redact: {
        paths: [...secretNames, ...secretNames.map((name) => `*.${name}`), 'err.detail', 'err.where'],
        censor: '[REDACTED]',
      },
    },
    destination,
  )
