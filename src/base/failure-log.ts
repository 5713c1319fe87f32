import type { Log } from './log.ts'
import { plainText } from './text.ts'

// What a log says about a failure: its cause, once.

const reasonMaxCharacters = 500
const causesMax = 5
/** A failure that comes back within this time is the same. */
const calmMs = 60_000
/** Failures that are remembered. */
const rememberedMax = 500

const statements = new WeakMap<Error, string>()

/** Notes the statement with which a driver has begun the message of an error. A log line says what has failed without it. */
export const noteStatement = (error: Error, statement: string): void => void statements.set(error, statement)

/** Returns the first line of the message of an error, without the statement of a driver. */
const lineOf = (thrown: unknown): string => {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const statement = thrown instanceof Error ? statements.get(thrown) : undefined
  const plain = statement !== undefined && message.startsWith(statement) ? message.slice(statement.length).replace(/^ - /, '') : message
  const [line = ''] = plain.trim().split(/[\r\n]/)
  return line || (thrown instanceof Error ? thrown.name : '')
}

/**
 * Returns why something has failed, in one line: the first lines of the messages of an error and of its causes, such as the status of gRPC, that do
 * not repeat each other. Neither a stack nor a statement is in it.
 */
export const reasonOf = (thrown: unknown): string => {
  const lines: string[] = []
  let cause = thrown
  for (let depth = 0; depth < causesMax && cause !== undefined && cause !== null; depth += 1) {
    const errors: unknown[] = cause instanceof AggregateError && !cause.message ? cause.errors : [cause]
    const line = errors.map(lineOf).join('; ')
    if (!lines.some((earlier) => earlier.includes(line))) lines.push(line)
    cause = cause instanceof Error ? cause.cause : undefined
  }
  return plainText(lines.join(': '), reasonMaxCharacters)
}

const remembered = new WeakMap<object, Map<string, number>>()

/** Returns true if a log has had a line of this kind and reason a short while ago. Numbers, such as times, make no other reason. */
const isRepeated = (log: object, kind: string, reason: string): boolean => {
  const known = remembered.get(log) ?? new Map<string, number>()
  const key = `${kind} ${reason}`.replaceAll(/\d+/g, '#')
  const now = performance.now()
  const repeated = now - (known.get(key) ?? Number.NEGATIVE_INFINITY) < calmMs
  if (!repeated && known.size >= rememberedMax) known.clear()
  known.set(key, now)
  remembered.set(log, known)
  return repeated
}

type FailureLog = Pick<Log, 'warn'> & Partial<Pick<Log, 'debug'>>

/**
 * Logs a failure after which the relay goes on by itself. While an outage lasts, the same fails again and again: there is one line for each
 * kind of failure and reason, until a minute has passed without it. Those that repeat it are written at the level debug.
 * @param message the kind of failure
 * @param fields of this failure, such as ids
 */
export const logFailure = (log: FailureLog, thrown: unknown, message: string, fields: object = {}): void => {
  const reason = reasonOf(thrown)
  if (isRepeated(log, message, reason)) log.debug?.({ ...fields, reason }, message)
  else log.warn({ ...fields, reason }, message)
}
