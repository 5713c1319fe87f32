import type { Database } from '../db/database.ts'

/** A key as one caller sent it. Keys of different API keys are independent. */
export interface IdempotencyKey {
  apiKeyId: string
  key: string
}

interface StoredExecution {
  executionId: string
  requestSealed: Buffer
  /** Null while the request is executed. */
  answerSealed: Buffer | null
  /** No answer was stored in time: the process of the execution was lost. */
  isLost: boolean
}

export const createIdempotencyKeys = (db: Database) => {
  const after = (ms: number) => db.raw(`now() + ? * interval '1 millisecond'`, [ms])
  const executionOf = ({ apiKeyId, key }: IdempotencyKey, executionId: string) =>
    db('idempotency_keys').where({ api_key_id: apiKeyId, key, execution_id: executionId }).whereNull('answer_sealed')

  return {
    /**
     * Claims a key for an execution, unless the key is in use. An expired key is free.
     * @returns undefined if the key was claimed, otherwise the execution that uses it
     */
    claim: async (
      { apiKeyId, key }: IdempotencyKey,
      execution: { id: string; requestSealed: Buffer; lockMs: number; ttlMs: number },
    ): Promise<StoredExecution | undefined> => {
      for (;;) {
        const { rowCount } = await db.raw<{ rowCount: number }>(
          `
          insert into idempotency_keys (api_key_id, key, execution_id, request_sealed, locked_until, expires_at)
          values (:apiKeyId, :key, :executionId, :requestSealed, :lockedUntil, :expiresAt)
          on conflict (api_key_id, key) do update
          set
            execution_id = excluded.execution_id,
            request_sealed = excluded.request_sealed,
            answer_sealed = null,
            locked_until = excluded.locked_until,
            expires_at = excluded.expires_at
          where idempotency_keys.expires_at <= now()
          `,
          {
            apiKeyId,
            key,
            executionId: execution.id,
            requestSealed: execution.requestSealed,
            lockedUntil: after(execution.lockMs),
            expiresAt: after(execution.ttlMs),
          },
        )
        if (rowCount > 0) return undefined
        const stored: StoredExecution | undefined = await db('idempotency_keys')
          .select([
            'execution_id as executionId',
            'request_sealed as requestSealed',
            'answer_sealed as answerSealed',
            db.raw('answer_sealed is null and locked_until <= now() as "isLost"'),
          ])
          .where({ api_key_id: apiKeyId, key })
          .first()
        // The other execution may just have been refused and have released the key.
        if (stored) return stored
      }
    },

    /** Claims the key of a lost execution. @returns false if another request was faster */
    takeOver: async (key: IdempotencyKey, lostExecutionId: string, execution: { id: string; lockMs: number }): Promise<boolean> =>
      (await executionOf(key, lostExecutionId).update({ execution_id: execution.id, locked_until: after(execution.lockMs) })) > 0,

    /** Stores the answer of an execution. @returns false if the execution took so long that another one took its key over */
    complete: async (key: IdempotencyKey, executionId: string, answerSealed: Buffer): Promise<boolean> =>
      (await executionOf(key, executionId).update({ answer_sealed: answerSealed })) > 0,

    /** Frees the key of an execution that changed nothing. */
    release: async (key: IdempotencyKey, executionId: string): Promise<void> => {
      await executionOf(key, executionId).delete()
    },
  }
}

export type IdempotencyKeys = ReturnType<typeof createIdempotencyKeys>
