import { AppError } from '../base/errors.ts'
import type { Transaction } from './database.ts'

/** The execution of a request that has an `Idempotency-Key`. */
export interface Execution {
  id: string
  workspaceId: string
  /** Who has sent the request. */
  owner: string
  key: string
}

/**
 * Notes in the transaction of a change that its request is executed. So a repetition knows whether the change was committed, even if the
 * answer was lost. The row stays locked until the transaction has ended: meanwhile nobody knows.
 * @throws `AppError` 409 if a repetition has taken over, because the execution seemed to be lost; the change is rolled back
 */
export const markExecution = async (trx: Transaction, { id, workspaceId, owner, key }: Execution, subjectId: string): Promise<void> => {
  const marked = await trx('idempotency_keys')
    .where({ workspace_id: workspaceId, owner, key, execution_id: id })
    .update({ changed_id: trx.raw('coalesce(changed_id, ?)', [subjectId]) })
  if (marked === 0) throw new AppError('conflict', 'A repetition of this request is being executed. Nothing was changed by this one.')
}
