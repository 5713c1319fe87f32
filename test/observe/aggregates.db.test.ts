import { Registry } from 'prom-client'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { listPartitionEnds } from '../../src/db/partitions.ts'
import { enrichmentKind } from '../../src/enrichment/enrichments.ts'
import { aggregates, computeAggregates, createAggregateMetrics } from '../../src/observe/aggregates.ts'
import { createWaitingMetrics } from '../../src/observe/metrics.ts'
import { foldAll } from '../support/counters.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { noteAllBegun } from '../support/starts.ts'

const hourMs = 3_600_000

/** Creates a database, and functions that fill it and scrape what is counted there. */
const createCounted = async () => {
  const database = await createTestDatabase()
  const { db } = database
  return {
    db,
    /** Returns the values that a scrape sees, by name and labels. */
    scrape: async (): Promise<Record<string, number>> => {
      const registry = new Registry()
      for (const metric of [...createAggregateMetrics(db), ...createWaitingMetrics(db, createOutbox(db))]) {
        registry.registerMetric(metric)
      }
      const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
    },
    /** Receives a document for the destinations `a` (webhook), `b` (sftp, behind an inactive connection). */
    receive: async () => {
      const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b', connector: 'sftp' }], { inactive: ['b'] })
      const received = await receivedDocument(routes, { data: 'hello' })
      const receivedAt = new Date(Date.now() - 2 * hourMs)
      const { documents } = await createReceive(db, testConfig())({ ...received, receivedAt })
      return { ...routes, documentId: documents[0]!.documentId, a: routes.destinations['a']!, b: routes.destinations['b']! }
    },
    capture: (workspaceId: string, repoId: string, at: Date) =>
      db('captured_requests').insert({
        id: newId(),
        workspace_id: workspaceId,
        channel: 'receiver',
        http_method: 'GET',
        uri: '/',
        query_string: '',
        repo_id: repoId,
        request_headers: '{}',
        source_ip: '127.0.0.1',
        request_at: at,
        status_code: 200,
        response_headers: '{}',
        duration_ms: 1,
        response_at: at,
      }),
    [Symbol.asyncDispose]: database.drop,
  }
}

test('open deliveries and failed documents are counted for each workspace, whether the counters are folded or not', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive } = counted
  const [one, other] = [await receive(), await receive()]
  const open = (slug: string, status: string) => `relay_deliveries_open{workspace="acme/${slug}",status="${status}"}`
  const failed = (slug: string) => `relay_documents_failed{workspace="acme/${slug}"}`
  for (const fold of [false, true]) {
    if (fold) await foldAll(db)
    await computeAggregates(db)
    const scraped = await scrape()
    for (const { workspaceSlug: slug } of [one, other])
      expect(scraped).toMatchObject({
        [open(slug, 'pending')]: 1,
        [open(slug, 'held')]: 1,
        [open(slug, 'retrying')]: 0,
        [failed(slug)]: 0,
      })
  }
  const pending = db('deliveries').where({ workspace_id: one.workspaceId, status: 'pending' })
  await pending.clone().update({ status: 'retrying' })
  await db('documents').where({ id: other.documentId }).update({ status: 'failed' })
  for (const fold of [false, true]) {
    if (fold) await foldAll(db)
    await computeAggregates(db)
    expect(await scrape()).toMatchObject({
      [open(one.workspaceSlug, 'pending')]: 0,
      [open(one.workspaceSlug, 'retrying')]: 1,
      [open(other.workspaceSlug, 'pending')]: 1,
      [failed(one.workspaceSlug)]: 0,
      [failed(other.workspaceSlug)]: 1,
    })
  }
  await db('documents').where({ id: other.documentId }).update({ acknowledged_at: new Date() })
  await computeAggregates(db)
  expect(await scrape()).toMatchObject({ [failed(other.workspaceSlug)]: 0 })
})

test('the age of the oldest open delivery grows without another computation, and is 0 once nothing is open', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive } = counted
  const { workspaceSlug } = await receive()
  const name = (connector: string) => `relay_oldest_open_delivery_seconds{workspace="acme/${workspaceSlug}",connector="${connector}"}`
  await computeAggregates(db)
  const before = await scrape()
  expect(before[name('webhook')]).toBeGreaterThanOrEqual(7_200)
  expect(before[name('webhook')]).toBeLessThan(7_200 + 600)
  // An operator holds it back on purpose.
  expect(before[name('sftp')]).toBe(0)
  await new Promise((resolve) => {
    setTimeout(resolve, 20)
  })
  expect((await scrape())[name('webhook')]).toBeGreaterThan(before[name('webhook')]!)
  await db('deliveries').where({ status: 'pending' }).update({ status: 'delivered' })
  await computeAggregates(db)
  expect(await scrape()).toMatchObject({ [name('webhook')]: 0 })
})

test('slots in use and circuits are counted', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive } = counted
  const { a, b } = await receive()
  const inAMinute = db.raw(`now() + interval '1 minute'`)
  await db('destination_slots').insert([
    { destination_id: a, number: 1, holder: newId(), leased_until: inAMinute },
    { destination_id: a, number: 2, holder: newId(), leased_until: db.raw(`now() - interval '1 minute'`) },
    { destination_id: a, number: 3, holder: null, leased_until: '-infinity' },
  ])
  await db('destination_gates').insert({ destination_id: b, circuit: 'open' })
  await computeAggregates(db)
  expect(await scrape()).toMatchObject({
    'relay_destination_slots_used{connector="webhook"}': 1,
    'relay_destination_slots_used{connector="sftp"}': 0,
    'relay_circuits{state="closed"}': 1,
    'relay_circuits{state="open"}': 1,
    'relay_circuits{state="half_open"}': 0,
  })
})

test('the documents of an enrichment are counted by status until they are deleted', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive } = counted
  const { workspaceId, workspaceSlug, documentId } = await receive()
  const id = newId()
  const terms = { workspace_id: workspaceId, name: 'Invoices', wait_seconds: 60, late_days: 7, steps: '[]' }
  await db('enrichments').insert({ id, ...terms })
  const ended = db.raw(`now() - interval '1 minute'`)
  const row = { document_id: documentId, workspace_id: workspaceId, enrichment_id: id, waits_until: ended, ends_at: ended }
  await db('document_enrichments').insert(row)
  const labels = `workspace="acme/${workspaceSlug}",enrichment="Invoices"`
  const documents = (status: string) => `relay_enrichment_documents{${labels},status="${status}"}`
  const failing = `relay_enrichment_failing{${labels}}`
  await computeAggregates(db)
  expect(await scrape()).toMatchObject({ [documents('pending')]: 1, [failing]: 0 })
  await foldAll(db)
  await db('document_enrichments').update({ status: 'failed' })
  await computeAggregates(db)
  expect(await scrape()).toMatchObject({ [documents('failed')]: 1, [failing]: 1 })
  expect(await enrichmentKind.listAll(db, workspaceId)).toMatchObject([
    { isFailing: true, documents: { pending: 0, complete: 0, partial: 0, failed: 1 } },
  ])
  await db('documents').where({ id: documentId }).delete()
  await foldAll(db)
  await computeAggregates(db)
  expect(await scrape()).not.toHaveProperty([documents('failed')])
})

test('the last request of a repository stays known after its captured request was removed', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive, capture } = counted
  const { workspaceId, workspaceSlug, repoId, repositoryId } = await receive()
  const name = `relay_repository_last_request_timestamp_seconds{workspace="acme/${workspaceSlug}",repo_id="${repoId}"}`
  await computeAggregates(db)
  expect(await scrape()).not.toHaveProperty([name])
  const last = new Date(Date.now() - hourMs)
  await capture(workspaceId, repoId, new Date(last.getTime() - hourMs))
  await capture(workspaceId, repoId, last)
  for (const remove of [false, true]) {
    if (remove) await db('captured_requests').delete()
    await computeAggregates(db)
    expect(await scrape()).toHaveProperty([name], last.getTime() / 1_000)
  }
  await db('repositories').where({ id: repositoryId }).update({ status: 'inactive' })
  await computeAggregates(db)
  expect(await scrape()).not.toHaveProperty([name])
})

test('of the active certificates of a signer, the one that is valid for the longest time counts', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive } = counted
  const { workspaceId, workspaceSlug, repositoryId, repoId } = await receive()
  const end = (years: number) => new Date(Date.UTC(2030 + years, 0, 1))
  const insert = (fingerprint: string, validTo: Date, isActive: boolean) =>
    db('certificates').insert({
      id: newId(),
      workspace_id: workspaceId,
      repository_id: repositoryId,
      auth_id: 'CN=T',
      received: Buffer.from('x'),
      der: Buffer.from('x'),
      subject: 'CN=T',
      issuer: 'CN=T',
      serial_number: '1',
      key_algorithm: 'rsa',
      signature_algorithm: '1.2.840.113549.1.1.11',
      signer_id: 's',
      valid_from: new Date(),
      valid_to: validTo,
      fingerprint_sha1: fingerprint,
      fingerprint_sha256: fingerprint,
      is_active: isActive,
    })
  await insert('1', end(0), true)
  await insert('2', end(1), true)
  await insert('3', end(2), false)
  await computeAggregates(db)
  const name = `relay_certificate_not_after_timestamp_seconds{workspace="acme/${workspaceSlug}",repo_id="${repoId}",auth_id="CN=T"}`
  expect(await scrape()).toHaveProperty([name], end(1).getTime() / 1_000)
})

test('the time that partitions cover, the size of the database and the time of the computation are exported', async () => {
  await using counted = await createCounted()
  const { db, scrape } = counted
  expect(await scrape()).toMatchObject({ relay_statistics_computed_timestamp_seconds: 0 })
  const startedAt = Date.now() / 1_000
  await computeAggregates(db)
  const values = await scrape()
  const ends = await listPartitionEnds(db)
  expect(ends).toHaveLength(4)
  for (const { table, end } of ends) {
    const left = values[`relay_partitions_ahead_seconds{table="${table}"}`]!
    expect(Math.abs(left - (end.getTime() - Date.now()) / 1_000)).toBeLessThan(60)
    expect(left).toBeGreaterThan(13 * 86_400)
  }
  expect(values['relay_database_bytes']).toBeGreaterThan(1_000_000)
  expect(Math.abs(values['relay_statistics_computed_timestamp_seconds']! - startedAt)).toBeLessThan(60)
})

test('the age of the oldest unsent message is exported, but not of one that is not due', async () => {
  await using counted = await createCounted()
  const { db, scrape } = counted
  await noteAllBegun(db)
  await db('outbox').insert({ key: 'later', message: '{}', due_at: db.raw(`now() + interval '1 hour'`) })
  expect(await scrape()).toMatchObject({ relay_waiting_oldest_seconds: 0 })
  await db('outbox').insert({ key: 'now', message: '{}', due_at: db.raw(`now() - interval '1 minute'`) })
  const { relay_waiting_oldest_seconds: seconds } = await scrape()
  expect(seconds).toBeGreaterThanOrEqual(60)
  expect(seconds).toBeLessThan(600)
})

test('the age and the number of documents that nobody has begun are exported, and of a release only the number', async () => {
  await using counted = await createCounted()
  const { db, scrape, receive } = counted
  await db('outbox').delete()
  await noteAllBegun(db)
  await receive()
  await db('deliveries')
    .whereNotNull('begin_at')
    .update({ begin_as: 'delivery', begin_at: db.raw(`now() - interval '10 minutes'`) })
  const { relay_waiting: count, ...released } = await scrape()
  expect(count).toBeGreaterThan(0)
  expect(released).toMatchObject({ relay_waiting_oldest_seconds: 0 })
  await db('deliveries').whereNotNull('begin_at').update({ begin_as: 'document' })
  const received = await scrape()
  expect(received).toMatchObject({ relay_waiting: count })
  expect(received['relay_waiting_oldest_seconds']).toBeGreaterThanOrEqual(600)
  await noteAllBegun(db)
})

test('two computations at the same time store what one stores', async () => {
  await using counted = await createCounted()
  const { db, receive } = counted
  await receive()
  await Promise.all([computeAggregates(db), computeAggregates(db), computeAggregates(db)])
  const metrics = new Set(await db('aggregates').pluck('metric'))
  expect(metrics).toEqual(
    new Set(aggregates.map(({ name }) => name).filter((name) => !/^relay_(repository_last|certificate|enrichment|retention)/.test(name))),
  )
})

test('no query reads a whole table that grows with the documents', async () => {
  await using counted = await createCounted()
  const { db } = counted
  const growing = /Seq Scan on (documents|deliveries|delivery_attempts\w*|captured_requests\w*|counters|counter_deltas)\b/
  const statements: { sql: string; bindings?: readonly unknown[] }[] = []
  const record = (statement: { sql: string; bindings?: readonly unknown[] }) => statements.push(statement)
  db.on('query', record)
  for (const { compute } of aggregates) await compute(db)
  db.removeListener('query', record)
  const connection = await db.client.acquireConnection()
  try {
    // The tables of a test are so small that PostgreSQL would read them whole.
    await connection.query('set enable_seqscan = off')
    for (const { sql, bindings = [] } of statements) {
      const { rows } = await connection.query(`explain ${sql}`, bindings)
      const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
      expect(plan).not.toMatch(growing)
    }
    const { rows } = await connection.query(`explain select count(*) from deliveries where overwrites = 7`)
    expect(rows[0]['QUERY PLAN'] + rows[1]['QUERY PLAN']).toMatch(growing)
  } finally {
    await connection.query('reset enable_seqscan')
    await db.client.releaseConnection(connection)
  }
})
