import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  NotFound,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { newId } from '../base/ids.ts'
import { requireStoreAnswers } from '../base/s3-answers.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { limitSilence, readWithinSilence, storeSilenceMs } from './s3-silence.ts'
import {
  clampRange,
  discardWithBytes,
  insertUnownedContent,
  measure,
  removeWithBytes,
  storeFailed,
  unownedContent,
  type ByteRange,
  type Content,
  type ContentStore,
  type NotRemoved,
  type RemoveBytes,
} from './store.ts'

export type S3StoreConfig = Pick<
  Config,
  | 'CONTENT_S3_REGION'
  | 'CONTENT_S3_ENDPOINT'
  | 'CONTENT_S3_PATH_STYLE'
  | 'CONTENT_S3_PREFIX'
  | 'CONTENT_S3_ACCESS_KEY_ID'
  | 'CONTENT_S3_SECRET_ACCESS_KEY'
> & { CONTENT_S3_BUCKET: string }

// S3 accepts at most 10,000 parts, hence contents of at most 78 GiB.
const partBytes = 8 * 1024 * 1024
const partsInFlight = 2
const connectTimeoutMs = 5_000
// A firewall may forget a connection that is idle, and say nothing: a request would find a silent store.
const idleMaxMs = 30_000
// The readers of slow clients hold their connections. With the 50 of the SDK, they would keep others waiting, which then fail after the time to
// connect.
const maxSockets = 1_000
// The second attempt is for a kept-alive connection that the store has closed. Callers retry everything else.
const maxAttempts = 2
const deleteBatch = 1_000
// Requests for the sizes of objects that are open at a time.
const sizeRequests = 16

/**
 * Stores each content as one object in a bucket. The row in `contents` is written before the object and deleted together with it, so
 * every object has a row. A lifecycle rule of the bucket should remove the parts of uploads that were aborted with their process.
 */
export const createS3Store = (db: Database, config: S3StoreConfig, { silenceMs = storeSilenceMs } = {}): ContentStore => {
  const client = openS3(config, { silenceMs })
  const bucket = { Bucket: config.CONTENT_S3_BUCKET }
  const keyOf = (contentId: string) => config.CONTENT_S3_PREFIX + contentId

  const deleteObjects: RemoveBytes = async (contentIds, abortSignal) => {
    const kept: NotRemoved[] = []
    for (let next = 0; next < contentIds.length; next += deleteBatch) {
      const Objects = contentIds.slice(next, next + deleteBatch).map((id) => ({ Key: keyOf(id) }))
      const request = new DeleteObjectsCommand({ ...bucket, Delete: { Objects, Quiet: true } })
      const { Errors = [] } = await client.send(request, { ...(abortSignal && { abortSignal }) }).catch((thrown: unknown) => {
        throw storeFailed('remove', thrown)
      })
      for (const { Key = '', Code, Message } of Errors) {
        kept.push({ id: Key.slice(config.CONTENT_S3_PREFIX.length), reason: [Code, Message].filter(Boolean).join(': ') })
      }
    }
    return kept
  }

  const discard = (id: string) => discardWithBytes(db, id, deleteObjects)

  /** Sends the requests of one upload. The first one that fails ends the others, and the upload with them. */
  const upload = async (key: string, source: Readable): Promise<void> => {
    const failed = new AbortController()
    const send = async (command: Parameters<typeof client.send>[0]) => {
      // It follows a failure, and the upload does not wait for it.
      if (command instanceof AbortMultipartUploadCommand) return client.send(command)
      try {
        return await client.send(command, { abortSignal: failed.signal })
      } catch (thrown) {
        failed.abort(thrown)
        throw thrown
      }
    }
    const params = { ...bucket, Key: key, Body: source }
    const sender = Object.assign(Object.create(client) as S3Client, { send })
    try {
      await new Upload({ client: sender, params, partSize: partBytes, queueSize: partsInFlight, abortController: failed }).done()
    } catch (thrown) {
      throw failed.signal.aborted ? failed.signal.reason : thrown
    }
  }

  const sizeOfObject = async (contentId: string) => {
    try {
      return (await client.send(new HeadObjectCommand({ ...bucket, Key: keyOf(contentId) }))).ContentLength
    } catch (thrown) {
      if (thrown instanceof NotFound) return undefined
      throw thrown
    }
  }

  async function* readObject(content: Content, signal: AbortSignal, byteRange?: ByteRange) {
    const range = clampRange(content, byteRange)
    if (!range) return
    const wanted = new GetObjectCommand({ ...bucket, Key: keyOf(content.id), Range: `bytes=${range.start}-${range.end}` })
    try {
      const { Body } = await client.send(wanted, { abortSignal: signal })
      yield* readWithinSilence(Body as Readable, silenceMs)
    } catch (thrown) {
      throw storeFailed('read', thrown)
    }
  }

  return {
    kind: 's3',

    write: async (workspaceId, source) => {
      const id = newId()
      const measured = measure(source)
      await insertUnownedContent(db, { id, workspaceId, store: 's3' })
      try {
        await upload(keyOf(id), Readable.from(measured.source))
      } catch (thrown) {
        await discard(id)
        const sourceError = measured.sourceError()
        if (sourceError) throw sourceError.thrown
        throw storeFailed('store', thrown)
      }
      return unownedContent({ id, ...measured.result() }, discard)
    },

    read: (content, range) => {
      const closed = new AbortController()
      const stream = Readable.from(readObject(content, closed.signal, range), { objectMode: false })
      return stream.once('close', () => closed.abort())
    },

    sizesOf: async (contentIds) => {
      const sizes = new Map<string, number>()
      for (let next = 0; next < contentIds.length; next += sizeRequests) {
        const batch = contentIds.slice(next, next + sizeRequests)
        await Promise.all(
          batch.map(async (id) => {
            const bytes = await sizeOfObject(id)
            if (bytes !== undefined) sizes.set(id, bytes)
          }),
        )
      }
      return sizes
    },

    remove: (contentIds, signal) => removeWithBytes(db, contentIds, deleteObjects, signal),
  }
}

/** Opens a client of the store. @param how.isAnonymous true to send requests without a signature */
export const openS3 = (config: S3StoreConfig, { isAnonymous = false, silenceMs = storeSilenceMs } = {}): S3Client => {
  const options: S3ClientConfig = {
    region: config.CONTENT_S3_REGION,
    forcePathStyle: config.CONTENT_S3_PATH_STYLE,
    maxAttempts,
    // The relay keeps its own SHA-256, and many stores other than AWS do not support CRC checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      // Requests have limits of their own.
      socketTimeout: 0,
      httpAgent: { timeout: idleMaxMs, maxSockets },
      httpsAgent: { timeout: idleMaxMs, maxSockets },
    },
  }
  if (config.CONTENT_S3_ENDPOINT) options.endpoint = config.CONTENT_S3_ENDPOINT
  if (config.CONTENT_S3_ACCESS_KEY_ID && config.CONTENT_S3_SECRET_ACCESS_KEY) {
    options.credentials = { accessKeyId: config.CONTENT_S3_ACCESS_KEY_ID, secretAccessKey: config.CONTENT_S3_SECRET_ACCESS_KEY }
  }
  if (isAnonymous) options.signer = { sign: (request) => Promise.resolve(request) }
  const client = new S3Client(options)
  // A status alone does not show that the bytes are stored, which a source system deletes as soon as they are acknowledged.
  requireStoreAnswers(client)
  limitSilence(client, silenceMs)
  return client
}
