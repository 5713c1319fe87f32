import { countOf } from '../base/count-of.ts'
import { UserError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Database, Transaction } from '../db/database.ts'
import { isLostRace } from '../db/errors.ts'
import { findWorkspace } from './administration.ts'
import { lockRouting, type Workspace } from './workspaces.ts'

/** Content of a workspace, as the command prints it. */
interface WorkspaceContents {
  repositories: number
  destinations: number
  connections: number
  documents: number
  bytes: number
  open_deliveries: number
  running_bulk_retries: number
  legal_holds: number
  /** Messages that will start workflows, or work of workflows, for the workspace. */
  waiting_messages: number
  api_keys: number
}

interface Deletion {
  /** False if `confirmed` is not set: nothing was deleted. */
  deleted: boolean
  id: string
  user_slug: string
  workspace_slug: string
  contents: WorkspaceContents
}

/**
 * `relay workspace delete`. Counts the contents of a workspace and, if confirmed, deletes it with all of them, in one transaction. The
 * job remove-orphans removes the bytes of the documents later.
 * @throws `UserError` if the workspace does not exist, a workflow still has work to do for it, or something of it is on legal hold
 */
export const deleteWorkspace = async (db: Database, name: string, { confirmed }: { confirmed: boolean }): Promise<Deletion> => {
  const workspace = await findWorkspace(db, name)
  const described = { id: workspace.id, user_slug: workspace.userSlug, workspace_slug: workspace.workspaceSlug }
  if (!confirmed) return { deleted: false, ...described, contents: await countContents(db, workspace) }
  try {
    const contents = await db.transaction((trx) => removeWorkspace(trx, workspace))
    return { deleted: true, ...described, contents }
  } catch (thrown) {
    if (!isLostRace(thrown)) throw thrown
    throw new UserError(`The workspace ${name} was in use, and nothing was deleted. Try again.`, { cause: thrown })
  }
}

/** Describes the contents of a workspace in a sentence fragment. */
export const describeContents = (contents: WorkspaceContents): string =>
  [
    countOf(contents.repositories, 'repository', 'repositories'),
    countOf(contents.destinations, 'destination', 'destinations'),
    countOf(contents.connections, 'connection', 'connections'),
    `${countOf(contents.documents, 'document', 'documents')} with ${countOf(contents.bytes, 'byte', 'bytes')}`,
    countOf(contents.open_deliveries, 'open delivery', 'open deliveries'),
    countOf(contents.api_keys, 'API key', 'API keys'),
  ].join(', ')

const removeWorkspace = async (trx: Transaction, workspace: Workspace): Promise<WorkspaceContents> => {
  const { id } = workspace
  await lockRouting(trx, id)
  // Waits for the transactions that are inserting documents. Transactions that begin later wait for this one, and find no workspace then.
  await trx('workspaces').select('id').where({ id }).forUpdate()
  // Deleting a large workspace takes longer than any other statement may.
  await trx.raw('set local statement_timeout = 0')
  const contents = await countContents(trx, workspace)
  checkIdle(workspace, contents)
  await cancelFailed(trx, id)
  await releaseContents(trx, id)
  for (const table of withoutKeys) await trx(table).where({ workspace_id: id }).delete()
  // Deliveries before documents, and documents before what they refer to. The rest goes together with the workspace.
  await trx('deliveries')
    .whereIn('document_id', trx('documents').select('id').where({ workspace_id: id }))
    .delete()
  await trx('documents').where({ workspace_id: id }).delete()
  await trx('archive_documents').where({ workspace_id: id }).delete()
  // Changes first: the job that adds them up may be moving them to the counters.
  await trx('counter_deltas').where({ workspace_id: id }).delete()
  await trx('counters').where({ workspace_id: id }).delete()
  await trx('workspaces').where({ id }).delete()
  return contents
}

// Tables without a foreign key to the workspace.
const withoutKeys = ['captured_bodies', 'captured_requests', 'delivery_attempts', 'audit_logs', 'events']

/** @throws `UserError` if a workflow runs, or will be started, that needs the workspace, or something of it is on legal hold */
const checkIdle = ({ userSlug, workspaceSlug }: Workspace, contents: WorkspaceContents): void => {
  const { open_deliveries, running_bulk_retries, legal_holds, waiting_messages } = contents
  const reasons = [
    ...(open_deliveries > 0 ? [`It has ${open_deliveries} open deliveries: delete its destinations first, which cancels them.`] : []),
    ...(running_bulk_retries > 0 ? [`It has ${running_bulk_retries} running bulk retries: wait until they end, or cancel them.`] : []),
    ...(legal_holds > 0 ? [`It has ${countOf(legal_holds, 'legal hold', 'legal holds')}: lift them first.`] : []),
    ...(waiting_messages > 0 ? [`${waiting_messages} messages to Temporal have not been sent yet: wait until they are.`] : []),
  ]
  if (reasons.length === 0) return
  throw new UserError(`The workspace ${userSlug}/${workspaceSlug} is in use, and nothing was deleted. ${reasons.join(' ')}`)
}

const countContents = async (db: Database | Transaction, { id, userSlug, workspaceSlug }: Workspace): Promise<WorkspaceContents> => {
  const { rows } = await db.raw<{ rows: WorkspaceContents[] }>(
    `
    select
      (select count(*) from repositories where workspace_id = :id and deleted_at is null) as repositories,
      (select count(*) from destinations where workspace_id = :id and deleted_at is null) as destinations,
      (select count(*) from connections where workspace_id = :id) as connections,
      (select count(*) from documents where workspace_id = :id) as documents,
      (select coalesce(sum(bytes), 0)::bigint from workspace_storage where workspace_id = :id) as bytes,
      (
        -- The index deliveries_open_of_destination serves it. A deleted destination may still have deliveries to cancel.
        select count(*)
        from deliveries
        where destination_id in (select destinations.id from destinations where workspace_id = :id)
          and status in ('pending', 'held', 'retrying')
      ) as open_deliveries,
      (select count(*) from bulk_retries where workspace_id = :id and status = 'running') as running_bulk_retries,
      (select count(*) from legal_holds where workspace_id = :id) as legal_holds,
      (
        -- A message that cancels a delivery has the workspace elsewhere: it needs nothing of the workspace.
        select count(*)
        from outbox
        where coalesce(message #>> '{input,workspace}', message #>> '{subject,workspace}') = :name
      ) as waiting_messages,
      (select count(*) from api_keys where workspace_id = :id and revoked_at is null) as api_keys
    `,
    { id, name: `${userSlug}/${workspaceSlug}` },
  )
  return rows[0]!
}

// The sweep sends the oldest messages first, several hundred a second. Messages of a deletion become due more slowly than that, so that they are
// never in front of many others.
const cancelledPerSecond = 100

/**
 * Adds messages that end the workflows of failed deliveries, which wait for a manual retry. Without effect where none is open. They are due
 * one after the other: a workspace may have a million.
 */
const cancelFailed = (trx: Transaction, workspaceId: string) =>
  trx.raw(
    `
    insert into outbox (key, due_at, message)
    select
      'cancel/' || documents.id || '/' || destination_id || '#' || :requestId::text,
      now() + (row_number() over ()) * interval '1 second' / ${cancelledPerSecond},
      jsonb_build_object(
        'kind', 'cancelDelivery',
        'document', jsonb_build_object(
          'documentId', documents.id, 'workspace', user_slug || '/' || workspace_slug, 'repoId', repo_id, 'docId', doc_id,
          'compId', comp_id),
        'destinationId', destination_id, 'requestId', :requestId::text)
    from documents
    join workspaces on workspaces.id = documents.workspace_id
    join deliveries on document_id = documents.id
    where documents.workspace_id = :workspaceId
      and documents.status = 'failed'
      and deliveries.status = 'failed'
    `,
    { workspaceId, requestId: newId() },
  )

/** Leaves the contents, with those of segments, to the job remove-orphans. An upload under way has no owner yet, and gets none. */
const releaseContents = async (trx: Transaction, workspaceId: string) => {
  await trx('content_segments').where({ workspace_id: workspaceId }).delete()
  await trx('contents')
    .where({ workspace_id: workspaceId })
    .whereRaw('(owned_at is not null or captured_on is not null)')
    .update({ owned_at: null, captured_on: null, created_at: trx.fn.now() })
}
