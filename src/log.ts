import { pino, type Logger } from 'pino'

export type Log = Logger

/** Structured log lines on standard error: standard output belongs to the answers of commands. */
export const createLog = (level: string): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // what PostgreSQL adds to an error may quote the row
      redact: {
        paths: ['*.authorization', '*.credentials', '*.secret', '*.password', 'err.detail', 'err.where'],
        censor: '[REDACTED]',
      },
    },
    pino.destination({ dest: 2, sync: true }),
  )
