import { pino } from 'pino'
import { createRequestLog } from '../../src/http/request-log.ts'

/** Returns a log and a request log that write their lines to this array, with the levels as src/base/log.ts writes them. */
export const logsTo = (lines: string[] = []) => {
  const options = { level: 'debug', formatters: { level: (label: string) => ({ level: label }) } }
  const log = pino(options, { write: (line: string) => void lines.push(line) })
  return { log, requestLog: createRequestLog(log) }
}
