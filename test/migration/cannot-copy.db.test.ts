import type { ContentStore } from '../../src/content/store.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { startOldServerScene, tableOf } from './old-server-scene.ts'

/** Called before what is fetched is written to the store. */
const store = { before: async (): Promise<void> => {} }
const around = (inner: ContentStore): ContentStore => ({
  ...inner,
  write: async (...args) => {
    await store.before()
    return inner.write(...args)
  },
})
const { db, open } = share(await startOldServerScene({ documentMaxBytes: 1_000, keptMaxMs: 100, around }))
type Old = Awaited<ReturnType<typeof open>>

/** Lets `get` of a document answer 500, while `info` describes it. @returns a function that repairs it */
const breakStorage = ({ server }: Old, docId: string) => {
  const [component] = server.documents.get(`Z1/${docId}`)!.components
  const { body } = component!
  Object.defineProperty(component, 'body', {
    configurable: true,
    get: () => {
      throw new Error('the storage is away')
    },
  })
  return () => void Object.defineProperty(component, 'body', { value: body })
}

beforeEach(() => {
  store.before = async () => {}
})

describe('a migration', () => {
  test('goes on after a document that is larger than the relay accepts', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x'.repeat(600), note: 'x'.repeat(600) })
    old.server.put('D2', { data: 'x' })
    const check = await old.start(tableOf(['D1']), { mode: 'check' })
    await old.run(check.id)
    const { id } = await old.start(tableOf(['D1', 'D2']))
    expect(await old.run(id)).toMatchObject({ status: 'completed', failed: 1, copied: 1 })
    const reason = 'it has 1200 bytes, and the relay accepts 1000 (RELAY_DOCUMENT_MAX_BYTES)'
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'failed', reason],
      ['D2', 'copied', null],
    ])
    expect(await old.verdicts(check.id)).toEqual([['D1', 'failed', reason]])
  })

  test('waits while the old content server describes documents and delivers none', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2', 'D3']) old.server.put(docId, { data: docId })
    const repairs = ['D1', 'D2', 'D3'].map((docId) => breakStorage(old, docId))
    const { id } = await old.start(tableOf(['D1', 'D2', 'D3']))
    await expect(old.judge(id)).rejects.toThrow('the storage is away')
    expect(await old.find(id)).toMatchObject({ damaged: 0, waitingReason: expect.stringContaining('answers 500') as string })
    for (const repair of repairs) repair()
    expect(await old.run(id)).toMatchObject({ copied: 3, damaged: 0, waitingReason: null })
  })

  test('calls a document damaged that the old content server does not deliver, while it delivers others', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2', 'D3']) old.server.put(docId, { data: docId })
    breakStorage(old, 'D2')
    const { id } = await old.start(tableOf(['D1', 'D2', 'D3']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'copied', null],
      ['D2', 'damaged', expect.stringContaining('answers 500') as string],
      ['D3', 'copied', null],
    ])
  })

  test('waits while the repository has another old content server than when it was started', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    const { id } = await old.start(tableOf(['D1']))
    await old.setUpstream('Z2')
    await expect(old.judge(id)).rejects.toThrow('has another upstream')
    await old.setUpstream('Z1')
    expect(await old.run(id)).toMatchObject({ copied: 1 })
  })

  test('waits while the relay cannot store documents', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: docId })
    const { id } = await old.start(tableOf(['D1', 'D2']))
    store.before = async () => {
      throw new Error('no space left on device')
    }
    await expect(old.judge(id)).rejects.toThrow('no space left on device')
    expect(await old.find(id)).toMatchObject({ damaged: 0, failed: 0, waitingReason: 'no space left on device' })
    store.before = async () => {}
    expect(await old.run(id)).toMatchObject({ copied: 2 })
  })

  test('waits for a document that another row fetches for long', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    const { id } = await old.start(tableOf(['D1', 'D1']))
    // The other row has tried three times: after each failure, it asks whether the server answers.
    const probes = () => old.server.requests.filter((request) => request.startsWith('info DOCUMENT-RELAY-ASKS'))
    store.before = async () => void (await until('the other row has given up', () => probes().length === 3))
    await expect(old.judge(id)).rejects.toThrow('still being fetched')
    expect(await old.run(id)).toMatchObject({ copied: 2, damaged: 0 })
  })

  test('does not count a document as copied that the source system deletes or changes meanwhile', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: 'first' }, { date: new Date('2020-01-01T00:00:00Z') })
    await old.run((await old.start(tableOf(['D2']))).id)
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: 'other' }, { date: new Date('2021-01-01T00:00:00Z') })
    const { id } = await old.start(tableOf(['D1', 'D2']))
    let change: Promise<unknown> | undefined
    store.before = async () => {
      change ??= Promise.all([old.source.delete('D1'), old.source.append('D2', ' second')])
      await change
    }
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'missing', 'it was deleted here'],
      ['D2', 'different', 'component data has 12 bytes here, and 5 at the old content server'],
    ])
  })

  test('does not call a document equal whose bytes were removed here', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2']) old.server.put(docId, { data: 'x' })
    await old.run((await old.start(tableOf(['D1', 'D2']))).id)
    await db('documents').where({ workspace_id: old.workspaceId }).update({ content_id: null })
    old.server.documents.delete('Z1/D2')
    const { id } = await old.start(tableOf(['D1', 'D2']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'different', 'its bytes were removed here'],
      ['D2', 'missing', 'its bytes were removed here'],
    ])
  })

  test('goes on after a document without components', async () => {
    await using old = await open()
    old.server.put('D1', {})
    old.server.put('D2', { data: 'x' })
    await old.run((await old.start(tableOf(['D1']))).id)
    const { id } = await old.start(tableOf(['D1', 'D2']))
    await old.run(id)
    expect(await old.verdicts(id)).toEqual([
      ['D1', 'equal', null],
      ['D2', 'copied', null],
    ])
  })

  test('calls a document failed that the database rejects', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x' })
    store.before = async () => void (await db.raw(`select 'no number'::integer`))
    const { id } = await old.start(tableOf(['D1']))
    expect(await old.run(id)).toMatchObject({ status: 'completed', failed: 1 })
    expect(await old.verdicts(id)).toEqual([['D1', 'failed', expect.stringContaining('invalid input syntax') as string]])
  })
})
