import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { newId } from '../../src/base/ids.ts'
import { createFilesStore } from '../../src/content/files.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { storeFailed, type Stores } from '../../src/content/store.ts'
import { findJob } from '../../src/maintenance/jobs.ts'
import { sweepOrphans, type SweepFailure } from '../../src/maintenance/sweep-orphans.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { createMaintenanceDeps } from '../support/maintenance.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())
const { db } = database
const { path: directory } = share(await createFolder())
const { workspaceId } = await createRoutes(db, [])
const postgres = createPostgresStore(db)
const files = createFilesStore(db, postgres, { CONTENT_DIR: directory, CONTENT_DIR_MIN_BYTES: 0 })

const folderOf = (id: string) => join(directory, id.slice(-2))
const sizeBytes = 10
// More than three queries.
const count = 301
const hourMs = 3_600_000

/** Inserts contents without an owner, the oldest first. @returns their ids */
const insertOrphans = async (store: 'files' | 'postgres', number: number): Promise<string[]> => {
  const ids = Array.from({ length: number }, () => newId())
  const createdAt = (index: number) => new Date(Date.now() - 100 * hourMs + index)
  await db('contents').insert(
    ids.map((id, index) => ({ id, workspace_id: workspaceId, store, size_bytes: sizeBytes, created_at: createdAt(index) })),
  )
  return ids
}

const insertFiles = async (unremovable: number[]): Promise<string[]> => {
  const ids = await insertOrphans('files', count)
  for (const [index, id] of ids.entries()) {
    await mkdir(folderOf(id), { recursive: true })
    // A folder of its name cannot be removed, like a file on a file system with retention.
    if (unremovable.includes(index)) await mkdir(join(folderOf(id), id))
    else await writeFile(join(folderOf(id), id), 'x'.repeat(sizeBytes))
  }
  return ids
}

const storedIn = async () =>
  (await readdir(directory, { recursive: true, withFileTypes: true })).map(({ name }) => basename(name)).filter((name) => name.length > 16)

const rows = () => db('contents').orderBy('created_at').pluck<string[]>('id')
const storedBytes = async () => Number((await db('workspace_storage').where({ workspace_id: workspaceId }).sum('bytes as sum'))[0]!['sum'])

const sweep = async (stores: Stores) => {
  const failures: SweepFailure[] = []
  const removed = await sweepOrphans(db, stores, new Date(Date.now() - 24 * hourMs), undefined, (failure) => void failures.push(failure))
  return { removed, failures }
}

afterEach(() => db('contents').delete())

test.each([
  ['in the middle of a query', [50]],
  ['the first one of each query', [0, 100, 200, 300]],
  ['a whole query', Array.from({ length: 120 }, (_, index) => index)],
])('contents that cannot be removed keep no other from being removed: %s', async (_, unremovable) => {
  const ids = await insertFiles(unremovable)
  await insertOrphans('postgres', 1)
  const left = unremovable.map((index) => ids[index]!)
  expect(await storedBytes()).toBe((count + 1) * sizeBytes)
  const { removed, failures } = await sweep({ files, postgres })
  expect(removed).toBe(count + 1 - left.length)
  expect(failures.map(({ contentId }) => contentId)).toEqual(left)
  expect(failures[0]).toMatchObject({ store: 'files', reason: expect.stringContaining('directory') })
  expect(await rows()).toEqual(left)
  expect((await storedIn()).toSorted()).toEqual(left.toSorted())
  expect(await storedBytes()).toBe(left.length * sizeBytes)

  for (const id of left) await rmdir(join(folderOf(id), id))
  expect(await sweep({ files, postgres })).toEqual({ removed: left.length, failures: [] })
  expect(await rows()).toEqual([])
})

test('a store that fails as a whole because of one content is asked for each of them', async () => {
  const ids = await insertOrphans('postgres', 250)
  const poison = ids[30]!
  const failing = {
    ...postgres,
    remove: async (contentIds: string[]) => {
      if (contentIds.includes(poison)) throw new Error('this content is under a legal hold')
      return postgres.remove(contentIds)
    },
  }
  const failure = { store: 'postgres', contentId: poison, reason: 'this content is under a legal hold' }
  expect(await sweep({ postgres: failing })).toEqual({ removed: 249, failures: [failure] })
  expect(await rows()).toEqual([poison])
})

test('a store that is away is asked once, and the other stores are swept', async () => {
  const ids = await insertOrphans('files', 250)
  await insertOrphans('postgres', 1)
  let asked = 0
  const away = {
    ...files,
    remove: async () => {
      asked += 1
      throw storeFailed('remove', new Error('connect ECONNREFUSED'))
    },
  }
  const stores = createSegmentedStores(db, { files: away, postgres })
  expect(await sweep(stores)).toEqual({
    removed: 1,
    failures: [{ store: 'files', reason: 'The content store failed to remove the bytes.' }],
  })
  expect(asked).toBe(1)
  expect(await rows()).toEqual(ids)
})

test('a young content whose removal has begun, as by an erasure, is removed by the next run', async () => {
  const [erased, young] = await insertOrphans('postgres', 2)
  await db('contents').update({ created_at: new Date() })
  await db('contents').where({ id: erased }).update({ removal_began_at: new Date() })
  expect(await sweep({ postgres })).toEqual({ removed: 1, failures: [] })
  expect(await rows()).toEqual([young])
})

test('segments in a store that is away stay for its sweep, and their content is removed', async () => {
  const [content] = await insertOrphans('postgres', 1)
  const [segment] = await insertOrphans('files', 1)
  await db('contents').where({ id: segment }).update({ owned_at: new Date(), created_at: new Date() })
  await db('content_segments').insert({ content_id: content, append: 1, start_byte: 0, segment_id: segment, workspace_id: workspaceId })
  const away = { ...files, remove: () => Promise.reject(storeFailed('remove', new Error('connect ECONNREFUSED'))) }
  expect(await sweep(createSegmentedStores(db, { files: away, postgres }))).toEqual({ removed: 1, failures: [] })
  expect(await db('contents')).toMatchObject([{ id: segment, owned_at: null }])
})

test('a content that gets its owner while its removal begins is kept, and one whose removal has begun gets none', async () => {
  const content = await files.write(
    workspaceId,
    (async function* () {
      yield Buffer.from('hello')
    })(),
  )
  let removing: Promise<unknown> | undefined
  await db.transaction(async (trx) => {
    await content.own(trx)
    removing = files.remove([content.id])
    // Waits for the row.
    await new Promise((resolve) => setTimeout(resolve, 200))
  })
  expect(await removing).toEqual([])
  expect(await storedIn()).toEqual([content.id])

  await db('contents').update({ owned_at: null, removal_began_at: new Date() })
  await expect(db.transaction((trx) => content.own(trx))).rejects.toThrow('was removed before')
  await files.remove([content.id])
})

test('the job names what it could not remove, and fails if a store is away, so that Temporal repeats it', async () => {
  await insertFiles([3])
  const unused = { send: async () => {}, terminateDelivery: async () => {}, terminateBulkRetry: async () => {} }
  const working = async () => ({ state: 'working' }) as const
  const temporal = { ...unused, findDeliveryWorkflow: working, findBulkRetryWorkflow: working }
  const run = (stores: Stores) =>
    findJob('remove-orphans')!.run(
      { ...createMaintenanceDeps(db, temporal, testConfig()), stores },
      { now: new Date(), signal: new AbortController().signal },
    )
  const [kept] = [(await rows())[3]!]
  expect(await run({ files })).toMatch(new RegExp(`^${count - 1} contents removed; 1 failures; ${kept} \\(files\\): `))
  const away = { ...files, remove: () => Promise.reject(storeFailed('remove', new Error('connect ECONNREFUSED'))) }
  await expect(run({ files: away })).rejects.toThrow('0 contents removed; 1 failures; files store: ')
  await rmdir(join(folderOf(kept), kept))
})
