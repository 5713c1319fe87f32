import type { DeliveryInput, DocumentInput } from '../../workflows/messages.ts'

// A delivery that is due and that nothing has begun is the work that waits: `deliveries.begin_at`. The dispatcher begins it by one of these
// messages to Temporal, and so does the process that has just committed it, if nothing of its workspace waits. Sending a message twice has
// no further effect. The attempt, or the wait for one, clears `begin_at`.

/** Starts the workflow of a document, which starts its deliveries. */
export interface StartDocument {
  kind: 'startDocument'
  input: DocumentInput
  urgency?: Urgency
  /** True if the worker that sends this may have the first task of the workflow with the answer. It then need not be the next one that is free. */
  eager?: boolean
}

/** Starts a delivery by itself. The workflow of its document may have ended, or may never have been started. */
export interface StartDelivery {
  kind: 'startDelivery'
  input: DeliveryInput
  urgency?: Urgency
}

/** Retries a delivery: signals its workflow if it is open, starts a new one if it is closed. */
export interface RetryDelivery {
  kind: 'retryDelivery'
  requestId: string
  input: DeliveryInput
  urgency?: Urgency
}

/** `quiet`: nothing else of the workspace is under way. `bulk`: a release, a bulk retry, or a restart. Default `quiet`. */
type Urgency = 'quiet' | 'busy' | 'bulk'

export type Start = StartDocument | StartDelivery | RetryDelivery

const beginsAs = ['document', 'delivery', 'retry'] as const

/** How a delivery is begun, as `deliveries.begin_as`. */
export type BeginAs = (typeof beginsAs)[number]

/** Time for which a process that has committed a delivery may begin it by itself. The dispatcher begins what a crash has left. */
export const startGraceMs = 2_000

/**
 * Number of shares that the workspaces are divided into. Each share is dispatched by one process at a time. More processes than shares have no
 * part in it. The index deliveries_to_begin is made with the same number.
 */
export const dispatchShares = 16

/** SQL: the share of a workspace. The hash is the one of PostgreSQL's partitions, which does not change from one version to the next. */
export const dispatchShareOf = (workspaceId: string) => `(hashtextextended(${workspaceId}, 0) & ${dispatchShares - 1})`

/**
 * SQL: true if no other delivery of the workspace is waiting or starting. Deliveries that an append or an enrichment has postponed do not
 * count, and there may be many of them: each queue is asked by itself, so that the index deliveries_to_begin leads to its first delivery.
 * Not `exists`, for which the planner might read the waiting deliveries of all workspaces.
 */
export const beginsAtOnce = (workspaceId: string) => `(
      select count(*) = 0
      from (
        select
        from (values ${beginsAs.map((beginAs) => `('${beginAs}')`).join(', ')}) as queue (begin_as)
        cross join lateral (
          select
          from deliveries
          where ${dispatchShareOf('deliveries.workspace_id')} = ${dispatchShareOf(workspaceId)}
            and deliveries.workspace_id = ${workspaceId}
            and deliveries.begin_as = queue.begin_as
            and begin_at <= now() + ${startGraceMs} * interval '1 millisecond'
          limit 1
        ) as first
        limit 1
      ) as waiting
    )`

/** SQL: the id of the request of a `RetryDelivery`. The dispatcher repeats the message under the same id. */
export const retryRequestId = `(extract(epoch from begin_at) * 1000000)::bigint::text`
