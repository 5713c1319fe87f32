import { pino } from 'pino'
import { createRequestLog } from '../../src/http/request-log.ts'

/** Returns a log and a request log that write their lines to this array. */
export const logsTo = (lines: string[] = []) => {
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  return { log, requestLog: createRequestLog(log) }
}
