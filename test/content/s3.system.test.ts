import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { newId } from '../../src/base/ids.ts'
import { createS3Store } from '../../src/content/s3.ts'
import { createTestDatabase } from '../support/database.ts'
import { startPages } from '../support/pages.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { describeContentStore } from './conformance.ts'
import { s3ConfigOf } from './s3-config.ts'

const server = share(await startS3Server())

describeContentStore('s3', () => ({
  open: (db) => createS3Store(db, s3ConfigOf(server, server.endpoint)),
  stored: async () => {
    const { Contents = [] } = await server.client.send(new ListObjectsV2Command({ Bucket: server.bucket, Prefix: 'relay/' }))
    const { Uploads = [] } = await server.client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }))
    return [...Contents, ...Uploads].map(({ Key }) => Key!.replace('relay/', '')).toSorted()
  },
}))

describe('the s3 content store', () => {
  test.each([
    ['a small content', 1],
    // More parts than are sent at a time, so the source is still being read when the first one fails.
    ['a large content', 40],
  ])('fails with the code unavailable if the bucket cannot be reached: %s', async (_, mebibytes) => {
    const { db, drop } = await createTestDatabase()
    const workspaceId = newId()
    await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
    const store = createS3Store(db, s3ConfigOf(server, 'http://127.0.0.1:1'))
    async function* source() {
      for (let count = 0; count < mebibytes; count += 1) yield Buffer.alloc(1024 * 1024)
    }
    await expect(store.write(workspaceId, source())).rejects.toMatchObject({ code: 'unavailable' })
    // The object may exist. The row remains so that the job remove-orphans removes it.
    expect(await db('contents')).toMatchObject([{ owned_at: null }])
    const unreadable = store.read({ id: newId(), sizeBytes: mebibytes })
    await expect(buffer(unreadable)).rejects.toMatchObject({ code: 'unavailable' })
    await drop()
  })

  test.each([200, 202, 204])('fails with the code unavailable if something in between answers %i with a page', async (status) => {
    const { db, drop } = await createTestDatabase()
    const workspaceId = newId()
    await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
    for (const sizeBytes of [10, 20 * 1024 * 1024]) {
      const pages = await startPages(server.port, status, 'all')
      const store = createS3Store(db, s3ConfigOf(server, `http://127.0.0.1:${pages.port}`))
      await expect(store.write(workspaceId, Readable.from([Buffer.alloc(sizeBytes)]))).rejects.toMatchObject({ code: 'unavailable' })
      await pages.stop()
    }
    // A page that answers the removal must not be taken for one. An answer without a body can be that of a store.
    if (status !== 204) expect(await db('contents')).toHaveLength(2)
    await drop()
  })
})
