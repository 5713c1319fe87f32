import type { Database } from '../db/database.ts'
import { columnsAs } from '../domain/casing.ts'

/** A key as one caller sent it. Keys of different callers, and of different workspaces, are independent. */
export interface IdempotencyKey {
  workspaceId: string
  owner: string
  key: string
}

interface StoredExecution {
  executionId: string
  requestSealed: Buffer
  /** What the execution has changed. Null until that is committed. */
  changedId: string | null
  /** Null while the request is executed. */
  answerSealed: Buffer | null
  /** No answer was stored, and none will be: the execution has failed after its change, or its process was lost. */
  isLost: boolean
}

export const createIdempotencyKeys = (db: Database) => {
  const after = (ms: number) => db.raw(`now() + ? * interval '1 millisecond'`, [ms])
  const executionOf = ({ workspaceId, owner, key }: IdempotencyKey, executionId: string) =>
    db('idempotency_keys').where({ workspace_id: workspaceId, owner, key, execution_id: executionId }).whereNull('answer_sealed')

  return {
    /**
     * Claims a key for an execution, unless the key is in use. An expired key is free. A key in use is read only: its row may be locked
     * by a transaction whose end is not known.
     * @param mayStore throws if the caller may not use another key
     * @returns undefined if the key was claimed, otherwise the execution that uses it
     */
    claim: async (
      { workspaceId, owner, key }: IdempotencyKey,
      execution: { id: string; requestSealed: Buffer; lockMs: number; ttlMs: number },
      mayStore: () => Promise<void>,
    ): Promise<StoredExecution | undefined> => {
      for (;;) {
        const stored: StoredExecution | undefined = await db('idempotency_keys')
          .select([
            ...columnsAs('execution_id, request_sealed, changed_id, answer_sealed'),
            db.raw('answer_sealed is null and locked_until <= now() as "isLost"'),
          ])
          .where({ workspace_id: workspaceId, owner, key })
          .where('expires_at', '>', db.fn.now())
          .first()
        if (stored) return stored
        await mayStore()
        const { rowCount } = await db.raw<{ rowCount: number }>(
          `
          insert into idempotency_keys (workspace_id, owner, key, execution_id, request_sealed, locked_until, expires_at)
          values (:workspaceId, :owner, :key, :executionId, :requestSealed, :lockedUntil, :expiresAt)
          on conflict (workspace_id, owner, key) do update
          set
            execution_id = excluded.execution_id,
            request_sealed = excluded.request_sealed,
            changed_id = null,
            answer_sealed = null,
            locked_until = excluded.locked_until,
            expires_at = excluded.expires_at
          where idempotency_keys.expires_at <= now()
          `,
          {
            workspaceId,
            owner,
            key,
            executionId: execution.id,
            requestSealed: execution.requestSealed,
            lockedUntil: after(execution.lockMs),
            expiresAt: after(execution.ttlMs),
          },
        )
        // Another request was faster. It may since have been refused and have freed the key.
        if (rowCount > 0) return undefined
      }
    },

    /** Counts the keys in use of a caller, up to a maximum, and says in how many seconds the first of them becomes free. */
    count: async ({ workspaceId, owner }: Omit<IdempotencyKey, 'key'>, max: number): Promise<{ count: number; freeInSeconds: number }> => {
      const { rows } = await db.raw<{ rows: { count: number; freeInSeconds: number | null }[] }>(
        `
        select count(*)::int as count, extract(epoch from min(expires_at) - now())::int as "freeInSeconds"
        from (
          select expires_at
          from idempotency_keys
          where workspace_id = :workspaceId
            and owner = :owner
            and expires_at > now()
          limit :max
        ) as used
        `,
        { workspaceId, owner, max },
      )
      return { count: rows[0]!.count, freeInSeconds: rows[0]!.freeInSeconds ?? 0 }
    },

    /**
     * Claims the key of a lost execution, which can then change nothing any more.
     * @returns false if another request was faster, if the execution has changed something, or if a transaction of it is still open
     */
    takeOver: async (key: IdempotencyKey, lostExecutionId: string, execution: { id: string; lockMs: number }): Promise<boolean> =>
      db.transaction(async (trx) => {
        const lost = executionOf(key, lostExecutionId).whereNull('changed_id').transacting(trx)
        if (!(await lost.clone().first('key').forUpdate().skipLocked())) return false
        return (await lost.update({ execution_id: execution.id, locked_until: after(execution.lockMs) })) > 0
      }),

    /** Stores the answer of an execution. @returns false if the execution took so long that another one took its key over */
    complete: async (key: IdempotencyKey, executionId: string, answerSealed: Buffer): Promise<boolean> =>
      (await executionOf(key, executionId).update({ answer_sealed: answerSealed })) > 0,

    /**
     * Frees the key of an execution that has failed, if it has changed nothing. Otherwise its answer is lost. Waits for a transaction of the
     * execution that PostgreSQL has not ended yet.
     */
    settle: async (key: IdempotencyKey, executionId: string): Promise<void> => {
      await executionOf(key, executionId).whereNull('changed_id').delete()
      await executionOf(key, executionId).update({ locked_until: db.fn.now() })
    },
  }
}

export type IdempotencyKeys = ReturnType<typeof createIdempotencyKeys>
