import { setTimeout } from 'node:timers/promises'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { openDatabase } from '../../src/db/database.ts'
import { isLockTimeout, isOutage } from '../../src/db/errors.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const config = testConfig()
const database = share(await createTestDatabase())
const { db } = database

/** Makes the insertion of documents with one docId sleep, as on a server that stalls. */
const stallAt = async (on: typeof db, docId: string) => {
  await on.raw(`
    create or replace function stall() returns trigger language plpgsql as $$
    begin
      perform pg_sleep(60);
      return new;
    end
    $$`)
  await on.raw(
    `create trigger stall_${docId.toLowerCase()} before insert on documents for each row when (new.doc_id = '${docId}') execute function stall()`,
  )
}

/** Inserts every row in which the documents of a repository are counted. */
const insertCounts = (on: typeof db, repositoryId: string) =>
  on('repository_counts').insert(Array.from({ length: 16 }, (_, shard) => ({ repository_id: repositoryId, shard, documents: 0 })))

/** Ends the connection of a statement that stalls, once there is one. */
const untilStalledIsEnded = (on: typeof db) =>
  until(
    'the connection of the stalled statement is ended',
    async () => {
      const { rows } = await on.raw<{ rows: unknown[] }>(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
      )
      return rows.length
    },
    (ended) => ended > 0,
  )

/** Returns the documents of a workspace, with the transaction that wrote each. */
const storedDocuments = async (workspaceId: string) =>
  db('documents')
    .where({ workspace_id: workspaceId })
    .select<{ docId: string; transaction: string }[]>('doc_id as docId', db.raw('xmin::text as transaction'))

const docIdsOf = (rows: { docId: string }[]) => rows.map(({ docId }) => docId).toSorted()

const outcomeOf = async (creating: Promise<{ created: boolean }>) =>
  creating.then(
    ({ created }) => created,
    (thrown: Error) => thrown,
  )

const scene = async (docIds: string[]) => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const documents = await Promise.all(docIds.map((docId) => receivedDocument(routes, { data: docId, note: `note of ${docId}` }, docId)))
  return { routes, documents }
}

describe('creates that arrive together', () => {
  test('share a transaction, and each has its own contents, documents and deliveries', async () => {
    const docIds = Array.from({ length: 20 }, (_, index) => `D${String(index).padStart(2, '0')}`)
    const { routes, documents } = await scene(docIds)
    const receive = createReceive(db, config)
    const results = await Promise.all(documents.map(receive))
    expect(results.map(({ created, documents: inserted }) => [created, inserted.length])).toEqual(docIds.map(() => [true, 2]))
    const stored = await storedDocuments(routes.workspaceId)
    expect(docIdsOf(stored)).toEqual(docIds.flatMap((docId) => [docId, docId]))
    expect(new Set(stored.map(({ transaction }) => transaction)).size).toBe(1)
    const { rows } = await db.raw<{ rows: { docId: string; compId: string; text: string }[] }>(
      `
      select doc_id as "docId", comp_id as "compId", convert_from(data, 'utf8') as text
      from documents
      join content_chunks using (content_id)
      where workspace_id = ?
      order by doc_id, comp_id
      `,
      [routes.workspaceId],
    )
    expect(rows).toEqual(
      docIds.flatMap((docId) => [
        { docId, compId: 'data', text: docId },
        { docId, compId: 'note', text: `note of ${docId}` },
      ]),
    )
    expect(await db('deliveries').where({ workspace_id: routes.workspaceId })).toHaveLength(40)
    const counted = await db('repository_counts').where({ repository_id: routes.repositoryId }).sum<{ sum: string }[]>('documents')
    expect(Number(counted[0]!.sum)).toBe(40)
    const storage = await db('workspace_storage').where({ workspace_id: routes.workspaceId }).sum<{ sum: string }[]>('bytes')
    expect(Number(storage[0]!.sum)).toBe(20 * (3 + 11))
  })

  test('of several repositories and workspaces share one, too', async () => {
    const scenes = await Promise.all(Array.from({ length: 4 }, () => scene(['D1', 'D2'])))
    const receive = createReceive(db, config)
    await Promise.all(scenes.flatMap(({ documents }) => documents).map(receive))
    const stored = await Promise.all(scenes.map(({ routes }) => storedDocuments(routes.workspaceId)))
    expect(stored.map(docIdsOf)).toEqual(scenes.map(() => ['D1', 'D1', 'D2', 'D2']))
    expect(new Set(stored.flat().map(({ transaction }) => transaction)).size).toBe(1)
  })

  test('are stored although one is a duplicate, one cannot be stored, and the content of one is gone', async () => {
    const { routes, documents } = await scene(['A', 'B', 'GONE', 'BAD\0', 'C'])
    const receive = createReceive(db, config)
    await receive(await receivedDocument(routes, { data: 'first' }, 'B'))
    const { buffer: _, ...stored } = documents[2]!.components[0]!.content!
    documents[2]!.components[0]!.content = stored
    const outcomes = await Promise.all(documents.map((document) => outcomeOf(receive(document))))
    expect(outcomes).toEqual([
      true,
      false,
      expect.objectContaining({ constraint: 'documents_content_id_fkey' }),
      expect.objectContaining({ code: '22P05' }),
      true,
    ])
    expect(docIdsOf(await storedDocuments(routes.workspaceId))).toEqual(['A', 'A', 'B', 'C', 'C'])
  })

  test('of one document succeed once, whichever process they reach, and do not deadlock', async () => {
    const docIds = Array.from({ length: 30 }, (_, index) => `D${index}`)
    const { routes } = await scene([])
    const processes = Array.from({ length: 4 }, () => createReceive(db, config))
    const created = new Map<string, number>()
    await Promise.all(
      processes.map(async (receive, index) => {
        const documents = await Promise.all(docIds.map((docId) => receivedDocument(routes, { data: docId }, docId)))
        const ordered = index % 2 === 0 ? documents : documents.toReversed()
        const results = await Promise.all(ordered.map(async (document) => ({ docId: document.docId, ...(await receive(document)) })))
        for (const result of results) if (result.created) created.set(result.docId, (created.get(result.docId) ?? 0) + 1)
      }),
    )
    expect(Object.fromEntries(created)).toEqual(Object.fromEntries(docIds.map((docId) => [docId, 1])))
    expect(docIdsOf(await storedDocuments(routes.workspaceId))).toEqual(docIds.toSorted())
  })

  test('do not wait for one whose document another transaction is creating', async () => {
    const { routes, documents } = await scene(['A', 'LOCKED', 'B'])
    const receive = createReceive(db, { ...config, lockTimeoutMs: 5_000 })
    const holder = await db.transaction()
    try {
      await holder('archive_documents').insert({
        id: newId(),
        workspace_id: routes.workspaceId,
        repository_id: routes.repositoryId,
        doc_id: 'LOCKED',
      })
      const order: string[] = []
      const results = await Promise.all(
        documents.map(async (document) => {
          const outcome = await outcomeOf(receive(document))
          order.push(document.docId)
          return outcome
        }),
      )
      expect(order.at(-1)).toBe('LOCKED')
      expect(results[0]).toBe(true)
      expect(results[2]).toBe(true)
      expect(isLockTimeout(results[1])).toBe(true)
    } finally {
      await holder.rollback()
    }
    expect(await receive(documents[1]!)).toMatchObject({ created: true })
  })

  test('wait for the count of their repository as long as one alone, and still share a transaction', async () => {
    const { routes, documents } = await scene(['A', 'B'])
    const receive = createReceive(db, config)
    const holder = await db.transaction()
    await insertCounts(holder, routes.repositoryId)
    const receiving = Promise.all(documents.map(receive))
    await setTimeout(1_000)
    await holder.commit()
    expect((await receiving).map(({ created }) => created)).toEqual([true, true])
    expect(new Set((await storedDocuments(routes.workspaceId)).map(({ transaction }) => transaction)).size).toBe(1)
  })

  test('fail together if their connection is lost, and nothing of them is stored', async () => {
    await stallAt(db, 'LOST')
    const { routes, documents } = await scene(['A', 'LOST', 'B'])
    await using lossy = disposable(openDatabase(databaseConfig(database.url), 'test'), (each) => each.destroy())
    const receive = createReceive(lossy, config)
    const outcomes = Promise.all(documents.map((document) => outcomeOf(receive(document))))
    await untilStalledIsEnded(db)
    expect((await outcomes).map((outcome) => outcome !== true && outcome !== false && isOutage(outcome))).toEqual([true, true, true])
    expect(await storedDocuments(routes.workspaceId)).toEqual([])
  })

  test('do not wait for the count of their repository while the insertion of one stalls', async () => {
    await stallAt(db, 'STALLED')
    const { routes, documents } = await scene(['STALLED'])
    await insertCounts(db, routes.repositoryId)
    await using lossy = disposable(openDatabase(databaseConfig(database.url), 'test'), (each) => each.destroy())
    const outcome = outcomeOf(createReceive(lossy, config)(documents[0]!))
    const isStalled = `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
    await until(
      'the insertion stalls',
      async () => (await db.raw<{ rows: unknown[] }>(isStalled)).rows.length,
      (stalled) => stalled > 0,
    )
    expect(await db('repository_counts').where({ repository_id: routes.repositoryId }).forUpdate().noWait()).toHaveLength(16)
    await untilStalledIsEnded(db)
    expect(isOutage(await outcome)).toBe(true)
  })

  test('are stored although the insertion of one takes longer than a statement may', async () => {
    await stallAt(db, 'SLOW')
    const limits = { ...databaseConfig(database.url), DATABASE_STATEMENT_TIMEOUT_MS: 5_000 }
    await using impatient = disposable(openDatabase(limits, 'test'), (each) => each.destroy())
    const { routes, documents } = await scene(['A', 'SLOW', 'B'])
    const receive = createReceive(impatient, config)
    const outcomes = await Promise.all(documents.map((document) => outcomeOf(receive(document))))
    expect(outcomes).toEqual([true, expect.objectContaining({ code: '57014' }), true])
    expect(docIdsOf(await storedDocuments(routes.workspaceId))).toEqual(['A', 'A', 'B', 'B'])
  })
})

describe('requests that share a transaction', () => {
  test('are answered with 503, and nothing of them is stored, if their connection is lost', async () => {
    const receiver = await startScene()
    await using _ = disposable(receiver, (each) => each.stop())
    await using observer = disposable(openDatabase(databaseConfig(receiver.database.url), 'test observer'), (each) => each.destroy())
    const { source, workspaceId } = await receiver.workspace()
    await stallAt(observer, 'STALLED')
    const docIds = ['A', 'B', 'STALLED', 'C']
    const answers = Promise.all(docIds.map((docId) => source.create(docId, docId)))
    await untilStalledIsEnded(observer)
    const statuses = Object.fromEntries((await answers).map(({ status }, index) => [docIds[index]!, status]))
    expect(statuses).toMatchObject({ STALLED: 503 })
    // A request that came earlier or later than the statement with STALLED is not part of it.
    const accepted = docIds.filter((docId) => statuses[docId] === 201)
    expect(docIds.filter((docId) => statuses[docId] === 503)).toEqual(docIds.filter((docId) => !accepted.includes(docId)))
    for (const table of ['archive_documents', 'documents', 'contents']) {
      expect(await observer(table).where({ workspace_id: workspaceId })).toHaveLength(accepted.length)
    }
  })

  test('are stored although one exceeds the quota', async () => {
    const receiver = await startScene({ variables: { RELAY_WORKSPACE_MAX_BYTES: '1000' } })
    await using _ = disposable(receiver, (each) => each.stop())
    const { source, countRows } = await receiver.workspace()
    const answers = await Promise.all([source.create('A', 'a'), source.create('LARGE', 'x'.repeat(1_001)), source.create('B', 'b')])
    expect(answers.map(({ status }) => status)).toEqual([201, 507, 201])
    expect(await countRows()).toEqual({ archiveDocuments: 2, documents: 2, contents: 2 })
  })
})
