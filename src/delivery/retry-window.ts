import type { Database } from '../db/database.ts'
import { noErrorCode } from '../domain/delivery-states.ts'

// Failed deliveries that wait for a manual retry of their own. One more at the same destination is part of a larger fault, which ends with
// a bulk retry: it closes its workflow, and the retry starts it again. So a destination that is away for a week keeps about this many
// pairs of workflows open in Temporal, and not two for each of its documents.
const waitingMax = 100

/**
 * Returns whether the workflow of a delivery that has failed stays open for the retry window: not behind a circuit, and not if the
 * destination has many failed deliveries. The order is that of the index failures_by_time, so that the planner does not look for the first
 * of them among all deliveries. Those that an operator has acknowledged do not count. The failure is recorded and must not be repeated because
 * of this question, so that the answer is yes if the database does not give one.
 */
export const keepsWorkflow = async (db: Database, destinationId: string, max = waitingMax): Promise<boolean> => {
  try {
    const { rows } = await db.raw<{ rows: { keeps: boolean }[] }>(
      `
      select
        not exists (
          select
          from destination_gates
          where destination_id = :destinationId
            and circuit <> 'closed'
        ) and (
          select count(*)
          from (
            select
            from deliveries
            where destination_id = :destinationId
              and needs_attention
              and status = 'failed'
            order by coalesce(last_error_code, '${noErrorCode}'), status_since
            limit :max::integer + 1
          ) as failed
        ) <= :max::integer as keeps
      `,
      { destinationId, max },
    )
    return rows[0]!.keeps
  } catch {
    return true
  }
}
