import * as fc from 'fast-check'
import { createArchiveDocuments } from '../../src/archive/documents.ts'
import { createLegalHolds, documentsOnHold, isOnHold } from '../../src/archive/legal-holds.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { describeDocument, showDocument, withConsoleUrl } from '../../src/cli/documents.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createSetMetadata } from '../../src/delivery/set-metadata.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { deleteWorkspace } from '../../src/workspace/delete-workspace.ts'
import { insertNumberedDocuments, receivedDocument, testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'

// While a hold is set, nothing removes what it applies to. When it is lifted, everything does again.

const config = testConfig({ RETENTION_DOCUMENTS_DAYS: '1' })
const scene = share(await startScene())
const { db } = scene
const store = createPostgresStore(db)
const setMetadata = createSetMetadata(db, { findConnector: () => undefined })
const removeExpired = () => createRetention(db, config, { batchRows: 2 }).removeExpired(new Date(), new AbortController().signal)

const [repoId, docId] = ['Z1', 'D1']
const invoice = { erpObjectType: 'BKPF', erpObjectId: '100019000047112026' }
const order = { erpObjectType: 'BUS2012', erpObjectId: '4500000001' }

// Retention runs over all workspaces.
beforeEach(() => db('workspaces').update({ settings: '{}' }))

/** Creates a document of two components that was delivered, in a workspace of its own. */
const received = async () => {
  const workspace = await scene.workspace(undefined, { workspaceSettings: { content_days: 1 } })
  const { workspaceId, source } = workspace
  expect((await source.createParts(docId, [part('data', 'invoice'), part('note', 'paid')])).status).toBe(201)
  const link = (to: typeof invoice) => setMetadata(workspaceId, { repoId, docId }, to, systemActor)
  await link(invoice)
  const settle = () => db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'delivered' })
  await settle()
  const id: string = await db('documents')
    .where({ workspace_id: workspaceId, comp_id: 'data' })
    .first('id')
    .then((row) => row.id)
  /** Returns what is kept: the documents, with their contents. */
  const kept = async (): Promise<string[]> => {
    const rows = await db('documents')
      .join('contents', 'contents.id', 'content_id')
      .where({ 'documents.workspace_id': workspaceId })
      .whereNotNull('owned_at')
      .orderBy('documents.id')
      .pluck('documents.id')
    return rows
  }
  return { ...workspace, id, link, settle, kept }
}
type Received = Awaited<ReturnType<typeof received>>

/** Every way to remove something of a document, with what it answers if it is refused. */
const ways = {
  retention: async () => {
    await removeExpired()
    return 'nothing'
  },
  'the removal of contents without an owner': async () => {
    await sweepOrphans(db, { postgres: store }, new Date(Date.now() + 86_400_000))
    return 'nothing'
  },
  erasure: async ({ ask, id }: Received) => (await ask('DELETE', `/documents/${id}/content`)).status,
  'delete of the document': async ({ source }: Received) => (await source.delete(docId)).headers['x-errordescription'],
  'delete of a component': async ({ source }: Received) => (await source.delete(docId, '&compId=data')).headers['x-errordescription'],
  'an update that leaves a component out': async ({ source }: Received) =>
    (await source.updateParts(docId, [part('note', 'new')])).headers['x-errordescription'],
  'the deletion of the workspace': async ({ name }: Received) =>
    /1 legal hold: lift them first/.test(String(await deleteWorkspace(db, name, { confirmed: true }).catch((thrown: unknown) => thrown))),
} satisfies Record<string, (workspace: Received) => Promise<unknown>>
type Way = keyof typeof ways

const onHold = expect.stringMatching(/^document_on_hold: /)
const refusals: Record<Way, unknown> = {
  retention: 'nothing',
  'the removal of contents without an owner': 'nothing',
  erasure: 409,
  'delete of the document': onHold,
  'delete of a component': onHold,
  'an update that leaves a component out': onHold,
  'the deletion of the workspace': true,
}

const subjects = {
  document: { repo_id: repoId, doc_id: docId },
  business_object: { erp_object_type: ' bkpf', erp_object_id: `${invoice.erpObjectId} ` },
  repository: { repo_id: repoId },
}
type Scope = keyof typeof subjects

const set = async ({ call }: Received, scope: Scope): Promise<string> => {
  const answer = await call('POST', '/legal-holds', { ...subjects[scope], reason: 'Tax audit' })
  expect(answer).toMatchObject({ status: 201, json: { data: { attributes: { scope, reason: 'Tax audit' } } } })
  return answer.json.data.id
}
const lift = async ({ call }: Received, id: string) =>
  expect((await call('POST', `/legal-holds/${id}/lift`, { reason: 'The audit has ended' })).status).toBe(200)

const cases = (Object.keys(subjects) as Scope[]).flatMap((scope) => (Object.keys(ways) as Way[]).map((way) => [scope, way] as const))

test.each(cases)('a hold on a %s stops %s, until it is lifted', async (scope, way) => {
  const workspace = await received()
  const { source, kept, age, settle } = workspace
  await age(docId)
  const hold = await set(workspace, scope)
  expect(await ways[way](workspace)).toEqual(refusals[way])
  const components = [await source.get(docId, '&compId=data'), await source.get(docId, '&compId=note')]
  expect(components.map(({ body }) => String(body))).toEqual(['invoice', 'paid'])
  expect(await kept()).toHaveLength(2)

  await lift(workspace, hold)
  await ways[way](workspace)
  await settle()
  if (way !== 'the deletion of the workspace') await removeExpired()
  expect((await kept()).length).toBeLessThan(2)
})

test('a document without content also stays while it is on hold', async () => {
  const workspace = await received()
  await workspace.age(docId)
  await db('documents').where({ workspace_id: workspace.workspaceId }).update({ content_id: null })
  const hold = await set(workspace, 'repository')
  await removeExpired()
  expect(await db('documents').where({ workspace_id: workspace.workspaceId })).toHaveLength(2)
  await lift(workspace, hold)
  await removeExpired()
  expect(await db('documents').where({ workspace_id: workspace.workspaceId })).toHaveLength(0)
})

test('what arrives later is on hold with its repository, its document and its business object', async () => {
  const workspace = await received()
  const { source, call, workspaceId } = workspace
  await set(workspace, 'business_object')
  await source.create('D2', 'a second page')
  expect((await source.delete('D2')).status).toBe(200)
  await source.create('D3', 'a second page')
  await setMetadata(workspaceId, { repoId, docId: 'D3' }, { ...invoice, erpObjectType: 'Bkpf' }, systemActor)
  expect((await source.delete('D3')).headers['x-errordescription']).toEqual(onHold)
  await set(workspace, 'document')
  await source.update(docId, 'a stamp', { compId: 'stamp' })
  expect((await source.delete(docId, '&compId=stamp')).headers['x-errordescription']).toEqual(onHold)
  await set(workspace, 'repository')
  await source.create('D4', 'another')
  expect((await source.delete('D4')).headers['x-errordescription']).toEqual(onHold)
  const found = await call('GET', '/documents/search?legal_hold=false')
  expect(found.json.data).toEqual([])
})

test('what an update replaces stays in the relay', async () => {
  const workspace = await received()
  await set(workspace, 'document')
  const before = await workspace.kept()
  expect((await workspace.source.update(docId, 'changed')).status).toBe(200)
  await workspace.settle()
  await workspace.age(docId)
  await removeExpired()
  expect(await workspace.kept()).toEqual(expect.arrayContaining(before))
  expect((await workspace.ask('GET', `/documents/${workspace.id}/content`)).status).toBe(200)
})

test('a document, the lists and the search say what is on hold, and why', async () => {
  const workspace = await received()
  const { ask, id } = workspace
  const shown = async () => (await ask('GET', `/documents/${id}`)).json.data.attributes
  expect(await shown()).toMatchObject({ legal_hold: false, legal_holds: [] })
  const hold = await set(workspace, 'business_object')
  const isHeld = { legal_hold: true, legal_holds: [{ id: hold, scope: 'business_object', reason: 'Tax audit' }] }
  expect(await shown()).toMatchObject(isHeld)
  // A document that leaves the business object stays on hold, and others of that object are not.
  await workspace.link(order)
  expect(await shown()).toMatchObject(isHeld)
  for (const path of ['/documents', '/documents/search?legal_hold=true']) {
    expect((await ask('GET', path)).json.data).toMatchObject([{ attributes: { legal_hold: true } }, { attributes: { legal_hold: true } }])
  }
  expect((await ask('GET', '/legal-holds')).json).toMatchObject({
    data: [{ attributes: { erp_object_type: ' bkpf', repo_id: null, set_by: expect.any(String) } }],
    meta: { total: 1 },
  })
  const lines = describeDocument(withConsoleUrl(undefined, await showDocument(db, id)))
  expect(lines).toContain('On hold    nothing removes it until its legal holds are lifted (relay hold list)')
  await lift(workspace, hold)
  expect(await shown()).toMatchObject({ legal_hold: false, legal_holds: [] })
})

test('a hold names one thing that is there', async () => {
  const { call, keys, workspaceId } = await received()
  const post = async (body: object, key = keys.admin) => (await call('POST', '/legal-holds', { reason: 'x', ...body }, { key })).status
  expect(await post({})).toBe(422)
  expect(await post({ doc_id: docId })).toBe(422)
  expect(await post({ repo_id: repoId, erp_object_type: 'BKPF', erp_object_id: '1' })).toBe(422)
  expect(await post({ erp_object_type: 'BKPF' })).toBe(422)
  expect(await post({ repo_id: repoId, reason: ' ' })).toBe(422)
  expect(await post({ repo_id: 'Z9' })).toBe(422)
  expect(await post({ repo_id: repoId, doc_id: 'D9' })).toBe(422)
  expect(await post({ repo_id: repoId }, keys.member)).toBe(403)
  // Its first document may arrive later.
  expect(await post({ erp_object_type: 'BKPF', erp_object_id: '1' })).toBe(201)
  // The command line asks the same.
  const holds = createLegalHolds(db)
  const { id } = (await holds.list(workspaceId, { page: 1, perPage: 1 })).items[0]!
  await expect(holds.set(workspaceId, { repoId, reason: '\n' }, systemActor)).rejects.toThrow('The reason must not be empty.')
  await expect(holds.lift(workspaceId, id, '', systemActor)).rejects.toThrow('The reason must not be empty.')
})

test.each([
  ['0000004711', '4711'],
  ['4711', '0000004711'],
  ['1000-0000004711-2026', ' 1000-4711-2026'],
  ['MÜLLER-ŁÓDŹ-МОСКВА', 'Müller-Łódź-Москва'],
  ['0000', '0'],
])('a hold on a business object with the key %j applies to a document with the key %j, and says so', async (named, stored) => {
  const workspace = await received()
  const { ask, call, workspaceId } = workspace
  const auditEntry = async () => (await ask('GET', '/audit-logs?event=legal_hold.set')).json.data[0].attributes
  const post = async (key: string) =>
    (await call('POST', '/legal-holds', { erp_object_type: 'BUS2012', erp_object_id: key, reason: 'Tax audit' })).json.data.attributes
      .documents
  await workspace.link({ erpObjectType: 'BUS2012', erpObjectId: stored })
  expect(await post('47110')).toBe(0)
  expect(await auditEntry()).toMatchObject({
    description: 'The business object BUS2012 47110 was put on legal hold (0 documents): Tax audit',
    metadata: { documents: 0 },
  })
  expect((await ask('GET', '/documents/search?legal_hold=true')).json.data).toEqual([])
  // Both components.
  expect(await post(named)).toBe(2)
  expect(await auditEntry()).toMatchObject({ metadata: { documents: 2 } })
  expect((await workspace.source.delete(docId)).headers['x-errordescription']).toEqual(onHold)
  expect((await ask('GET', '/documents/search?legal_hold=true')).json.data).toHaveLength(2)
  expect(await createLegalHolds(db).list(workspaceId, { page: 1, perPage: 2 })).toMatchObject({
    items: [{ documents: 2 }, { documents: 0 }],
  })
})

test('a hold on a document or a repository says how many documents it applies to', async () => {
  const { call, source } = await received()
  await source.create('D2', 'another')
  const documents = async (subject: object) =>
    (await call('POST', '/legal-holds', { ...subject, reason: 'x' })).json.data.attributes.documents
  expect(await documents({ repo_id: repoId, doc_id: docId })).toBe(2)
  expect(await documents({ repo_id: repoId })).toBe(3)
})

test('a document that only the upstream has cannot be deleted in a repository on hold', async () => {
  const workspace = await received()
  await set(workspace, 'repository')
  const { delete: remove } = createArchiveDocuments(db)
  await expect(remove(workspace.repositoryId, 'OLD', undefined, 'has it')).rejects.toThrow('on legal hold')
  expect(await db('upstream_deletions').where({ repository_id: workspace.repositoryId })).toEqual([])
})

test('whether a document is on hold is looked up in the index by each of its keys, also without statistics', async () => {
  const { rows } = await db.raw<{ rows: { 'QUERY PLAN': string }[] }>(`explain select id from documents where ${isOnHold('documents')}`)
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(plan).toMatch(/legal_hold_keys_pkey[^]*Index Cond: \(\(workspace_id = documents\.workspace_id\) AND \(key = own\.key\)\)/)
})

test('the search for what is on hold reads it from the indexes of the holds, however many documents are not', async () => {
  const workspace = await received()
  const { ask, workspaceId, source } = workspace
  await source.create('D2', 'later')
  await set(workspace, 'business_object')
  await set(workspace, 'document')
  await insertNumberedDocuments(db, { ...workspace, connections: { archive: null as never } }, 6_000, { destinations: [] })
  const first = (await ask('GET', '/documents/search?legal_hold=true&per_page=1')).json
  expect(first.data).toHaveLength(1)
  const rest = (await ask('GET', `/documents/search?legal_hold=true&before=${first.meta.next_cursor}`)).json
  expect(rest).toMatchObject({ data: [{ attributes: { doc_id: docId } }], meta: { next_cursor: null } })
  await set(workspace, 'repository')
  const all = (await ask('GET', '/documents/search?legal_hold=true&per_page=3')).json
  expect(all.data).toHaveLength(3)
  await db.raw('analyze documents')
  const plan = await db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `explain select * from (${documentsOnHold(`held.workspace_id = '${workspaceId}'`, 'true', 'order by received_at desc, id desc limit 50')}) as found`,
  )
  const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(text).not.toContain('Seq Scan')
  for (const index of ['documents_by_repository', 'documents_by_doc_id', 'documents_of_object']) expect(text).toContain(index)
})

type Step =
  | { do: 'set'; scope: Scope }
  | { do: 'lift' }
  | { do: 'link'; to: typeof invoice }
  | { do: Exclude<Way, 'the deletion of the workspace'> }

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('set' as const), scope: fc.constantFrom<Scope[]>('document', 'business_object', 'repository') }),
    fc.record({ do: fc.constant('lift' as const) }),
    fc.record({ do: fc.constant('link' as const), to: fc.constantFrom(invoice, order) }),
    fc.record({
      do: fc.constantFrom(...(Object.keys(ways) as Way[]).filter((way) => way !== 'the deletion of the workspace')),
    }),
  ) as fc.Arbitrary<Step>,
  { minLength: 4, maxLength: 14 },
)

test('in any order of holds, links and removals, nothing that was on hold goes', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const workspace = await received()
      // Of each hold: whether the document has been of its business object since it was set.
      const active: { id: string; applies: boolean }[] = []
      let linked = invoice
      for (const step of sequence) {
        const before = await workspace.kept()
        const isHeld = active.some(({ applies }) => applies)
        if (step.do === 'set' && before.length > 0) {
          active.push({ id: await set(workspace, step.scope), applies: step.scope !== 'business_object' || linked === invoice })
        } else if (step.do === 'lift' && active.length > 0) {
          await lift(workspace, active.shift()!.id)
        } else if (step.do === 'link' && before.length > 0) {
          linked = step.to
          await workspace.link(step.to)
        } else if (step.do in ways) {
          await workspace.age(docId)
          await ways[step.do as Way](workspace)
          await workspace.settle()
        }
        expect(await workspace.kept()).toEqual(expect.arrayContaining(isHeld && step.do !== 'lift' ? before : []))
      }
      for (const { id } of active) await lift(workspace, id)
      await db('workspaces').where({ id: workspace.workspaceId }).update({ settings: '{}' })
    }),
    { numRuns: 12 },
  )
})

test('a hold that is set while retention runs is true from its answer on', async () => {
  const workspace = await received()
  const receive = createReceive(db, config)
  for (let index = 0; index < 60; index += 1) await receive(await receivedDocument(workspace, { data: 'x' }))
  await workspace.settle()
  await db('documents')
    .where({ workspace_id: workspace.workspaceId })
    .update({ received_at: new Date('2026-03-02T10:15:30Z') })
  const running = removeExpired()
  await createLegalHolds(db).set(workspace.workspaceId, { repoId, reason: 'Tax audit' }, systemActor)
  const then = await workspace.kept()
  await running
  await removeExpired()
  expect(await workspace.kept()).toEqual(then)
})
