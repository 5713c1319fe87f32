import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, rename, rm, rmdir, stat, truncate, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { newId } from '../../src/base/ids.ts'
import { createFileCalls } from '../../src/content/file-calls.ts'
import { createFilesStore } from '../../src/content/files.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { Database } from '../../src/db/database.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { createTestDatabase } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { describeContentStore } from './conformance.ts'

const run = promisify(execFile)

const { path: directory } = share(await createFolder())

const filesIn = async (folder: string) => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => basename(name))
}

describeContentStore('files', () => ({
  open: (db) => createFilesStore(db, createPostgresStore(db), { CONTENT_DIR: directory, CONTENT_DIR_MIN_BYTES: 0 }),
  stored: async () => (await filesIn(directory)).toSorted(),
}))

describe('the files content store', () => {
  let db: Database
  let drop: () => Promise<void>
  let own: string
  const workspaceId = newId()

  beforeEach(async () => {
    ;({ db, drop } = await createTestDatabase())
    await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
    own = await mkdtemp(join(directory, 'own-'))
  })
  afterEach(() => drop())

  const openStore = (folder = own) => createFilesStore(db, createPostgresStore(db), { CONTENT_DIR: folder, CONTENT_DIR_MIN_BYTES: 1_000 })
  async function* chunks(...sizes: number[]) {
    for (const size of sizes) yield Buffer.alloc(size, 'x')
  }

  test.each([
    ['postgres', [999]],
    ['postgres', []],
    ['files', [1_000]],
    ['files', [999, 1]],
    ['files', [300_000, 300_000]],
  ])('stores contents below CONTENT_DIR_MIN_BYTES in PostgreSQL, others as files: %s, chunks of %j bytes', async (kind, sizes) => {
    const content = await openStore().write(workspaceId, chunks(...sizes))
    await db.transaction((trx) => content.own(trx))
    const sizeBytes = sizes.reduce((sum, size) => sum + size, 0)
    expect(await db('contents')).toMatchObject([{ id: content.id, store: kind, size_bytes: sizeBytes }])
    expect(await filesIn(own)).toEqual(kind === 'files' ? [content.id] : [])
    const store = kind === 'files' ? openStore() : createPostgresStore(db)
    expect(await buffer(store.read({ id: content.id, sizeBytes }))).toHaveLength(sizeBytes)
  })

  test('the sweep removes what a crash left behind: a row without a file, and a file whose document was not committed', async () => {
    const store = openStore()
    const written = await store.write(workspaceId, chunks(2_000))
    const before = newId()
    await db('contents').insert({ id: before, workspace_id: workspaceId, store: 'files' })
    expect(await sweepOrphans(db, { files: store }, new Date(Date.now() + 1_000))).toBe(2)
    expect(await db('contents')).toEqual([])
    expect(await filesIn(own)).toEqual([])
    // The document of a removed content is not committed.
    await expect(db.transaction((trx) => written.own(trx))).rejects.toThrow(/was removed/)
  })

  test('a directory that does not exist makes the store unavailable, and is not created', async () => {
    const missing = join(own, 'not-mounted')
    await expect(openStore(missing).write(workspaceId, chunks(2_000))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await readdir(own)).toEqual([])
    expect(await db('contents')).toEqual([])
  })

  test('a file that cannot be read makes the store unavailable', async () => {
    const content = await openStore().write(workspaceId, chunks(2_000))
    const error = await buffer(openStore(join(own, 'not-mounted')).read(content)).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'unavailable', cause: { code: 'ENOENT' } })
    const short = openStore(join(own, 'not-mounted')).readShort!(content, { start: 0, end: 9 })
    await expect(short).rejects.toMatchObject({ code: 'unavailable', cause: { code: 'ENOENT' } })
  })

  test.each([
    ['all of it', undefined],
    ['a range behind its end', { start: 1_500, end: 1_700 }],
  ])('reading a file that is shorter than its content fails: %s', async (_, range) => {
    const content = await openStore().write(workspaceId, chunks(2_000))
    await truncate(join(own, content.id.slice(-2), content.id), 1_000)
    const error = await buffer(openStore().read(content, range)).catch((thrown: unknown) => thrown)
    const short = { code: 'unavailable', cause: { message: 'the file is shorter than its content' } }
    expect(error).toMatchObject(short)
    await expect(openStore().readShort!(content, { start: 0, end: 1_999, ...range })).rejects.toMatchObject(short)
  })

  test('writes again after the directories have come back', async () => {
    const store = openStore()
    const writeAll = () => Promise.all(Array.from({ length: 8 }, () => store.write(workspaceId, chunks(2_000))))
    await writeAll()
    await rename(own, `${own}-away`)
    await expect(store.write(workspaceId, chunks(2_000))).rejects.toMatchObject({ code: 'unavailable' })
    await rename(`${own}-away`, own)
    const ids = (await writeAll()).map(({ id }) => id)
    expect(await filesIn(own)).toEqual(expect.arrayContaining(ids))
  })

  test('closes a source that it has begun to read if the database cannot be reached', async () => {
    let isClosed = false
    async function* source() {
      try {
        yield* chunks(600, 600, 600)
      } finally {
        isClosed = true
      }
    }
    const store = openStore()
    await db.destroy()
    await expect(store.write(workspaceId, source())).rejects.toThrow('Unable to acquire a connection')
    expect(isClosed).toBe(true)
  })

  describe('whose volume is gone, and with an empty directory in its place', () => {
    const away = () => `${own}-away`
    const store = (sizeBytes = 2_000) => openStore().write(workspaceId, chunks(sizeBytes))
    const owned = async (content: Awaited<ReturnType<typeof store>>) => {
      await db.transaction((trx) => content.own(trx))
      return content
    }
    const unmount = async () => {
      await rename(own, away())
      await mkdir(own)
    }
    const mount = async () => {
      await rm(own, { recursive: true })
      await rename(away(), own)
    }
    const isUnavailable = { code: 'unavailable', cause: { message: expect.stringContaining('probably not mounted') as string } }

    test.each(['a process that has stored there', 'a process that starts'])(
      'stores nothing, and stores again when it is back: %s',
      async (which) => {
        const running = openStore()
        const first = await running.write(workspaceId, chunks(2_000))
        if (which === 'a process that starts') await owned(first)
        const used = which === 'a process that starts' ? openStore() : running
        await unmount()
        await expect(used.write(workspaceId, chunks(2_000))).rejects.toMatchObject(isUnavailable)
        expect(await readdir(own)).toEqual([])
        // Contents in the database need no volume.
        await used.write(workspaceId, chunks(10))
        await mount()
        const second = await used.write(workspaceId, chunks(2_000))
        expect((await filesIn(own)).toSorted()).toEqual([first.id, second.id].toSorted())
      },
    )

    test('takes no file for removed: its row stays, and it is removed when the volume is back', async () => {
      const [kept, content] = [await owned(await store()), await store()]
      await unmount()
      const running = openStore()
      await expect(running.remove([content.id])).rejects.toMatchObject(isUnavailable)
      expect(await db('contents').orderBy('id').pluck('id')).toEqual([kept.id, content.id])
      await mount()
      await running.remove([content.id])
      expect(await db('contents').pluck('id')).toEqual([kept.id])
      expect(await filesIn(own)).toEqual([kept.id])
    })

    test('discards no content whose file will come back: the sweep does it later', async () => {
      const running = openStore()
      const content = await running.write(workspaceId, chunks(2_000))
      await unmount()
      await content.discard()
      expect(await db('contents').pluck('id')).toEqual([content.id])
      await mount()
      expect(await sweepOrphans(db, { files: running }, new Date(Date.now() + 1_000))).toBe(1)
      expect(await filesIn(own)).toEqual([])
    })

    test.each(['goes', 'returns'])('keeps no content whose volume %s while it is received', async (what) => {
      await owned(await store())
      const running = openStore()
      await running.write(workspaceId, chunks(2_000))
      async function* source() {
        yield Buffer.alloc(2_000, 'x')
        if (what === 'goes') await unmount()
        yield Buffer.alloc(2_000, 'y')
        if (what === 'returns') {
          // What was written in the meantime is on the disk below.
          await rename(own, `${own}-below`)
          await mkdir(own)
          await mkdir(join(own, '.document-relay'))
        }
      }
      await expect(running.write(workspaceId, source())).rejects.toMatchObject({ code: 'unavailable' })
    })

    test('is used again without its mark if the contents are there, and with a mark if they are lost', async () => {
      await owned(await store())
      await rmdir(join(own, '.document-relay'))
      await owned(await store())
      expect(await readdir(own)).toContain('.document-relay')
      await unmount()
      await mkdir(join(own, '.document-relay'))
      await store()
    })
  })

  test('a directory that cannot be written to makes the store unavailable, and nothing is stored', async () => {
    const notADirectory = join(own, 'file')
    await writeFile(notADirectory, '')
    await expect(openStore(notADirectory).write(workspaceId, chunks(2_000))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await db('contents')).toEqual([])
  })

  test('the files can be read by the account of the relay only', async () => {
    const content = await openStore().write(workspaceId, chunks(2_000))
    const file = (await readdir(own, { recursive: true })).find((name) => basename(name) === content.id)!
    expect((await stat(join(own, file))).mode & 0o777).toBe(0o600)
  })

  describe('on a file system that does not answer', () => {
    const maxMs = 500
    // Opening a pipe without a writer blocks the caller and a thread until a writer comes.
    const hang = async ({ id }: { id: string }) => {
      const file = join(own, id.slice(-2), id)
      await rm(file)
      await run('mkfifo', [file])
      return async () => {
        const writer = await open(file, constants.O_RDWR | constants.O_NONBLOCK)
        return () => writer.close()
      }
    }

    test('reads, sizes and writes fail in time, the process goes on using files, and the store returns', async () => {
      const calls = createFileCalls({ maxCalls: 2, maxMs })
      const store = createFilesStore(db, createPostgresStore(db), { CONTENT_DIR: own, CONTENT_DIR_MIN_BYTES: 1_000 }, calls)
      const [readable, hanging] = [await store.write(workspaceId, chunks(2_000)), await store.write(workspaceId, chunks(2_000))]
      await db.transaction((trx) => readable.own(trx))
      const answer = await hang(hanging)
      const isLate = { code: 'unavailable', cause: expect.objectContaining({ name: 'LateError' }) }
      const reads = Array.from({ length: 8 }, () => buffer(store.read(hanging)))
      const outcomes = await Promise.allSettled([...reads, store.readShort!(hanging, { start: 0, end: 9 })])
      expect(outcomes).toEqual(outcomes.map(() => ({ status: 'rejected', reason: expect.objectContaining(isLate) })))
      // Two calls hang for ever. All others wait for their places.
      await expect(store.write(workspaceId, chunks(2_000))).rejects.toMatchObject({ code: 'unavailable' })
      await expect(store.remove([hanging.id])).rejects.toMatchObject({ code: 'unavailable' })
      await expect(buffer(store.read(readable))).rejects.toMatchObject(isLate)
      expect(await Promise.all(Array.from({ length: 20 }, () => stat(own)))).toHaveLength(20)
      expect(await store.write(workspaceId, chunks(10))).toMatchObject({ sizeBytes: 10 })

      const end = await answer()
      await until('the store answers', () =>
        buffer(store.read(readable)).then(
          () => true,
          () => false,
        ),
      )
      await end()
      await store.remove([hanging.id])
      expect(await filesIn(own)).toEqual([readable.id])
    })
  })
})
