import { randomBytes } from 'node:crypto'
import { newId } from '../../src/base/ids.ts'
import { createFilesStore } from '../../src/content/files.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createS3Store } from '../../src/content/s3.ts'
import type { ContentStore } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import { createTestDatabase } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { s3ConfigOf } from './s3-config.ts'

const MiB = 1024 * 1024
const sizeBytes = 192 * MiB

const { path: folder } = share(await createFolder())
const server = share(await startS3Server())
const database = share(await createTestDatabase())

test.each<[string, (db: Database) => ContentStore]>([
  ['postgres', (db) => createPostgresStore(db)],
  ['files', (db) => createFilesStore(db, createPostgresStore(db), { CONTENT_DIR: folder, CONTENT_DIR_MIN_BYTES: 0 })],
  ['s3', (db) => createS3Store(db, s3ConfigOf(server, server.endpoint))],
])('the %s content store needs less memory than the content', async (_, open) => {
  const { db } = database
  const store = open(db)
  const workspaceId = newId()
  await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: workspaceId.toLowerCase() })
  const block = randomBytes(64 * 1024)
  let highest = 0
  const before = process.memoryUsage().rss
  const measure = () => {
    highest = Math.max(highest, process.memoryUsage().rss - before)
  }
  async function* large() {
    for (let sent = 0; sent < sizeBytes; sent += block.length) {
      measure()
      yield block
    }
  }
  const content = await store.write(workspaceId, large())
  await db.transaction((trx) => content.own(trx))
  let read = 0
  for await (const data of store.read(content)) {
    measure()
    read += data.length
  }
  expect(read).toBe(sizeBytes)
  expect(highest).toBeLessThan(128 * MiB)
  await db('contents').update({ owned_at: null })
  await store.remove([content.id])
})
