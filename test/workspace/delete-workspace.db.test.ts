import { createKey } from '../../src/access/key-administration.ts'
import { destinationsOf } from '../../src/app/use-cases.ts'
import { UserError } from '../../src/base/errors.ts'
import { newId } from '../../src/base/ids.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { setTier } from '../../src/workspace/administration.ts'
import { deleteWorkspace } from '../../src/workspace/delete-workspace.ts'
import { createWorkspaces } from '../../src/workspace/workspaces.ts'
import { insertDocumentMigration } from '../api/insert-document-migration.ts'
import { foldAll } from '../support/counters.ts'
import { captureAt, insertNumberedDocuments } from '../support/factories.ts'
import { waitsForLock } from '../support/locks.ts'
import { insertManifest } from '../support/manifest.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const scene = share(await startScene())

const actor = { type: 'system', userId: null } as const
const confirmed = { confirmed: true }

/** Creates a workspace with rows in every table and no work left to do: one document has been delivered, and one has failed. */
const createFullWorkspace = async () => {
  const { db } = scene
  const workspace = await scene.workspace()
  const { workspaceId: workspace_id, repositoryId: repository_id, source } = workspace
  const name = `acme/${workspace.workspaceSlug}`
  expect((await source.create('D1', 'hello')).status).toBe(201)
  expect((await source.append('D1', ' world')).status).toBe(200)
  expect((await source.create('D2', 'x'.repeat(300_000))).status).toBe(201)
  await db('deliveries').where({ workspace_id }).update({ status: 'delivered' })
  const failed = await db('documents').where({ workspace_id, doc_id: 'D2' }).first('id')
  await db('deliveries').where({ document_id: failed.id }).update({ status: 'failed' })
  await db('outbox').delete()
  await createKey(db, { workspace: name, level: 'admin', name: 'test', member: 'a@example.com' })
  await setTier(db, name, 'compliance')
  await captureAt(db, workspace_id, new Date())
  const id = newId()
  const attempt = { started_at: new Date(), duration_ms: 1, outcome: 'delivered', number: 1 }
  await db('delivery_attempts').insert({
    id,
    workspace_id,
    document_id: failed.id,
    destination_id: workspace.destinations['archive'],
    ...attempt,
  })
  await db('bulk_retries').insert({
    id,
    workspace_id,
    action: 'retry',
    status: 'completed',
    filter: '{}',
    matched_documents: 1,
    matched_deliveries: 1,
    actor_type: 'system',
  })
  const inAnHour = new Date(Date.now() + 3_600_000)
  const repeatable = { execution_id: id, request_sealed: Buffer.from('x'), locked_until: inAnHour, expires_at: inAnHour }
  await db('idempotency_keys').insert({ workspace_id, owner: 'user P1', key: 'K1', ...repeatable })
  await insertDocumentMigration(db, workspace_id, repository_id)
  const day = await insertManifest(db, workspace_id)
  await db('manifest_copies').insert({ workspace_id, day, destination_id: workspace.destinations['archive'], has_stamp: false })
  await db('enrichments').insert({ id, workspace_id, name: 'Invoices', wait_seconds: 60, late_days: 7, steps: '[]' })
  await db('enrichment_repositories').insert({ repository_id, enrichment_id: id, position: 0 })
  const enriched = { workspace_id, waits_until: new Date(), ends_at: new Date() }
  await db('document_enrichments').insert({ document_id: failed.id, enrichment_id: id, ...enriched })
  const subject = {
    auth_id: 'CN=T',
    subject: 'CN=T',
    issuer: 'CN=T',
    serial_number: '1',
    key_algorithm: 'rsa',
    signer_id: 's',
    signature_algorithm: '1.2.840.113549.1.1.11',
  }
  const validity = { valid_from: new Date(), valid_to: new Date(), fingerprint_sha1: '1', fingerprint_sha256: '2' }
  await db('certificates').insert({
    id,
    workspace_id,
    repository_id,
    received: Buffer.from('x'),
    der: Buffer.from('x'),
    ...subject,
    ...validity,
  })
  await db('early_metadata').insert({ workspace_id, repo_id: 'Z1', doc_id: 'LATER', file_name: 'Invoice.pdf', changed_at: new Date() })
  const times = { created_at: new Date(), updated_at: new Date() }
  const destination_id = workspace.destinations['archive']
  const at = { epoch: 1, transaction: 1, number: 1 }
  await db('event_subscriptions').insert({ id, workspace_id, name: 'Data', events: ['document.failed'], destination_id, ...at })
  await db('side_queues').insert({ kind: 'events', id, workspace_id })
  await db('notifications').insert({
    id,
    workspace_id,
    name: 'All',
    events: ['delivery.failed'],
    destination_id,
    quiet_seconds: 0,
    silence_hours: 72,
    ...times,
  })
  const seen = { opened_at: new Date(), last_seen_at: new Date() }
  await db('incidents').insert({ id, workspace_id, event: 'delivery.failed', subject: 'x', count: 1, details: '{}', ...seen })
  const notice = { notification_id: id, incident_id: id, transition: 'opened', data: '{}', created_at: new Date() }
  await db('notices').insert({ id, workspace_id, ...notice })
  expect(await db('captured_bodies').where({ workspace_id })).toHaveLength(4)
  return { ...workspace, name, failedId: failed.id as string }
}

/** Counts the rows of a workspace in every table with a workspace_id. */
const countRows = async (workspaceId: string): Promise<Record<string, number>> => {
  const { rows } = await scene.db.raw<{ rows: { name: string }[] }>(
    `
    select relname as name
    from information_schema.columns
    join pg_class on relname = table_name and relnamespace = 'public'::regnamespace
    where table_schema = 'public'
      and column_name = 'workspace_id'
      and relkind in ('r', 'p')
      and not relispartition
    order by relname
    `,
  )
  const counts: Record<string, number> = {}
  for (const { name } of rows) {
    const [counted] = await scene.db(name).where({ workspace_id: workspaceId }).count<{ count: number }[]>()
    counts[name] = counted!.count
  }
  return counts
}

const sweep = async () => {
  const { db } = scene
  const { postgres } = createSegmentedStores(db, { postgres: createPostgresStore(db) })
  return sweepOrphans(db, { postgres }, new Date(Date.now() + 60_000))
}

test('everything of the workspace is deleted, its bytes by the job remove-orphans, and no other workspace changes', async () => {
  const { db } = scene
  const [gone, kept] = [await createFullWorkspace(), await createFullWorkspace()]
  await foldAll(scene.db)
  // A change that has not been added to the counters.
  await scene.db('documents').where({ id: gone.failedId }).update({ acknowledged_at: new Date() })
  const before = await countRows(gone.workspaceId)
  const beforeOfKept = await countRows(kept.workspaceId)
  // A workspace with a hold is not deleted: see test/archive/legal-holds.db.test.ts.
  expect(Object.keys(before).filter((table) => before[table] === 0)).toEqual(['legal_hold_keys', 'legal_holds'])

  const contents = {
    repositories: 1,
    destinations: 1,
    connections: 1,
    documents: 2,
    bytes: 300_026,
    open_deliveries: 0,
    running_bulk_retries: 0,
    legal_holds: 0,
    waiting_messages: 0,
    // Three of the scene, and its own.
    api_keys: 4,
  }
  const named = { id: gone.workspaceId, user_slug: 'acme', workspace_slug: gone.workspaceSlug, contents }
  expect(await deleteWorkspace(db, gone.name, { confirmed: false })).toEqual({ deleted: false, ...named })
  expect(await countRows(gone.workspaceId)).toEqual(before)

  expect(await deleteWorkspace(db, gone.name, confirmed)).toEqual({ deleted: true, ...named })
  const { contents: waiting, ...others } = await countRows(gone.workspaceId)
  expect(waiting).toBe(before['contents'])
  expect(Object.entries(others).filter(([, count]) => count > 0)).toEqual([])
  // The workflow of the failed delivery may still wait for a manual retry.
  expect(await db('outbox').select('key')).toEqual([
    { key: expect.stringMatching(`^cancel/${gone.failedId}/${gone.destinations['archive']}#`) },
  ])
  await db('outbox').delete()

  expect(await sweep()).toBeGreaterThan(0)
  expect(await db('contents').where({ workspace_id: gone.workspaceId })).toEqual([])
  expect(await db('content_chunks').whereNotIn('content_id', db('contents').select('id'))).toEqual([])
  expect(await countRows(kept.workspaceId)).toEqual(beforeOfKept)
  expect(String((await kept.source.get('D1')).body)).toBe('hello world')

  expect(await gone.source.create('D3', 'late')).toMatchObject({ status: 404 })
  expect(await gone.source.get('D1')).toMatchObject({ status: 404 })
  await expect(deleteWorkspace(db, gone.name, confirmed)).rejects.toThrow(UserError)
})

test.each(['pending', 'held', 'retrying'])(
  'a workspace with a delivery that is %s is refused, whether its destination is deleted or not',
  async (status) => {
    const { db } = scene
    const workspace = await createFullWorkspace()
    const { workspaceId: workspace_id, name } = workspace
    await db('deliveries').where({ document_id: workspace.failedId }).update({ status })
    const rows = await countRows(workspace_id)
    await expect(deleteWorkspace(db, name, confirmed)).rejects.toThrow(/1 open deliveries: delete its destinations first/)
    await db('destinations').where({ workspace_id }).update({ deleted_at: new Date() })
    await expect(deleteWorkspace(db, name, confirmed)).rejects.toThrow(UserError)
    expect(await countRows(workspace_id)).toEqual(rows)
  },
)

test('a workspace is refused while a message for it waits, and deleted once its destinations are deleted', async () => {
  const { db } = scene
  const { workspaceId, name, source, destinations } = await createFullWorkspace()
  await source.create('D4', 'hello')
  await destinationsOf(db).delete(workspaceId, destinations['archive']!, actor, { limit: 10, keepConnections: false })
  await expect(deleteWorkspace(db, name, confirmed)).rejects.toThrow(/1 messages to Temporal/)
  await db('outbox').whereRaw(`message ->> 'kind' = 'processBatches'`).delete()
  await db('bulk_retries').where({ workspace_id: workspaceId }).update({ status: 'running' })
  await expect(deleteWorkspace(db, name, confirmed)).rejects.toThrow(/1 running bulk retries/)
  await db('bulk_retries').where({ workspace_id: workspaceId }).update({ status: 'completed' })
  expect(await deleteWorkspace(db, name, confirmed)).toMatchObject({ deleted: true })
  await db('outbox').delete()
})

test('the messages of a deletion become due one after the other, so that the sweep sends those of others between them', async () => {
  const { db } = scene
  const workspace = await createFullWorkspace()
  const failed = 300
  await insertNumberedDocuments(db, workspace, failed, { status: 'failed' })
  await db('documents').where({ workspace_id: workspace.workspaceId }).update({ status: 'failed' })
  expect(await deleteWorkspace(db, workspace.name, confirmed)).toMatchObject({ deleted: true })
  const { rows } = await db.raw(`select count(*), extract(epoch from max(due_at) - min(due_at))::float8 as seconds from outbox`)
  const [{ count, seconds }] = rows
  expect(count).toBeGreaterThanOrEqual(failed)
  expect(seconds).toBeCloseTo((count - 1) / 100)
  await db('outbox').delete()
})

test('requests that arrive while the workspace is deleted are answered with 201 before and 404 after, never with 500', async () => {
  const { db } = scene
  const workspace = await scene.workspace([])
  const name = `acme/${workspace.workspaceSlug}`
  const create = (index: number) => workspace.source.create(`R${index}`, 'x'.repeat(index % 2 === 0 ? 10 : 300_000))
  const creates = Array.from({ length: 20 }, (_, index) => create(index))
  const deletion = deleteWorkspace(db, name, confirmed)
  creates.push(...Array.from({ length: 20 }, (_, index) => create(index + 20)))
  expect(await deletion).toMatchObject({ deleted: true })
  const answers = await Promise.all(creates)
  expect(answers.filter(({ status }) => status !== 201 && status !== 404)).toEqual([])
  expect(await workspace.source.create('LAST', 'x')).toMatchObject({ status: 404 })
  const { documents, archive_documents } = await countRows(workspace.workspaceId)
  expect({ documents, archive_documents }).toEqual({ documents: 0, archive_documents: 0 })
})

test('a create that waits for the deletion of its workspace is answered with 404', async () => {
  const { db } = scene
  const workspace = await scene.workspace()
  const trx = await db.transaction()
  await trx('workspaces').where({ id: workspace.workspaceId }).delete()
  const waiting = workspace.source.create('W1', 'hello')
  await until('the create waits for the workspace', () => waitsForLock(db))
  await trx.commit()
  expect(await waiting).toMatchObject({ status: 404, headers: { 'x-errordescription': expect.stringMatching(/^repository_not_found/) } })
})

test('changes of a workspace that was deleted meanwhile are answered with 404', async () => {
  const notFound = { code: 'not_found' }
  const workspaces = createWorkspaces(scene.db)
  await expect(workspaces.findSettings(newId())).rejects.toMatchObject(notFound)
  await expect(destinationsOf(scene.db).delete(newId(), newId(), actor, { limit: 1, keepConnections: false })).rejects.toMatchObject(
    notFound,
  )
})
