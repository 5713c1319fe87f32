import { createLegalHolds } from '../../src/archive/legal-holds.ts'
import { supersedeDocuments } from '../../src/archive/locks.ts'
import { dayOf } from '../../src/base/day.ts'
import { newId } from '../../src/base/ids.ts'
import type { TargetAnswer } from '../../src/connectors/connector.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createManifestMetrics } from '../../src/proof/manifest-metrics.ts'
import { insertNumberedDocuments, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { inShell } from './openssl.ts'
import { db, dayMs, makeManifests, arrange, linesOf, verifySignature } from './scene.ts'

// What is in a manifest, and that nothing is removed before it is in one.

test('a manifest has no business data, and an erasure does not touch it', async () => {
  await using folder = await createFolder()
  const { receive, deliver, exportAll, workspaceId } = await arrange()
  const document = await receive(newId(), 'Müller invoice.pdf')
  await db('documents')
    .where({ id: document.documentId })
    .update({ file_name: 'Müller.pdf', description: 'Müller', erp_object_id: 'Müller' })
  const free = { reply: '250 Müller', location: '/Müller', id: 'Müller', request_id: 'Müller', body: 'Müller', note: 'Müller' }
  await deliver(document, { status: 250, message_id: '<m@relay.example>', ...free })
  await makeManifests(2)
  await createErase(db)(workspaceId, document.documentId, { type: 'system', userId: null })
  await exportAll(folder.path)
  const { output } = await inShell(folder.path, `cat *.jsonl`)
  expect(output).toContain('<m@relay.example>')
  expect(output).not.toMatch(/M(ü|\\u00fc)ller/)
  expect(await inShell(folder.path, verifySignature(document.day))).toMatchObject({ ok: true })
})

test('a receipt of a document that was received on an earlier day is in the manifest of its own day', async () => {
  await using folder = await createFolder()
  const { receive, deliver, exportAll } = await arrange()
  const document = await receive()
  await makeManifests(2)
  const later = Date.parse(`${document.day}T12:00:00Z`) + 3 * dayMs
  await deliver(document, { status: 200, etag: '"late"' }, later)
  await makeManifests(5)
  await exportAll(folder.path)
  const first = (await linesOf(folder.path, document.day)).find(({ document_id: id }) => id === document.documentId)
  expect(first).toMatchObject({ type: 'document', status: 'pending', deliveries: [{ status: 'pending', receipt: null }] })
  const [, receipt, end] = await linesOf(folder.path, dayOf(new Date(later)))
  expect(receipt).toMatchObject({
    type: 'receipt',
    document_id: document.documentId,
    kind: 'objstore',
    receipt: { target: { etag: '"late"' } },
  })
  expect(end).toEqual({ type: 'end', legal_holds: 0, documents: 0, receipts: 1, superseded: 0 })
})

test('a deletion by the source is told from an update, on the day of the receipt and later, and holds are named without business data', async () => {
  await using folder = await createFolder()
  const { receive, exportAll, workspaceId, repositoryId } = await arrange()
  const [updated, deleted, later] = [await receive(newId(), 'a'), await receive(newId(), 'a'), await receive()]
  const isRead = (docId: string) =>
    db('archive_documents').where({ repository_id: repositoryId, doc_id: docId }).first<{ id: string }>('id')
  const supersede = async ({ docId }: { docId: string }, ...rest: unknown[]) => {
    const { id } = await isRead(docId)
    await db.transaction((trx) => supersedeDocuments(trx, id, ...(rest as ['document.deleted'])))
  }
  await supersede(updated, 'document.superseded', { replacedBy: ['a'] })
  await supersede(deleted, 'document.superseded', { replacedBy: ['b'] })
  await db('documents').where({ id: deleted.documentId }).update({ erp_object_type: 'BKPF', erp_object_id: 'Mueller' })
  const holds = createLegalHolds(db)
  const set = (subject: object) => holds.set(workspaceId, { ...subject, reason: 'Audit of Müller' }, systemActor)
  const [onObject, onDocument] = [
    await set({ erpObjectType: 'bkpf', erpObjectId: 'MUELLER' }),
    await set({ repoId: 'Z1', docId: deleted.docId }),
  ]
  await makeManifests(1)
  await supersede(later, 'document.deleted')
  const at = new Date(Date.parse(`${later.day}T12:00:00Z`) + 2 * dayMs)
  await db('documents').where({ id: later.documentId }).update({ superseded_at: at })
  await makeManifests(4)
  await exportAll(folder.path)
  const first = await linesOf(folder.path, updated.day)
  const ofDocument = ({ documentId }: { documentId: string }) => first.find(({ document_id: id }) => id === documentId)
  expect(ofDocument(updated)).toMatchObject({ superseded_at: expect.any(String), superseded_by: 'update', legal_holds: [] })
  expect(ofDocument(deleted)).toMatchObject({
    superseded_at: expect.any(String),
    superseded_by: 'delete',
    legal_holds: [onObject.id, onDocument.id],
  })
  expect(ofDocument(later)).toMatchObject({ superseded_at: null, superseded_by: null })
  const subject = { repo_id: null, doc_id: null }
  expect(first.slice(1, 3)).toEqual([
    { type: 'legal_hold', id: onObject.id, scope: 'business_object', ...subject, set_at: onObject.createdAt.toISOString() },
    { type: 'legal_hold', id: onDocument.id, scope: 'document', repo_id: 'Z1', doc_id: deleted.docId, set_at: expect.any(String) },
  ])
  const line = { doc_id: later.docId, repo_id: 'Z1', document_id: later.documentId }
  const lines = await linesOf(folder.path, dayOf(at))
  expect(lines.slice(3)).toEqual([
    { type: 'superseded', ...line, superseded_at: at.toISOString(), superseded_by: 'delete' },
    { type: 'end', legal_holds: 2, documents: 0, receipts: 0, superseded: 1 },
  ])
  expect((await inShell(folder.path, 'cat *.jsonl')).output).not.toMatch(/mueller|m(ü|\\u00fc)ller/i)
})

test('of what a target calls an object, only what has the form of the field is in a manifest, and of a webhook nothing that its receiver chooses', async () => {
  await using folder = await createFolder()
  const { receive, deliver, exportAll, destinations } = await arrange()
  const shown = async (kind: string, answer: TargetAnswer) => {
    await db('destinations').where({ id: destinations['a']! }).update({ connector_type: kind })
    const document = await receive()
    await deliver(document, answer)
    return document
  }
  const long = 'x'.repeat(2_000)
  const free = await shown('objstore', {
    status: 200,
    etag: 'Invoice of Müller',
    version_id: long,
    item_id: 'Invoice 4711',
    message_id: '<a b>',
  })
  const right = await shown('objstore', {
    status: 200,
    etag: 'W/"5f-a"',
    version_id: '3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY',
    item_id: '01A!7',
  })
  const bounded = await shown('objstore', { status: 200, etag: `"${long}"` })
  await makeManifests(2)
  await exportAll(folder.path)
  const lines = await linesOf(folder.path, free.day)
  const targetOf = ({ documentId }: { documentId: string }) =>
    lines.find(({ document_id: id }) => id === documentId)!['deliveries'][0].receipt.target
  expect(targetOf(free)).toEqual({ status: 200 })
  expect(targetOf(bounded)).toEqual({ status: 200 })
  expect(targetOf(right)).toEqual({ status: 200, etag: 'W/"5f-a"', version_id: '3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY', item_id: '01A!7' })
})

test('an etag that the receiver of a webhook has chosen is not in a manifest', async () => {
  await using folder = await createFolder()
  const { receive, deliver, exportAll, destinations } = await arrange()
  await db('destinations').where({ id: destinations['a']! }).update({ connector_type: 'webhook' })
  const document = await receive()
  await deliver(document, { status: 200, etag: '"Mueller-4711"', id: 'Mueller' })
  await makeManifests(2)
  await exportAll(folder.path)
  const line = (await linesOf(folder.path, document.day)).find(({ document_id: id }) => id === document.documentId)!
  expect(line['deliveries']).toMatchObject([{ kind: 'webhook', receipt: { target: { status: 200 } } }])
  expect(JSON.stringify(line)).not.toContain('Mueller')
})

test('retention leaves what the manifest of its day does not have yet', async () => {
  const { receive, workspaceId, stored, deliver } = await arrange()
  const [document, late] = [await receive(), await receive()]
  await db('workspaces')
    .where({ id: workspaceId })
    .update({ settings: JSON.stringify({ content_days: 1 }) })
  await db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'delivered' })
  const config = { ...testConfig(), RETENTION_DOCUMENTS_DAYS: 1, RETENTION_ATTEMPTS_DAYS: 1 }
  const noon = Date.parse(`${document.day}T12:00:00Z`)
  // The next day but one: all is older than a day, and the job that makes manifests has not run.
  const removeExpired = (days: number) =>
    createRetention(db, config).removeExpired(new Date(noon + days * dayMs), new AbortController().signal)
  const left = async (): Promise<string[][]> => [
    await db('documents').where({ workspace_id: workspaceId }).whereNotNull('content_id').pluck('id'),
    await db('documents').where({ workspace_id: workspaceId }).pluck('id'),
  ]
  const both = [document.documentId, late.documentId].toSorted()
  await removeExpired(2)
  expect((await left()).map((ids) => ids.toSorted())).toEqual([both, both])

  await makeManifests(1)
  const last = (await stored()).at(-1)!
  expect(last).toMatchObject({ day: document.day, documents: 2 })
  // One is delivered on a day that is not closed: its receipt is not in a manifest yet.
  await db('deliveries').where({ document_id: late.documentId }).update({ status: 'pending' })
  await deliver(late, { status: 200 }, noon + dayMs)
  await db('deliveries')
    .where({ document_id: late.documentId })
    .update({ delivered_at: new Date(noon + dayMs) })
  await removeExpired(2.5)
  expect(await left()).toEqual([[], [late.documentId]])
  // The receipt is of the delivery: the manifest needs no attempt.
  expect(await db('delivery_attempts').where({ document_id: late.documentId })).toEqual([])
  await makeManifests(2)
  expect((await stored()).at(-1)).toMatchObject({ receipts: 1 })
  await removeExpired(3)
  expect(await left()).toEqual([[], []])
})

test('the metrics say that a day is not closed, and that a destination does not get the manifests', async () => {
  const { destinations } = await arrange()
  const config = testConfig({ PROOF_DESTINATIONS: destinations['a']! })
  const read = async () => {
    const metrics = createManifestMetrics(db, config)
    return Promise.all(metrics.map(async (metric) => (await metric.get()).values[0]!.value))
  }
  const [late, copyLate] = await read()
  // The first day is that before yesterday.
  expect(late).toBeGreaterThan(dayMs / 1_000)
  expect(late).toBeLessThan((2 * dayMs) / 1_000)
  expect(copyLate).toBe(0)
  await makeManifests(1)
  await db('manifests').update({ made_at: new Date(Date.now() - 10_000) })
  const [none, lacking] = await read()
  expect(none).toBe(0)
  expect(lacking).toBeGreaterThanOrEqual(10)
})

test('a day of several pages has each document once, and the totals of each repository', async () => {
  await using folder = await createFolder()
  const arranged = await arrange()
  await insertNumberedDocuments(db, { ...arranged, connections: { archive: arranged.connections['a']! } }, 2_500, { destinations: ['a'] })
  await makeManifests(2)
  const days = await arranged.exportAll(folder.path)
  const lines = (await Promise.all(days.map((day) => linesOf(folder.path, day)))).flat()
  const ids = lines.filter(({ type }) => type === 'document').map(({ document_id: id }) => id as string)
  expect([ids.length, new Set(ids).size]).toEqual([2_500, 2_500])
  expect(lines.filter(({ type }) => type === 'repository')).toEqual([
    {
      type: 'repository',
      repo_id: 'Z1',
      documents: 2_500,
      size_bytes: 12_500,
      delivered: 0,
      pending: 2_500,
      retrying: 0,
      failed: 0,
      discarded: 0,
    },
  ])
})

test('a close whose database connection is killed again and again leaves no gap and makes no day twice', async () => {
  await using folder = await createFolder()
  const { workspaceId, stored, exportAll } = await arrange()
  await db('workspaces')
    .where({ id: workspaceId })
    .update({ created_at: new Date(Date.now() - 20 * dayMs) })
  // A sequence keeps its value when the transaction is gone.
  await db.raw(`
    create sequence closes;
    create function end_connection() returns trigger language plpgsql as $$
    begin
      if nextval('closes') % 4 = 0 then perform pg_terminate_backend(pg_backend_pid()); end if;
      return null;
    end $$;
    create trigger end_connection after insert on manifests for each row execute function end_connection()`)
  let killed = 0
  try {
    for (let runs = 0, isDone = false; !isDone && runs < 20; runs += 1) {
      const summary = await makeManifests(0).catch(String)
      isDone = summary.startsWith('0 manifests made')
      killed += isDone ? 0 : 1
    }
  } finally {
    await db.raw('drop function end_connection cascade; drop sequence closes')
  }
  expect(killed).toBeGreaterThan(4)
  await makeManifests(0)
  const days = await exportAll(folder.path)
  expect(days).toEqual(Array.from({ length: days.length }, (_, index) => dayOf(new Date(Date.parse(days[0]!) + index * dayMs))))
  expect(days.length).toBeGreaterThanOrEqual(19)
  const rows = await stored()
  const headers = await Promise.all(days.map(async (day) => (await linesOf(folder.path, day))[0]!))
  expect(headers.slice(1).map(({ previous }) => previous.sha256)).toEqual(rows.slice(0, -1).map(({ sha256 }) => sha256.toString('hex')))
})
