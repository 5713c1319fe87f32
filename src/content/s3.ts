import { DeleteObjectsCommand, GetObjectCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { Readable } from 'node:stream'
import type { Config } from '../config.ts'
import type { Database } from '../db/database.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import { measure } from './measure.ts'
import { clampRange, type ByteRange } from './range.ts'
import { deleteUnownedContent, insertUnownedContent, ownContent } from './rows.ts'
import type { Content, ContentStore } from './store.ts'

export type S3StoreConfig = Pick<
  Config,
  | 'CONTENT_S3_REGION'
  | 'CONTENT_S3_ENDPOINT'
  | 'CONTENT_S3_PATH_STYLE'
  | 'CONTENT_S3_PREFIX'
  | 'CONTENT_S3_ACCESS_KEY_ID'
  | 'CONTENT_S3_SECRET_ACCESS_KEY'
  | 'CONTENT_S3_CONNECT_TIMEOUT_MS'
  | 'CONTENT_S3_IDLE_TIMEOUT_MS'
> & { CONTENT_S3_BUCKET: string }

// S3 takes at most 10,000 parts: 78 GiB
const partBytes = 8 * 1024 * 1024
const partsInFlight = 2
// a kept-alive connection that the store has closed meanwhile; everything else is retried by who asked
const maxAttempts = 2
const deleteBatch = 1_000

/**
 * Keeps bytes in a bucket, one object a content, and its row in `contents`. The row is written first and deleted together with the
 * object, so no object is ever without one. Parts of an upload that died with its process are for the bucket's lifecycle rule.
 */
export const createS3Store = (db: Database, config: S3StoreConfig): ContentStore => {
  const client = openS3(config)
  const bucket = { Bucket: config.CONTENT_S3_BUCKET }
  const keyOf = (contentId: string) => config.CONTENT_S3_PREFIX + contentId

  const deleteObjects = async (contentIds: string[]) => {
    const Objects = contentIds.map((id) => ({ Key: keyOf(id) }))
    const { Errors } = await client.send(new DeleteObjectsCommand({ ...bucket, Delete: { Objects, Quiet: true } }))
    const failed = Errors?.[0]
    if (failed) throw new Error(`the content store did not remove ${failed.Key}: ${failed.Code}`)
  }

  // what cannot be removed now, the sweep will; a content that is owned after all (an answer to a commit got lost) stays
  const discard = async (id: string) => {
    await db
      .transaction(async (trx) => {
        if (await deleteUnownedContent(trx, id)) await deleteObjects([id])
      })
      .catch(() => {})
  }

  async function* readObject(content: Content, signal: AbortSignal, byteRange?: ByteRange) {
    const range = clampRange(content, byteRange)
    if (!range) return
    const wanted = new GetObjectCommand({ ...bucket, Key: keyOf(content.id), Range: `bytes=${range.start}-${range.end}` })
    const { Body } = await client.send(wanted, { abortSignal: signal })
    yield* Body as Readable
  }

  return {
    kind: 's3',

    write: async (workspaceId, source) => {
      const id = newId()
      const measured = measure(source)
      await insertUnownedContent(db, { id, workspaceId, store: 's3' })
      try {
        const params = { ...bucket, Key: keyOf(id), Body: Readable.from(measured.source) }
        await new Upload({ client, params, partSize: partBytes, queueSize: partsInFlight }).done()
      } catch (thrown) {
        await discard(id)
        const fault = measured.fault()
        if (fault) throw fault.thrown
        throw new AppError('unavailable', 'the content store did not take the bytes', { cause: thrown })
      }
      const content = { id, ...measured.result() }
      return { ...content, own: (trx) => ownContent(trx, content), discard: () => discard(id) }
    },

    read: (content, range) => {
      const left = new AbortController()
      const stream = Readable.from(readObject(content, left.signal, range), { objectMode: false })
      return stream.once('close', () => left.abort())
    },

    remove: async (contentIds) => {
      for (let next = 0; next < contentIds.length; next += deleteBatch) {
        const batch = contentIds.slice(next, next + deleteBatch)
        await db.transaction(async (trx) => {
          await trx('contents').whereIn('id', batch).delete()
          await deleteObjects(batch)
        })
      }
    },
  }
}

const openS3 = (config: S3StoreConfig): S3Client => {
  const options: S3ClientConfig = {
    region: config.CONTENT_S3_REGION,
    forcePathStyle: config.CONTENT_S3_PATH_STYLE,
    maxAttempts,
    // we keep a SHA-256 of our own, and many stores other than AWS know no CRC
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: config.CONTENT_S3_CONNECT_TIMEOUT_MS,
      socketTimeout: config.CONTENT_S3_IDLE_TIMEOUT_MS,
    },
  }
  if (config.CONTENT_S3_ENDPOINT) options.endpoint = config.CONTENT_S3_ENDPOINT
  if (config.CONTENT_S3_ACCESS_KEY_ID && config.CONTENT_S3_SECRET_ACCESS_KEY) {
    options.credentials = { accessKeyId: config.CONTENT_S3_ACCESS_KEY_ID, secretAccessKey: config.CONTENT_S3_SECRET_ACCESS_KEY }
  }
  return new S3Client(options)
}
