import { createLegalHolds } from '../../src/archive/legal-holds.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { testConfig } from '../support/factories.ts'
import type { ServerFault } from '../support/old-content-server-faults.ts'
import { share } from '../support/share.ts'
import { startOldServerScene, tableOf } from './old-server-scene.ts'

const { db, migrations, open } = share(await startOldServerScene())

describe('a migration', () => {
  test('copies documents with their business objects, and names what is missing or damaged', async () => {
    await using old = await open()
    await old.source.create('D2', 'another content')
    for (const docId of ['D1', 'D2', 'D3', 'D4']) old.server.put(docId, { data: `content of ${docId}`, note: 'n' })
    old.server.documents.get('Z1/D4')!.components[0]!.sizeBytes += 1
    const { id } = await old.start(tableOf(['D1', 'D2', 'D3', 'D4', 'D5', 'D1']))

    const ended = await old.run(id)

    expect(await old.verdicts(id)).toEqual([
      ['D1', 'copied', null],
      ['D2', 'different', 'component data has 15 bytes here, and 13 at the old content server'],
      ['D3', 'copied', null],
      ['D4', 'damaged', expect.stringContaining('says 14 bytes, and get 13') as string],
      ['D5', 'missing', null],
      ['D1', 'copied', null],
    ])
    expect(ended).toMatchObject({
      status: 'completed',
      rows: 6,
      copied: 3,
      different: 1,
      damaged: 1,
      missing: 1,
      equal: 0,
      waitingReason: null,
    })
    // A page whose answer was lost is not judged again.
    const requests = old.server.requests.length
    expect(await old.judge(id)).toMatchObject({ status: 'completed', rows: 6, judgedRows: 6 })
    expect(old.server.requests).toHaveLength(requests)
    expect(String((await old.source.get('D1')).body)).toBe('content of D1')
    const documents = await db('documents').where({ workspace_id: old.workspaceId, doc_id: 'D3' }).orderBy('comp_id')
    expect(documents).toMatchObject([
      { comp_id: 'data', erp_object_type: 'BKPF', erp_object_id: '1000D3', ar_object: 'FIIINVOICE', origin: 'upstream' },
      { comp_id: 'note', erp_object_id: '1000D3' },
    ])
  })

  test('finds everything equal the second time, and gives its object to a document that has none', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    await old.source.get('D1')
    await old.run((await old.start(tableOf(['D1']))).id)
    const { id } = await old.start(tableOf(['D1']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([['D1', 'equal', null]])
    expect(await db('documents').where({ workspace_id: old.workspaceId })).toMatchObject([{ erp_object_id: '1000D1' }])
  })

  test('copies again what has changed at the old content server, unless it was changed here', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2', 'D3']) old.server.put(docId, { data: 'first' }, { date: new Date('2020-01-01T00:00:00Z') })
    await old.run((await old.start(tableOf(['D1', 'D2', 'D3']))).id)
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: 'other', note: 'new' }, { date: new Date('2021-01-01T00:00:00Z') })
    await old.source.append('D2', ' second')

    const check = await old.start(tableOf(['D1']), { mode: 'check' })
    await old.run(check.id)
    const { id } = await old.start(tableOf(['D1', 'D2', 'D3']))
    await old.run(id)

    expect(await old.verdicts(check.id)).toMatchObject([['D1', 'different', 'component note is only at the old content server']])
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'copied', 'it has changed since it was fetched'],
      ['D2', 'different', 'component data has 12 bytes here, and 5 at the old content server'],
      ['D3', 'equal', null],
    ])
    expect([String((await old.source.get('D1')).body), String((await old.source.get('D2')).body)]).toEqual(['other', 'first second'])
    const again = await old.start(tableOf(['D1']))
    await old.run(again.id)
    expect(await old.verdicts(again.id)).toEqual([['D1', 'equal', null]])
  })

  test('replaces what is on legal hold by what has changed, which keeps the former version, unless a component would be left out', async () => {
    await using old = await open()
    const docIds = ['D1', 'D2', 'D3']
    for (const docId of docIds) old.server.put(docId, { data: 'first', note: 'n' }, { date: new Date('2020-01-01T00:00:00Z') })
    await old.run((await old.start(tableOf(docIds))).id)
    for (const docId of ['D1', 'D2']) {
      await createLegalHolds(db).set(old.workspaceId, { repoId: 'Z1', docId, reason: 'Tax audit' }, systemActor)
    }
    old.server.put('D1', { data: 'other', note: 'n', page: 'p' }, { date: new Date('2021-01-01T00:00:00Z') })
    for (const docId of ['D2', 'D3']) old.server.put(docId, { data: 'other' }, { date: new Date('2021-01-01T00:00:00Z') })
    const { id } = await old.start(tableOf(docIds))
    await old.run(id)
    const onHold = 'The document is on legal hold, which has to be lifted first.'
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'copied', 'it has changed since it was fetched'],
      ['D2', 'failed', onHold],
      ['D3', 'copied', 'it has changed since it was fetched'],
    ])
    const long = new Date('2026-03-02T10:15:30Z')
    const documents = () => db('documents').where({ workspace_id: old.workspaceId })
    await documents().update({ received_at: long, was_routed: true })
    await documents().whereNotNull('superseded_at').update({ superseded_at: long })
    await db('workspaces').where({ id: old.workspaceId }).update({ settings: '{"content_days":1}' })
    await createRetention(db, testConfig()).removeExpired(new Date(), new AbortController().signal)
    const kept = await documents().whereNotNull('content_id').orderBy(['doc_id', 'id']).select('doc_id', 'comp_id')
    expect(kept.map(({ doc_id: docId, comp_id: compId }) => `${docId} ${compId}`)).toEqual([
      'D1 data',
      'D1 note',
      'D1 data',
      'D1 note',
      'D1 page',
      'D2 data',
      'D2 note',
    ])
    expect(String((await old.source.get('D2', '&compId=note')).body)).toBe('n')
  })

  test('does not bring back a component that the source system has deleted here', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'first', note: 'n' }, { date: new Date('2020-01-01T00:00:00Z') })
    await old.run((await old.start(tableOf(['D1']))).id)
    expect((await old.source.delete('D1', '&compId=note')).status).toBe(200)
    // After the deletion.
    old.server.put('D1', { data: 'other', note: 'n' }, { date: new Date('2099-01-01T00:00:00Z') })
    const { id } = await old.start(tableOf(['D1']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([['D1', 'different', 'component note is only at the old content server']])
  })

  test('asks once for the facts of a document, and again if it changes before it is fetched', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: 'first', note: 'n' })
    await old.run((await old.start(tableOf(['D1']))).id)
    expect(old.server.requests).toEqual(['info D1', 'get D1', 'get D1 note'])
    old.server.timing.beforeAnswer = async (url) => {
      if (!/\?get&.*docId=D2/.test(url)) return
      old.server.timing.beforeAnswer = undefined
      old.server.put('D2', { data: 'changed', note: 'n' })
    }
    const { id } = await old.start(tableOf(['D2']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([['D2', 'copied', null]])
    expect(String((await old.source.get('D2')).body)).toBe('changed')
  })

  test('does not bring back what is erased here while a newer one is fetched', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'first', note: 'n' }, { date: new Date('2019-03-02') })
    await old.run((await old.start(tableOf(['D1']))).id)
    old.server.put('D1', { data: 'second', note: 'n' }, { date: new Date('2020-03-02') })
    const { id: documentId } = await db('documents').where({ workspace_id: old.workspaceId, comp_id: 'data' }).first()
    let requests = 0
    old.server.timing.beforeAnswer = async () => {
      requests += 1
      // After the info of the migration and the first get of the fetch: its second component.
      if (requests === 3) expect((await old.ask('DELETE', `/documents/${documentId}/content`)).status).toBe(204)
    }
    await old.run((await old.start(tableOf(['D1']))).id)
    expect(requests).toBeGreaterThanOrEqual(3)
    expect((await old.source.get('D1')).status).toBe(409)
  })

  test('that only checks copies nothing', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    await old.source.create('D3', 'only here')
    const { id } = await old.start(tableOf(['D1', 'D2', 'D3']), { mode: 'check' })
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'found', null],
      ['D2', 'missing', null],
      ['D3', 'different', 'the old content server does not have it'],
    ])
    expect(await old.countRows()).toMatchObject({ documents: 1 })
  })

  test.each<[ServerFault, string]>([
    ['info_size', 'info says 6 bytes, and get 5'],
    ['closes_midway', 'cannot be reached'],
  ])('that only checks finds damaged what a copy does: %s', async (fault, reason) => {
    await using old = await open()
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: 'hello' })
    const run = async (mode: 'check' | 'copy') => {
      old.server.timing.beforeAnswer = async (url) => void old.server.faults[url.includes('docId=D1') ? 'add' : 'delete'](fault)
      const { id } = await old.start(tableOf(['D1', 'D2']), { mode })
      await old.run(id)
      return old.verdicts(id)
    }
    const damaged = ['D1', 'damaged', expect.stringContaining(reason)]
    expect(await run('check')).toEqual([damaged, ['D2', 'found', null]])
    expect(await old.countRows()).toMatchObject({ documents: 0, contents: 0 })
    expect(await run('copy')).toEqual([damaged, ['D2', 'copied', null]])
  })

  test('does not bring back what the source system has deleted here', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    expect((await old.source.delete('D1')).status).toBe(200)
    const { id } = await old.start(tableOf(['D1']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([['D1', 'missing', 'it was deleted here']])
    const check = await old.start(tableOf(['D1']), { mode: 'check' })
    await old.run(check.id)
    expect(await old.verdicts(check.id)).toEqual([['D1', 'found', 'it was deleted here']])
    old.server.documents.delete('Z1/D1')
    const again = await old.start(tableOf(['D1']), { mode: 'check' })
    await old.run(again.id)
    expect(await old.verdicts(again.id)).toEqual([['D1', 'missing', 'it was deleted here']])
  })

  test.each<ServerFault>(['never_answers', 'fails'])(
    'waits while the old content server has the fault %s, and goes on afterwards',
    async (fault) => {
      await using impatient = await startOldServerScene(fault === 'never_answers' ? { idleTimeoutMs: 2_000 } : {})
      await using old = await impatient.open()
      old.server.put('D1', { data: 'x' })
      const { id } = await old.start(tableOf(['D1']))
      old.server.faults.add(fault)
      await expect(old.judge(id)).rejects.toThrow('upstream')
      expect(await old.find(id)).toMatchObject({
        status: 'running',
        damaged: 0,
        waitingReason: expect.any(String) as string,
      })
      old.server.faults.clear()
      expect(await old.run(id)).toMatchObject({ status: 'completed', copied: 1, waitingReason: null })
    },
  )

  test('is paused, resumed and cancelled', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    const { id } = await old.start(tableOf(['D1']))
    const request = { workspaceId: old.workspaceId, id, actor: systemActor }
    await migrations.pause(request)
    expect(await old.judge(id)).toEqual({ status: 'paused', rows: 1, judgedRows: 0 })
    await expect(migrations.pause(request)).rejects.toThrow('does not run')
    await migrations.resume(request)
    await migrations.cancel(request)
    expect(await old.judge(id)).toMatchObject({ status: 'cancelled' })
    await expect(migrations.resume(request)).rejects.toThrow('is not paused')
    const events = await db('audit_logs').where({ subject_id: id }).orderBy('id').pluck('event')
    expect(events).toEqual(['started', 'paused', 'resumed', 'cancelled'].map((event) => `document_migration.${event}`))
  })

  test('asks about no more documents per minute than it may', async () => {
    await using old = await open()
    const { id } = await old.start(tableOf(['D1', 'D2', 'D3']), { documentsPerMinute: 120 })
    const startedAt = performance.now()
    await old.judge(id)
    // Three turns of half a second. A busy machine takes longer, never shorter.
    expect(performance.now() - startedAt).toBeGreaterThan(1_400)
  })

  test('leaves rows of other repositories out, and needs one of its own', async () => {
    await using old = await open()
    const others = 'ARCHIV_ID;ARC_DOC_ID\nZ2;D1\nZ3;D2\n'
    const migration = await old.start(`${others}Z1;D3\n`)
    expect(migration).toMatchObject({
      rows: 1,
      lists: [{ name: 'TOA01.csv', rows: 1, otherRows: 2, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string }],
    })
    await expect(old.start(others)).rejects.toThrow('The lists have no row of repository Z1. They have rows of: Z2, Z3.')
    expect(await db('document_migrations').where({ workspace_id: old.workspaceId })).toHaveLength(1)
  })
})
