import { pino, type DestinationStream, type Logger } from 'pino'

export type Log = Logger

// Standard output is for the results of commands.
const standardError = 2

/** Creates a logger of JSON lines on standard error. */
export const createLog = (level: string): Log => logTo(pino.destination({ dest: standardError, sync: true }), level)

/** Creates a logger in the format of RELAY_LOG_FORMAT: lines of JSON for programs, or of text for people. */
export const openLog = async (level: string, format: 'json' | 'pretty'): Promise<Log> => {
  if (format === 'json') return createLog(level)
  const { default: pretty } = await import('pino-pretty')
  return logTo(pretty({ destination: standardError, sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss.l' }), level)
}

const secretNames = ['authorization', 'credentials', 'secret', 'password']

const logTo = (destination: DestinationStream, level: string): Log =>
  pino(
    {
      level,
      base: null,
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
