import { createHash } from 'node:crypto'
import type Koa from 'koa'
import { AppError } from '../base/errors.ts'
import { logFailure } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { validationFailed } from '../base/refusals.ts'
import { createTtlCache } from '../base/ttl-cache.ts'
import type { Execution } from '../db/audit.ts'
import { isLostRace } from '../db/errors.ts'
import type { Actor } from '../security/api-keys.ts'
import { idempotencyOf, SealError, type KeyRing } from '../security/seal.ts'
import type { IdempotencyKey, IdempotencyKeys } from './idempotency-keys.ts'

export const idempotencyKeyMaxCharacters = 255
const keyPattern = new RegExp(`^[\\x20-\\x7e]{1,${idempotencyKeyMaxCharacters}}$`)
const runningRetryAfterSeconds = 1
// For which an answer is kept, so that a repetition of the request gets it.
const ttlMs = 24 * 3_600_000
// After which a request whose process was lost may be repeated. Longer than any such request takes.
const lockMs = 120_000
// Keys in use of one API key or person. An answer has a few kilobytes, up to 25.
const keysMax = 10_000
// Between two counts of the keys of a caller. In between, each process counts its own.
const recountMs = 60_000
const callersMax = 10_000

/** A successful JSON answer. */
export interface JsonAnswer {
  status: number
  etag?: string | undefined
  body: unknown
}

type Execute = (execution?: Execution) => Promise<JsonAnswer>

const unknownOutcome = () =>
  new AppError(
    'conflict',
    'The outcome of the first request with this Idempotency-Key is not known yet: it is still being executed, or the database was lost at its commit. Try again shortly.',
    { retryAfterSeconds: runningRetryAfterSeconds },
  )

const lostAnswer = (changedId: string) =>
  new AppError(
    'conflict',
    `The first request with this Idempotency-Key was executed, and its answer was lost. It is not executed again. Look at what it has changed or created: ${changedId}.`,
  )

/** Limits the keys of a caller. To drop the oldest ones would execute a repetition that the relay has promised not to execute. */
const createKeyLimit = ({ count }: Pick<IdempotencyKeys, 'count'>, max: number) => {
  const counted = createTtlCache<{ count: number; isFull: boolean; freeInSeconds: number }>({ maxEntries: callersMax })

  /** @throws AppError 429 if the caller may not use another key */
  return async (caller: Omit<IdempotencyKey, 'key'>): Promise<void> => {
    const name = `${caller.workspaceId} ${caller.owner}`
    let used = counted.get(name)
    if (!used || (used.count >= max && !used.isFull)) {
      const { count: stored, freeInSeconds } = await count(caller, max)
      used = { count: stored, isFull: stored >= max, freeInSeconds }
      counted.set(name, used, Date.now() + recountMs)
    }
    if (used.isFull) {
      const message = `This API key or person has used ${max} Idempotency-Keys within 24 hours. Wait, or send requests without one.`
      throw new AppError('rate_limited', message, { retryAfterSeconds: Math.max(used.freeInSeconds, recountMs / 1_000) })
    }
    used.count += 1
  }
}

export interface IdempotencyDeps {
  /** Keys in use that one API key or person can have. */
  maxIdempotencyKeys?: number
  idempotencyKeys: IdempotencyKeys
  keyRing: KeyRing
  log: Log
}

/** Returns the digest by which the repetition of a request is recognized. */
const digestOf = (context: Koa.Context, body: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify([context.method, context.path, context.querystring, body ?? null]))
    .digest('base64')

const readKey = (context: Koa.Context): string | undefined => {
  const key = context.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && keyPattern.test(key)) return key
  throw new AppError('invalid_request', `Idempotency-Key must have 1 to ${idempotencyKeyMaxCharacters} printable ASCII characters.`)
}

/** Returns true if no transaction of an execution that has thrown this is open any more. */
const hasEnded = (thrown: unknown): boolean => thrown instanceof AppError || isLostRace(thrown)

/**
 * Creates the handling of the header `Idempotency-Key`: a request is executed once, and a repetition gets the first answer. Only success is
 * stored: a refused request has changed nothing, so its repetition is executed. A change leaves a mark in its own transaction, which decides
 * where an answer was lost: with the mark, the request is not executed again; without it, it has changed nothing.
 */
export const createIdempotency = ({ idempotencyKeys, keyRing, log, maxIdempotencyKeys = keysMax }: IdempotencyDeps) => {
  const checkCount = createKeyLimit(idempotencyKeys, maxIdempotencyKeys)

  const openStored = (key: IdempotencyKey, sealed: Buffer): unknown => {
    try {
      return keyRing.open(sealed, idempotencyOf(key))
    } catch (thrown) {
      if (!(thrown instanceof SealError)) throw thrown
      const message = 'The first answer for this Idempotency-Key cannot be read, because the sealing keys have changed. Use another key.'
      throw new AppError('conflict', message, { cause: thrown })
    }
  }

  /** Claims the key for an execution, or returns the stored answer. @throws AppError 409 or 422 if neither is possible */
  const claim = async (key: IdempotencyKey, executionId: string, digest: string): Promise<JsonAnswer | undefined> => {
    const requestSealed = keyRing.seal(digest, idempotencyOf(key))
    const stored = await idempotencyKeys.claim(key, { id: executionId, requestSealed, lockMs, ttlMs }, () => checkCount(key))
    if (!stored) return undefined
    if (openStored(key, stored.requestSealed) !== digest) {
      throw validationFailed([{ path: 'idempotency-key', message: 'was used for a different request' }])
    }
    if (stored.answerSealed) return openStored(key, stored.answerSealed) as JsonAnswer
    if (stored.isLost && (await idempotencyKeys.takeOver(key, stored.executionId, { id: executionId, lockMs }))) return undefined
    throw stored.changedId === null || !stored.isLost ? unknownOutcome() : lostAnswer(stored.changedId)
  }

  /** Executes a claimed request and stores its answer. Frees the key if the request has changed nothing. */
  const executeClaimed = async (key: IdempotencyKey, executionId: string, execute: Execute): Promise<JsonAnswer> => {
    // The outcome of the request stands, whatever happens to the key. A key that is stuck becomes free after its lock.
    const warn = (thrown: unknown) => logFailure(log, thrown, 'could not update an idempotency key')
    let answer
    try {
      answer = await execute({ ...key, id: executionId })
    } catch (thrown) {
      // If the database was lost at a commit, this waits until PostgreSQL has ended the transaction. The client does not.
      const settled = idempotencyKeys.settle(key, executionId).catch(warn)
      if (hasEnded(thrown)) await settled
      throw thrown
    }
    await idempotencyKeys.complete(key, executionId, keyRing.seal(answer, idempotencyOf(key))).catch(warn)
    return answer
  }

  /**
   * Executes a request, or returns the stored answer if the request repeats another one.
   * @param changesNothing true if a repetition may be executed, so that nothing is stored for it
   */
  return async (
    context: Koa.Context,
    { type, id, workspace }: Actor,
    { body, changesNothing }: { body: unknown; changesNothing: boolean },
    execute: Execute,
  ): Promise<JsonAnswer> => {
    const text = readKey(context)
    if (text === undefined || changesNothing) return execute()
    const [key, executionId] = [{ workspaceId: workspace.id, owner: `${type} ${id}`, key: text }, newId()]
    const stored = await claim(key, executionId, digestOf(context, body))
    if (!stored) return executeClaimed(key, executionId, execute)
    context.set('idempotent-replayed', 'true')
    return stored
  }
}

export type Idempotency = ReturnType<typeof createIdempotency>
