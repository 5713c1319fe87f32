import type { SideWorkInput, SideWorkOutcome } from '../../workflows/messages.ts'
import type { SideWorkKind } from '../../workflows/options.ts'
import { plainText } from '../base/text.ts'
import { createStatement, type Database, type Transaction } from './database.ts'

// Side work is what the relay does beside deliveries: it sends the events of a subscription, fetches the business data of documents, and brings
// late data to copies. It waits in the database, in queues: one of each subscription, enrichment and destination. The dispatcher claims a queue
// in which something is due and starts its workflow, whose activity works through all of it. What fails is due again at a time that the
// database knows, and no workflow waits for that. So what waits costs nothing, and its number does not matter.

// A start that is lost is made again.
const startMs = 10_000
// Longer than a run takes, with the work that is under way at its end.
const claimMs = 240_000
// Queues of a kind that are worked through at a time for one workspace. Queues of other workspaces need a place beside systems that hang.
const queuesPerWorkspace = 4

/** A queue in which something is due, and whose workflow is to be started. */
type DueQueue = SideWorkInput

/** Claims the queues of a kind in which something is due, up to a limit for each workspace. */
export type ClaimDue = () => Promise<DueQueue[]>

/**
 * Creates the function that claims the queues of a kind. They take turns: a queue whose run has ended with more to do comes after those that were
 * not worked through since.
 * @param due SQL: queues as (id, workspace_id, name, since). It may read `claimed_queues`, the ids of those that are claimed or closed
 */
export const createClaimDue = (db: Database, kind: SideWorkKind, due: string, bindings: Record<string, string | number> = {}): ClaimDue => {
  const claimQueues = createStatement<DueQueue>(
    `claim-side-work ${kind}`,
    `
    with recursive claimed_queues as (
      select id
      from side_queues
      where kind = :kind
        and greatest(claimed_until, opens_at) > now()
    ), ${due}, free as (
      select
        due.id, due.workspace_id, name,
        row_number() over (partition by due.workspace_id order by coalesce(known.claimed_until, '-infinity'), since, due.id) + (
          select count(*)
          from side_queues
          where kind = :kind
            and side_queues.workspace_id = due.workspace_id
            and claimed_until > now()
        ) as place
      from due
      left join side_queues as known on known.kind = :kind and known.id = due.id
      where due.id not in (select id from claimed_queues)
    ), claimed as (
      insert into side_queues (kind, id, workspace_id, claimed_until)
      select :kind, id, workspace_id, now() + :startMs::integer * interval '1 millisecond'
      from free
      where place <= :queuesPerWorkspace
      on conflict (kind, id) do update
      set claimed_until = excluded.claimed_until
      where greatest(side_queues.claimed_until, side_queues.opens_at) <= now()
      returning id
    )
    select
      free.id as "queueId", free.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace,
      coalesce(free.name, free.id) as name
    from claimed
    join free using (id)
    join workspaces on workspaces.id = free.workspace_id
    `,
  )
  return () => claimQueues(db, { kind, startMs, queuesPerWorkspace, ...bindings })
}

/** Forgets the claim and the failures of a queue after its settings were changed, or a person has asked for its work. */
export const openQueue = async (db: Database | Transaction, kind: SideWorkKind, id: string): Promise<void> => {
  await db('side_queues').where({ kind, id }).delete()
}

/** How a run ends. `gone`: nothing is to be done any more. `retrying`: what is left is done after the delay. */
export type RunEnd =
  | { status: 'idle' | 'more' | 'gone'; failures?: number }
  | { status: 'retrying'; failures?: number; delayMs: number; error: string }

/** A run, with the consecutive failures before it. */
export type WorkThrough = (queueId: string, before: Pick<Claim, 'failures' | 'lastError'>, cancelled: AbortSignal) => Promise<RunEnd>

interface Claim {
  failures: number
  lastError: string | null
  /** Null unless the queue is closed. */
  opensInMs: number | null
}

/** Claims a queue for a run, unless it is closed. @returns undefined if its workspace was deleted */
const claim = async (db: Database, kind: SideWorkKind, { queueId, workspaceId }: QueueRef): Promise<Claim | undefined> => {
  const { rows } = await db.raw<{ rows: Claim[] }>(
    `
    insert into side_queues (kind, id, workspace_id, claimed_until)
    select :kind, :queueId, id, now() + :claimMs::integer * interval '1 millisecond'
    from workspaces
    where id = :workspaceId
    on conflict (kind, id) do update
    set claimed_until = case when side_queues.opens_at > now() then side_queues.claimed_until else excluded.claimed_until end
    returning
      failures, last_error as "lastError",
      case when opens_at > now() then ceil(extract(epoch from opens_at - now()) * 1000)::float8 end as "opensInMs"
    `,
    { kind, queueId, workspaceId, claimMs },
  )
  return rows[0]
}

/** Stores how a run has ended. A queue without failures needs no row. */
const settle = async (db: Database, kind: SideWorkKind, id: string, end: RunEnd): Promise<void> => {
  const { status, failures = 0 } = end
  const row = () => db('side_queues').where({ kind, id })
  const inMs = (ms: number) => db.raw(`now() + ? * interval '1 millisecond'`, [ms])
  if (status === 'retrying') {
    const { delayMs, error } = end
    await row().update({ claimed_until: '-infinity', failures, opens_at: inMs(delayMs), last_error: error })
  } else if (status === 'more') await row().update({ claimed_until: db.fn.now(), failures })
  else if (failures === 0 || status === 'gone') await row().delete()
  else await row().update({ claimed_until: '-infinity', failures })
}

// Of the system, or of a person: a name in an error.
const plainEnd = (end: RunEnd): RunEnd => (end.status === 'retrying' ? { ...end, error: plainText(end.error) } : end)

type QueueRef = Pick<SideWorkInput, 'queueId' | 'workspaceId'>

/** The activity of a queue. @throws the reason of `cancelled`, and failures of the relay itself */
export type RunQueue = (queue: QueueRef, cancelled: AbortSignal) => Promise<SideWorkOutcome>

/** Creates the activity of the queues of a kind. Safe to run twice: a queue that a run has closed stays closed until its time. */
export const createRunQueue =
  (db: Database, kind: SideWorkKind, workThrough: WorkThrough): RunQueue =>
  async (queue, cancelled) => {
    const claimed = await claim(db, kind, queue)
    if (!claimed) return { status: 'gone' }
    if (claimed.opensInMs !== null) return { status: 'retrying', error: claimed.lastError ?? '' }
    const end = plainEnd(await workThrough(queue.queueId, claimed, cancelled))
    await settle(db, kind, queue.queueId, end)
    return end.status === 'retrying' ? { status: end.status, error: end.error } : { status: end.status }
  }
