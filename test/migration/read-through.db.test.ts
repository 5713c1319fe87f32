import { once } from 'node:events'
import { createServer } from 'node:http'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { ContentStore } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { startApi } from '../support/api.ts'
import { disposable } from '../support/disposable.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { createSourceSystem, part, partOf, type SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { withoutManifests } from '../support/without-manifests.ts'
import { readMetric } from './metrics.ts'
import { holdRequests, startMigration } from './migration.ts'

const migration = share(await startMigration())
const { scene } = migration

type Migrated = Awaited<ReturnType<typeof migration.open>>

const outcome = ({ status, headers }: SourceAnswer) => [status, headers['x-errordescription']?.split(':')[0]]
const date = new Date('2019-03-02T10:15:30Z')
const large = Buffer.alloc(3_000_000, 'relay ')
// Nothing listens at the port discard.
const unreachable = 'http://127.0.0.1:9/'

describe('a document that only the upstream has', () => {
  test('is answered by get, kept, and read here from then on', async () => {
    const { old, source, kept } = await migration.open()
    old.put('D1', { data: 'hello', note: 'a note' }, { contentType: 'text/plain; charset=utf-8', date })
    const answer = await source.get('D1')
    expect([answer.status, String(answer.body), answer.headers['content-type']]).toEqual([200, 'hello', 'text/plain; charset=utf-8'])
    expect(answer.headers).toMatchObject({
      'x-compid': 'data',
      'x-content-length': '5',
      'x-compdatec': '2019-03-02',
      'x-comptimec': '10:15:30',
    })
    await kept('D1', 2)
    const asked = old.requests.length
    const again = await source.get('D1', '&compId=note')
    expect(String(again.body)).toBe('a note')
    expect((await source.info('D1')).headers).toMatchObject({ 'x-datec': '2019-03-02', 'x-numbercomps': '2', 'x-datem': '2019-03-02' })
    expect((await source.get('D1')).headers).toMatchObject({ 'x-compdatec': '2019-03-02', 'x-compstatus': 'online' })
    expect(old.requests.length).toBe(asked)
  })

  test('is read from a server whose lines end with LF alone', async () => {
    const { old, source, kept } = await migration.open()
    old.faults.add('bare_line_feeds')
    old.put('D1', { data: 'hello\r', note: 'a note' }, { date })
    expect((await source.info('D1')).headers).toMatchObject({ 'x-datec': '2019-03-02', 'x-numbercomps': '2' })
    expect(String((await source.get('D1')).body)).toBe('hello\r')
    await kept('D1', 2)
    expect(String((await source.docGet('D1')).body)).toContain('a note')
  })

  test('shows where it came from, and is delivered nowhere', async () => {
    const { old, source, kept, documents } = await migration.open()
    old.put('D1', { data: 'hello' })
    await source.get('D1')
    await kept('D1', 1)
    expect(await documents()).toEqual([
      expect.objectContaining({ doc_id: 'D1', status: 'delivered', origin: 'upstream', size_bytes: 5, deliveries: [] }),
    ])
  })

  test('is delivered if the upstream says so', async () => {
    const { old, source, kept, documents } = await migration.open({ delivers: true })
    old.put('D1', { data: 'hello' })
    await source.get('D1')
    await kept('D1', 1)
    expect(await documents()).toEqual([expect.objectContaining({ status: 'pending', origin: 'upstream', deliveries: [expect.anything()] })])
  })

  test('is described by info and HEAD without being fetched', async () => {
    const { old, source, documents } = await migration.open()
    old.put('D1', { data: 'hello' }, { date })
    const info = await source.info('D1')
    expect([info.status, info.headers['x-numbercomps'], info.headers['x-datec']]).toEqual([200, '1', '2019-03-02'])
    expect(String(info.body)).toMatch(/X-compId: data\r\nX-Content-Length: 5\r\n/)
    const head = await source.call(`get&pVersion=0045&contRep=Z1&docId=D1`, { method: 'HEAD' })
    expect([head.status, head.headers['content-length'], head.headers['x-compid']]).toEqual([200, '5', 'data'])
    expect(await documents()).toEqual([])
    expect(old.requests).toEqual(['info D1', 'info D1'])
  })

  test('is answered whole by docGet, in the order of its components', async () => {
    const { old, source, kept } = await migration.open()
    old.put('D1', { note: 'first', data: large, descr: '' })
    const answer = await source.docGet('D1')
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    expect(answer.body.includes(large)).toBe(true)
    const order = Array.from(String(answer.body).matchAll(/X-compId: (\w+)/g), ([, name]) => name)
    expect(order).toEqual(['note', 'data', 'descr'])
    await kept('D1', 3)
    expect((await source.docGet('D1')).body.length).toBe(answer.body.length)
  })

  test('is fetched whole where a range is asked for', async () => {
    const { old, source, kept } = await migration.open()
    old.put('D1', { data: '0123456789' })
    const answer = await source.get('D1', '&fromOffset=2&toOffset=5')
    expect([answer.status, String(answer.body), answer.headers['x-content-length']]).toEqual([200, '2345', '10'])
    await kept('D1', 1)
    expect(String((await source.get('D1')).body)).toBe('0123456789')
  })

  test('is searched', async () => {
    const { old, source } = await migration.open()
    old.put('D1', { data: 'HELLO', descr: `0 0 DKEY${'Name'.padEnd(40)}  0  5\n73 138 DAINMEYER\n` })
    expect(String((await source.call('search&pVersion=0045&contRep=Z1&docId=D1&compId=data&pattern=lo')).body)).toBe('1;3;')
    expect(String((await source.call('attrSearch&pVersion=0045&contRep=Z1&docId=D1&pattern=0+5+MEYER')).body)).toBe('1;73;138;')
  })

  test('is fetched once, however many read it at the same time', async () => {
    const { old, source, kept } = await migration.open()
    old.put('D1', { data: large, note: 'x' })
    const answers = await Promise.all(Array.from({ length: 10 }, () => source.get('D1')))
    expect(answers.map(({ status, body }) => [status, body.equals(large)])).toEqual(answers.map(() => [200, true]))
    await kept('D1', 2)
    expect(old.requests.filter((request) => request.startsWith('get'))).toEqual(['get D1', 'get D1 note'])
  })

  test('is changed by update and append after it has been fetched', async () => {
    const { old, source } = await migration.open()
    for (const docId of ['D1', 'D2', 'D3']) old.put(docId, { data: 'hello', note: 'a note' })
    expect((await source.append('D1', ' world')).status).toBe(200)
    expect(String((await source.get('D1')).body)).toBe('hello world')
    expect((await source.update('D2', 'new note', { compId: 'note' })).status).toBe(200)
    expect(String((await source.get('D2')).body)).toBe('hello')
    expect(String((await source.get('D2', '&compId=note')).body)).toBe('new note')
    expect((await source.updateParts('D3', [part('data', 'only')])).status).toBe(200)
    expect((await source.info('D3')).headers['x-numbercomps']).toBe('1')
    expect(old.documents.get('Z1/D1')!.components[0]!.sizeBytes).toBe(5)
  })

  test('is asked for while the relay finds that it was deleted here, which is no failure of the upstream', async () => {
    const { old, source } = await migration.open()
    old.put('D1', { data: 'hello' })
    expect((await source.delete('D1')).status).toBe(200)
    const counts = () =>
      Promise.all(['failed', 'missing'].map((name) => readMetric(scene, `relay_upstream_requests_total{outcome="${name}"}`)))
    const [failed, missing] = await counts()
    const held = holdRequests(old, 'docId=D1')
    expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
    expect(outcome(await source.get('D2'))).toEqual([404, 'document_not_found'])
    expect(await counts()).toEqual([failed, missing! + 1])
    held.release()
  })

  test('is deleted here for ever, and stays there', async () => {
    const { old, source } = await migration.open()
    for (const docId of ['D1', 'D2', 'D3']) old.put(docId, { data: 'hello', note: 'x' })
    expect((await source.delete('D1')).status).toBe(200)
    expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
    expect(outcome(await source.info('D1'))).toEqual([404, 'document_not_found'])
    expect(outcome(await source.delete('D1'))).toEqual([404, 'document_not_found'])
    // After it has been kept.
    await source.append('D2', '!')
    expect((await source.delete('D2')).status).toBe(200)
    expect(outcome(await source.get('D2'))).toEqual([404, 'document_not_found'])
    // One component of it.
    expect((await source.delete('D3', '&compId=note')).status).toBe(200)
    expect((await source.info('D3')).headers['x-numbercomps']).toBe('1')
    expect([...old.documents.keys()].toSorted()).toEqual(['Z1/D1', 'Z1/D2', 'Z1/D3'])
    // Its docId can be used again.
    expect((await source.create('D1', 'new')).status).toBe(201)
    expect(String((await source.get('D1')).body)).toBe('new')
  })

  test('is not created a second time', async () => {
    const { old, source } = await migration.open()
    old.put('D1', { data: 'hello' })
    expect(outcome(await source.create('D1', 'other'))).toEqual([403, 'document_exists'])
    expect((await source.create('D2', 'new')).status).toBe(201)
    const many = await source.mCreate('D1', [partOf('D1', 'data', 'x'), partOf('D3', 'data', 'y')])
    expect([many.status, String(many.body)]).toEqual([250, expect.stringMatching(/D1";retCode="403".*\r\ndocId="D3";retCode="201"/)])
    expect(old.documents.size).toBe(1)
  })

  test('is refused if neither has it', async () => {
    const { source } = await migration.open()
    expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
    expect(outcome(await source.append('D1', 'x'))).toEqual([404, 'document_not_found'])
    expect(outcome(await source.update('D1', 'x'))).toEqual([404, 'document_not_found'])
    expect(outcome(await source.delete('D1'))).toEqual([404, 'document_not_found'])
  })

  test('is passed on and not kept if the workspace may not store it', async () => {
    const { old, source, workspaceId, documents } = await migration.open()
    await scene
      .db('workspaces')
      .where({ id: workspaceId })
      .update({ settings: JSON.stringify({ receiver_max_bytes: 1_000 }) })
    old.put('D1', { data: large })
    expect((await source.get('D1')).body.equals(large)).toBe(true)
    expect((await source.get('D1')).body.equals(large)).toBe(true)
    expect(outcome(await source.append('D1', 'x'))).toEqual([507, 'quota_exceeded'])
    expect(await documents()).toEqual([])
  })

  test('is asked for with a signature that the upstream accepts', async () => {
    const { old, source, kept } = await migration.open({ isSigned: true })
    old.put('D1', { data: 'hello' })
    expect(String((await source.get('D1')).body)).toBe('hello')
    await kept('D1', 1)
    old.certificates[0]!.isActive = false
    old.put('D2', { data: 'hello' })
    const refused = await source.get('D2')
    expect(outcome(refused)).toEqual([503, 'upstream_failed'])
    expect(refused.headers['x-errordescription']).toContain('no active certificate for this authId')
  })
})

describe('an upstream that fails', () => {
  const reads = (source: Migrated['source']) => [
    () => source.get('D1'),
    () => source.info('D1'),
    () => source.docGet('D1'),
    () => source.call('search&pVersion=0045&contRep=Z1&docId=D1&compId=data&pattern=lo'),
    () => source.append('D1', 'x'),
    () => source.update('D1', 'x'),
    () => source.create('D1', 'x'),
    () => source.delete('D1'),
  ]

  test.each(['fails', 'never_answers', 'unknown_is_200'] as const)(
    'is never taken for a document that does not exist: %s',
    async (fault) => {
      await using impatient = await startApi(scene.db, { keyRing: scene.api.keyRing, limits: { upstream: { idleTimeoutMs: 1_000 } } })
      const { old, path, documents } = await migration.open()
      await using source = disposable(createSourceSystem(impatient.baseUrl + path), (other) => other.close())
      old.faults.add(fault)
      const answers = await Promise.all(reads(source).map((read) => read()))
      expect(answers.map(outcome)).toEqual(answers.map(() => [503, 'upstream_failed']))
      expect(answers[0]!.headers['retry-after']).toBe('5')
      expect(answers[0]!.headers['x-errordescription']).toMatch(/^upstream_failed: upstream: /)
      expect(await documents()).toEqual([])
    },
  )

  test('is never taken for one if it is gone, or answers 404 as a web server or for another repository', async () => {
    const { old, source, set } = await migration.open()
    await set({ url: `${old.url}/none`, cont_rep: 'Z9' })
    expect(outcome(await source.get('D1'))).toEqual([503, 'upstream_failed'])
    await set({ url: old.url, cont_rep: 'Z1' })
    expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
    await set({ url: unreachable, cont_rep: 'Z1' })
    for (const read of reads(source)) expect(outcome(await read())).toEqual([503, 'upstream_failed'])
  })

  test('is never taken for one if a web server answers 404 in its place, also right after its own 404', async () => {
    const { old, source } = await migration.open({ port: await findFreePort() })
    expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
    await old.stop()
    const proxy = createServer((_, response) => void response.writeHead(404).end('<html>Not Found</html>')).listen(old.port, '127.0.0.1')
    await once(proxy, 'listening')
    try {
      for (const read of reads(source)) expect(outcome(await read())).toEqual([503, 'upstream_failed'])
    } finally {
      proxy.closeAllConnections()
      proxy.close()
    }
  })

  test('is asked once more at most by requests for missing documents that arrive together', async () => {
    const { old, source } = await migration.open()
    old.put('KNOWN', { data: 'x' })
    const question = holdRequests(old, 'serverInfo')
    const asking = Promise.all(Array.from({ length: 15 }, (_, index) => source.info(`D${index}`)))
    await question.arrived
    await until('all have a 404', () => old.requests.filter((request) => request.startsWith('info D')).length === 15)
    // An answer that comes after theirs: by now, they wait.
    expect((await source.info('KNOWN')).status).toBe(200)
    question.release()
    const answers = await asking
    expect(answers.map(outcome)).toEqual(answers.map(() => [404, 'document_not_found']))
    expect(old.requests.filter((request) => request === 'serverInfo')).toHaveLength(2)
  })

  test('breaks the connection where it breaks off, and nothing is kept', async () => {
    const { old, source, documents, countRows } = await migration.open()
    old.put('D1', { data: large })
    old.faults.add('closes_midway')
    // The relay may notice it before it has answered.
    const broken = await source.get('D1').catch((thrown: { code?: string }) => thrown.code)
    expect(['UND_ERR_SOCKET', 503]).toContain(typeof broken === 'object' ? broken.status : broken)
    old.faults.clear()
    old.faults.add('info_size')
    expect(outcome(await source.get('D1'))).toEqual([503, 'upstream_failed'])
    expect(await documents()).toEqual([])
    await until('nothing is left', countRows, ({ contents }) => contents === 0)
    old.faults.clear()
    expect((await source.get('D1')).body.equals(large)).toBe(true)
  })

  test('does not keep the relay from serving its own documents', async () => {
    const { source, set } = await migration.open()
    expect((await source.create('D1', 'hello')).status).toBe(201)
    await set({ url: unreachable, cont_rep: 'Z1' })
    expect(String((await source.get('D1')).body)).toBe('hello')
    expect((await source.append('D1', '!')).status).toBe(200)
    expect((await source.delete('D1')).status).toBe(200)
    expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
  })
})

test('two processes that fetch one document both answer it, and keep it once', async () => {
  await using second = await startApi(scene.db, { keyRing: scene.api.keyRing })
  const { old, source, kept, path, documents, countRows } = await migration.open()
  await using elsewhere = disposable(createSourceSystem(second.baseUrl + path), (other) => other.close())
  old.put('D1', { data: large, note: 'x' })
  old.timing.slowMs = 200
  old.faults.add('slow')
  const answers = await Promise.all([source.get('D1'), elsewhere.get('D1')])
  expect(answers.map(({ status, body }) => [status, body.equals(large)])).toEqual(answers.map(() => [200, true]))
  expect(old.requests.filter((request) => request === 'get D1')).toHaveLength(2)
  await kept('D1', 2)
  await until('the loser has discarded its bytes', countRows, ({ contents }) => contents === 2)
  expect(await documents()).toHaveLength(2)
})

test('a reader that has waited long for another one gets the document directly, and it is kept once', async () => {
  await using impatient = await startApi(scene.db, { keyRing: scene.api.keyRing, limits: { upstreamWaits: { streamAfterMs: 100 } } })
  const { old, kept, path, countRows } = await migration.open()
  await using source = disposable(createSourceSystem(impatient.baseUrl + path), (other) => other.close())
  old.put('D1', { data: 'hello', note1: 'x', note2: 'y' })
  old.timing.slowMs = 400
  old.faults.add('slow')
  const answers = await Promise.all([source.get('D1'), source.get('D1')])
  expect(answers.map(({ status, body }) => [status, String(body)])).toEqual([
    [200, 'hello'],
    [200, 'hello'],
  ])
  await until('both have read the document', () => old.requests.filter((request) => request === 'get D1').length === 2)
  await kept('D1', 3)
  await until('nothing else is stored', countRows, ({ contents }) => contents === 3)
})

test('a reader does not wait until the content store has taken a document of a few pieces', async () => {
  const released = Promise.withResolvers<void>()
  const openStore = (db: Database): ContentStore => {
    const store = createPostgresStore(db)
    async function* slowly(source: AsyncIterable<Uint8Array>) {
      for await (const piece of source) {
        await released.promise
        yield piece
      }
    }
    return { ...store, write: (workspaceId, source, maxBytes) => store.write(workspaceId, slowly(source), maxBytes) }
  }
  await using slow = await startApi(scene.db, { keyRing: scene.api.keyRing, openStore })
  const { old, kept, path, documents } = await migration.open()
  await using source = disposable(createSourceSystem(slow.baseUrl + path), (other) => other.close())
  const bytes = large.subarray(0, 300_000)
  old.put('D1', { data: bytes })
  try {
    expect((await source.get('D1')).body.equals(bytes)).toBe(true)
    expect(await documents()).toEqual([])
  } finally {
    released.resolve()
  }
  await kept('D1', 1)
})

test.each([
  ['get', 'get', ''],
  ['get of a range', 'get', '&fromOffset=1&toOffset=3'],
  ['docGet', 'docGet', ''],
] as const)('the capture of a %s refers to the content that the document is kept as', async (_, command, more) => {
  const { old, source, captureOf, bodyOf, workspaceId } = await migration.open()
  old.put('D1', { data: 'hello', empty: '' })
  const answer = await source[command]('D1', more)
  const { id } = await captureOf(answer)
  expect((await bodyOf(id, 'response')).bytes).toEqual(answer.body)
  const [row] = await scene.db('captured_bodies').where({ workspace_id: workspaceId, request_id: id, kind: 'response' })
  expect(row).toMatchObject({ data: null, pieces: expect.arrayContaining([expect.objectContaining({ contentId: expect.any(String) })]) })
})

test('a content type in any encoding arrives as it was sent', async () => {
  const { old, source, kept } = await migration.open()
  const contentType = 'text/plain; name="Übersicht €.txt"'
  old.put('D1', { data: 'hello', 'Anhang €.txt': 'x' }, { contentType })
  const types = async () => Buffer.from((await source.get('D1')).headers['content-type']!, 'latin1').toString('utf8')
  expect(await types()).toBe(contentType)
  await kept('D1', 2)
  expect(await types()).toBe(contentType)
  expect(String((await source.get('D1', `&compId=${encodeURIComponent('Anhang €.txt')}`)).body)).toBe('x')
})

test('a client that disconnects does not end the fetch', async () => {
  const { old, source, kept, openRequest } = await migration.open()
  old.put('D1', { data: Buffer.alloc(20_000_000, 'x') })
  await openRequest('get&pVersion=0045&contRep=Z1&docId=D1')
  await kept('D1', 1)
  expect((await source.get('D1', '&fromOffset=0&toOffset=9')).body.toString()).toBe('xxxxxxxxxx')
})

test('a client that disconnects from docGet holds nothing back', async () => {
  const { old, kept, openRequest } = await migration.open()
  old.put('D1', Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`page${index}`, Buffer.alloc(1_000_000, 'x')])))
  await openRequest('docGet&pVersion=0045&contRep=Z1&docId=D1')
  expect(await kept('D1', 20)).toHaveLength(20)
})

test('a document that is deleted while it is fetched does not come back', async () => {
  // Its metrics count only what happens in this test.
  await using own = await startApi(scene.db, { keyRing: scene.api.keyRing })
  const { old, path, documents } = await migration.open()
  await using source = disposable(createSourceSystem(own.baseUrl + path), (other) => other.close())
  old.put('D1', { data: 'hello', note: 'x' })
  const note = holdRequests(old, 'compId=note')
  const read = await source.get('D1')
  await note.arrived
  const deleted = await source.delete('D1')
  expect([read.status, deleted.status]).toEqual([200, 200])
  note.release()
  await until('the fetch has ended', () => readMetric({ api: own }, 'relay_upstream_documents_total{outcome="exists"}'))
  expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
  expect(await documents()).toEqual([])
})

test('a document that is kept while its deletion asks the upstream is deleted', async () => {
  const { old, source, kept } = await migration.open()
  old.put('D1', { data: 'hello' })
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  old.timing.beforeAnswer = () => {
    old.timing.beforeAnswer = undefined
    arrived.resolve()
    return released.promise
  }
  const deleting = source.delete('D1')
  await arrived.promise
  const read = await source.get('D1')
  await kept('D1', 1)
  released.resolve()
  expect([read.status, (await deleting).status]).toEqual([200, 200])
  expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
})

test.each([
  ['deleted', async ({ source }: Migrated) => (await source.delete('D1')).status],
  [
    'erased',
    async ({ ask, kept }: Migrated) => {
      const [{ id }] = (await kept('D1', 1)) as [{ id: string }]
      return (await ask('DELETE', `/documents/${id}/content`)).status
    },
  ],
])('a document that is %s while the repository has no upstream does not come back with it', async (_, end) => {
  const migrated = await migration.open()
  const { old, source, kept, set, workspaceId } = migrated
  old.put('D1', { data: 'hello' })
  await source.get('D1')
  await kept('D1', 1)
  await set(null)
  expect(await end(migrated)).toBeLessThan(300)
  // As retention removes it in the end.
  await scene.db('documents').where({ workspace_id: workspaceId }).delete()
  await scene.db('archive_documents').where({ workspace_id: workspaceId }).delete()
  await set({ url: old.url, cont_rep: 'Z1' })
  expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
})

test('a document that is erased is never fetched again', async () => {
  const { old, source, kept, ask, workspaceId } = await migration.open()
  old.put('D1', { data: 'hello' })
  await source.get('D1')
  const [{ id }] = (await kept('D1', 1)) as [{ id: string }]
  expect((await ask('DELETE', `/documents/${id}/content`)).status).toBe(204)
  expect(outcome(await source.get('D1'))).toEqual([409, 'component_offline'])
  expect((await source.head('D1')).status).toBe(409)
  // As retention removes it in the end.
  await scene.db('documents').where({ workspace_id: workspaceId }).delete()
  await scene.db('archive_documents').where({ workspace_id: workspaceId }).delete()
  expect(outcome(await source.get('D1'))).toEqual([404, 'document_not_found'])
})

test('retention keeps a document that is nowhere else, and not one that was delivered', async () => {
  const inThreeDays = new Date(Date.now() + 3 * 86_400_000)
  for (const delivers of [false, true]) {
    const { old, source, kept, workspaceId } = await migration.open({ delivers })
    await scene
      .db('workspaces')
      .where({ id: workspaceId })
      .update({ settings: JSON.stringify({ content_days: 1 }) })
    old.put('D1', { data: 'hello' })
    await source.get('D1')
    await kept('D1', 1)
    await scene.db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'delivered' })
    await withoutManifests(scene.db)
    await createRetention(scene.db, testConfig()).removeExpired(inThreeDays, new AbortController().signal)
    expect((await source.get('D1')).status).toBe(delivers ? 409 : 200)
  }
})

test('the metrics count what the upstream answers', async () => {
  const before = await readMetric(scene, 'relay_upstream_requests_total{outcome="found"}')
  const { old, source, kept } = await migration.open()
  old.put('D1', { data: 'hello' })
  await source.get('D1')
  await kept('D1', 1)
  expect(await readMetric(scene, 'relay_upstream_requests_total{outcome="found"}')).toBe(before + 1)
})
