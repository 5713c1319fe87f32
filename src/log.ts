import { pino, type Logger } from 'pino'

export type Log = Logger

/** Creates a logger of JSON lines on standard error. Standard output is for the results of commands. */
export const createLog = (level: string): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // `detail` and `where` of a PostgreSQL error may quote values of the row.
      redact: {
        paths: ['*.authorization', '*.credentials', '*.secret', '*.password', 'err.detail', 'err.where'],
        censor: '[REDACTED]',
      },
    },
    pino.destination({ dest: 2, sync: true }),
  )
