import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { newId } from '../../src/base/ids.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { opaqueBytes, part } from '../support/source-system.ts'
import { atHome, createFolderHomes } from './folder-home.ts'
import { inTurns, startHomeScene, type HomeWorkspace } from './scene.ts'

const MiB = 1024 * 1024
const root = share(await createFolder())
const scene = share(await startHomeScene([root.path], { limits: { home: { readLimits: { idleTimeoutMs: 5_000 } } } }))

const createHome = createFolderHomes(scene, root.path)

const refused = {
  status: 503,
  headers: expect.objectContaining({
    'retry-after': '5',
    'x-errordescription': expect.stringMatching(/^home_failed: the (?:document is not|destination that) [a-z, ]+$/),
  }),
}
const altered = async ({ workspaceId }: HomeWorkspace) =>
  scene
    .db('home_contents')
    .join('contents', 'contents.id', 'content_id')
    .where({ workspace_id: workspaceId })
    .whereNotNull('altered_since')
    .orderBy('document_id')
    .pluck('last_error')

test('a repository whose contents are all at its home answers every get, range, info, docGet and search as before', async () => {
  const home = await createHome()
  expect((await home.setHome()).status).toBe(200)
  const documents = new Map(Array.from({ length: 300 }, (_, index) => [`D${index}`, opaqueBytes(200 + index * 37)]))
  await inTurns([...documents], ([docId, bytes]) => home.source.create(docId, bytes))
  const [large, first, second] = [opaqueBytes(9 * MiB + 17), opaqueBytes(5_000), Buffer.from('a needle in a text')]
  await home.source.create('LARGE', large)
  await home.source.createParts('PARTS', [part('data', first), part('data1', second)])
  await home.source.create('EMPTY', '')
  const infos = async () =>
    Promise.all(
      ['D7', 'LARGE', 'PARTS', 'EMPTY'].map(async (docId) =>
        (await home.source.info(docId)).body.toString().replaceAll(/--relay\w+/g, '--'),
      ),
    )
  const before = await infos()
  await home.deliver()

  await home.move(29)
  expect(await home.movedCount()).toBe(0)
  expect(await home.storeOf('D7')).toBe('postgres')
  await home.move()
  expect(await home.movedCount()).toBe(303)
  expect(await home.bytesHere()).toBe(0)

  await inTurns([...documents], async ([docId, bytes]) => {
    const { status, body } = await home.source.get(docId)
    expect([status, body.equals(bytes)]).toEqual([200, true])
    const range = await home.source.get(docId, '&fromOffset=17&toOffset=99')
    expect([range.status, range.body.equals(bytes.subarray(17, 100))]).toEqual([200, true])
  })
  expect((await home.source.get('LARGE')).body.equals(large)).toBe(true)
  for (const [from, to] of [
    [0, 0],
    [4 * MiB - 1, 4 * MiB],
    [5 * MiB, 8 * MiB + 1],
    [9 * MiB + 16, 9 * MiB + 16],
  ] as const) {
    const { body } = await home.source.get('LARGE', `&fromOffset=${from}&toOffset=${to}`)
    expect(body.equals(large.subarray(from, to + 1))).toBe(true)
  }
  const whole = await home.source.docGet('PARTS')
  expect(whole.body.includes(first) && whole.body.includes(second)).toBe(true)
  expect((await home.source.search('PARTS', '&compId=data1&pattern=needle')).body.toString()).toBe('1;2;')
  expect((await home.source.get('EMPTY')).body.length).toBe(0)
  expect(await infos()).toEqual(before)
  const [listed] = (await home.ask('GET', '/documents?per_page=1')).json.data
  expect(listed.attributes.content_retained).toBe(true)
}, 300_000)

test('one altered byte at the home is an incident, and no wrong byte leaves the relay', async () => {
  const home = await createHome()
  await home.setHome()
  const small = await atHome(home, 'SMALL', 10_000)
  const large = await atHome(home, 'LARGE', 9 * MiB)

  await home.spoil('SMALL', 5_000)
  expect(await home.source.get('SMALL')).toMatchObject(refused)
  expect(await home.source.get('SMALL', '&fromOffset=0&toOffset=10')).toMatchObject(refused)
  expect((await home.source.info('SMALL')).status).toBe(200)
  await home.spoil('LARGE', 6 * MiB)
  await expect(home.source.get('LARGE')).rejects.toThrow(/terminated|aborted|closed|reset/i)
  expect((await home.source.get('LARGE', `&fromOffset=10&toOffset=${MiB}`)).body.equals(large.subarray(10, MiB + 1))).toBe(true)
  expect(await home.source.get('LARGE', `&fromOffset=${5 * MiB}&toOffset=${5 * MiB + 9}`)).toMatchObject(refused)
  expect(await altered(home)).toEqual([
    expect.stringMatching(/SMALL\/data at home is not what was delivered/),
    expect.stringMatching(/LARGE/),
  ])

  const check = createCheckIncidents(scene.db, testConfig())
  await scene.db('notifications').insert({
    id: newId(),
    workspace_id: home.workspaceId,
    name: 'On call',
    events: ['content.altered'],
    destination_id: home.destinationId,
    quiet_seconds: 0,
    silence_hours: 72,
  })
  expect(await check(new Date())).toMatchObject({ opened: 1, notices: 1 })
  const notice = await scene.db('notices').where({ workspace_id: home.workspaceId }).first('data')
  expect(notice.data).toMatchObject({
    count: 2,
    destination: { name: 'home' },
    error: { code: 'content_altered' },
    document: { doc_id: 'LARGE' },
  })

  // Restored, they are read again by the job, and the incident ends.
  await home.spoil('SMALL', 5_000)
  await home.spoil('LARGE', 6 * MiB)
  await scene.db('home_contents').where({ destination_id: home.destinationId }).update({ checked_at: '2026-01-01' })
  await home.move()
  expect(await altered(home)).toEqual([])
  expect(await check(new Date())).toMatchObject({ closed: 1 })
  expect((await home.source.get('SMALL')).body.equals(small)).toBe(true)
})

test('a document that its home does not have any more is an incident, and a home that is away is none', async () => {
  const home = await createHome()
  await home.setHome()
  const kept = await atHome(home, 'KEPT', 3_000)
  await atHome(home, 'GONE', 3_000)
  await rm(home.fileOf('GONE'))
  expect(await home.source.get('GONE')).toMatchObject(refused)
  expect(await altered(home)).toEqual([expect.stringMatching(/GONE.*it is not there/)])

  await rename(home.folder, `${home.folder}-away`)
  expect(await home.source.get('KEPT')).toMatchObject(refused)
  expect(
    (
      await home.ask(
        'GET',
        `/documents/${(await scene.db('documents').where({ doc_id: 'KEPT', workspace_id: home.workspaceId }).first('id')).id}/content`,
      )
    ).status,
  ).toBe(503)
  expect(await altered(home)).toHaveLength(1)
  await rename(`${home.folder}-away`, home.folder)
  expect((await home.source.get('KEPT')).body.equals(kept)).toBe(true)
})

const execute = promisify(execFile)
const inItsPlace: Record<string, (path: string) => Promise<unknown>> = {
  folder: (path) => mkdir(path),
  link: (path) => symlink('other', path),
  pipe: (path) => execute('mkfifo', [path]),
}
test.each(Object.keys(inItsPlace))('a %s in the place of a document is an incident, and keeps no thread', async (thing) => {
  const home = await createHome()
  await home.setHome()
  await atHome(home, 'D1', 3_000)
  const path = home.fileOf('D1')
  await rename(path, join(home.folder, 'Z1', 'D1', 'other'))
  await inItsPlace[thing]!(path)
  expect(await home.source.get('D1')).toMatchObject(refused)
  expect(await altered(home)).toEqual([expect.stringMatching(/D1.*it is not there/)])
})

test('an append, an update, a redelivery and a delete work for documents whose content is at the home', async () => {
  const home = await createHome()
  await home.setHome()
  const appended = await atHome(home, 'APPENDED', 5 * MiB)
  const more = opaqueBytes(100)
  expect((await home.source.append('APPENDED', '')).status).toBe(200)
  expect(await home.storeOf('APPENDED')).toBe('home')
  expect((await home.source.append('APPENDED', more)).status).toBe(200)
  expect(await home.storeOf('APPENDED')).toBe('postgres')
  const both = Buffer.concat([appended, more])
  expect((await home.source.get('APPENDED')).body.equals(both)).toBe(true)
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  expect((await readFile(home.fileOf('APPENDED'))).equals(both)).toBe(true)
  await home.move()
  expect(await home.storeOf('APPENDED')).toBe('home')
  expect((await home.source.get('APPENDED')).body.equals(both)).toBe(true)

  await atHome(home, 'UPDATED', 1_000)
  const next = opaqueBytes(1_500)
  expect((await home.source.update('UPDATED', next)).status).toBe(200)
  await home.deliver()
  await home.move()
  expect(await home.storeOf('UPDATED')).toBe('home')
  expect((await home.source.get('UPDATED')).body.equals(next)).toBe(true)

  const again = await atHome(home, 'AGAIN', 2_000)
  const { id } = await scene.db('documents').where({ doc_id: 'AGAIN', workspace_id: home.workspaceId }).first('id')
  const redeliver = () => scene.db('deliveries').where({ document_id: id }).update({ status: 'pending', again: 1 })
  await redeliver()
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  expect((await readFile(home.fileOf('AGAIN'))).equals(again)).toBe(true)
  expect(await home.storeOf('AGAIN')).toBe('home')
  // What only the home has is never written over: a delivery reads it.
  await home.spoil('AGAIN', 7)
  await redeliver()
  expect(await home.deliver()).toEqual([expect.objectContaining({ status: 'retrying' })])

  expect((await home.source.delete('AGAIN')).status).toBe(200)
  expect((await home.source.get('AGAIN')).status).toBe(404)
  expect((await readFile(home.fileOf('AGAIN'))).length).toBe(2_000)
})

test('a content stays while a delivery is open, and if its home does not have what was delivered', async () => {
  const other = { name: 'other', connector: 'directory', config: { path: join(root.path, 'absent') } }
  const home = await createHome([other])
  await home.setHome()
  await home.source.create('OPEN', opaqueBytes(100))
  const outcomes = (await home.deliver()) as { status: string }[]
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['delivered', 'failed']))
  await home.move()
  expect([await home.storeOf('OPEN'), await home.waitingCount()]).toEqual(['postgres', 1])

  const single = await createHome()
  await single.setHome()
  const bytes = opaqueBytes(3_000)
  await single.source.create('DIFFERS', bytes)
  await single.deliver()
  await single.spoil('DIFFERS', 100)
  await single.move()
  expect([await single.movedCount(), await single.waitingCount()]).toEqual([0, 1])
  expect((await single.source.get('DIFFERS')).body.equals(bytes)).toBe(true)
  await writeFile(single.fileOf('DIFFERS'), Buffer.concat([bytes, Buffer.from('x')]))
  await single.move()
  expect([await single.movedCount(), await single.waitingCount()]).toEqual([0, 1])
  await writeFile(single.fileOf('DIFFERS'), bytes)
  await single.move()
  expect([await single.movedCount(), await single.waitingCount()]).toEqual([1, 0])
})

test('the home of a repository is a destination that can be read, which stays while it has contents', async () => {
  const hooked = await createHome([{ name: 'hook', connector: 'webhook', config: { url: 'https://hook.example/in' } }])
  const home = await createHome()
  for (const id of [hooked.destinations['hook']!, 'NONE', home.destinationId]) {
    const { status, json } = await hooked.setHome({ home_destination_id: id })
    expect([status, json.error.details]).toEqual([422, [expect.objectContaining({ path: 'home_destination_id' })]])
  }
  await home.setHome({ home_destination_id: home.destinationId, home_after_days: 0 })
  const remove = () => home.call('DELETE', `/destinations/${home.destinationId}`)
  const change = (config: object) => home.call('PATCH', `/destinations/${home.destinationId}`, { config })
  expect(await remove()).toMatchObject({
    status: 409,
    json: { error: { message: 'Destination home is the home of Z1. Give the repositories another home, or none.' } },
  })
  const probe = async () => (await home.call('POST', `/destinations/${home.destinationId}/test`)).json.data
  expect(await probe()).toMatchObject({ status: 'success', message: expect.stringContaining('no document was delivered there yet') })
  const bytes = await atHome(home, 'D1', 500)
  expect(await probe()).toMatchObject({ status: 'success', message: expect.stringMatching(/the relay read .*D1\/data/) })
  await rename(home.fileOf('D1'), `${home.fileOf('D1')}-away`)
  expect(await probe()).toMatchObject({ status: 'failed', error_code: 'copy_missing' })
  await rename(`${home.fileOf('D1')}-away`, home.fileOf('D1'))
  await home.setHome({ home_destination_id: null })
  expect(await remove()).toMatchObject({
    status: 409,
    json: { error: { message: 'Destination home alone has the contents of documents, which would be lost.' } },
  })
  expect(await change({ path: root.path })).toMatchObject({ status: 422, json: { error: { details: [{ path: 'config.path' }] } } })
  expect((await change({ max_concurrent_deliveries: 3 })).status).toBe(200)
  expect((await home.source.get('D1')).body.equals(bytes)).toBe(true)
  await home.source.delete('D1')
  const { id } = await scene.db('documents').where({ doc_id: 'D1', workspace_id: home.workspaceId }).first('id')
  expect((await home.call('DELETE', `/documents/${id}/content`)).status).toBe(204)
  expect((await remove()).status).toBe(204)
})
