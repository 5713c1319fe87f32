import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { GetObjectCommand, ListMultipartUploadsCommand, ListPartsCommand, PutObjectCommand, type MultipartUpload } from '@aws-sdk/client-s3'
import { DeliveryError, Interruption, type DeliveryResult, type Payload } from '../../../src/connectors/connector.ts'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { fullOr } from '../../support/full-run.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { until } from '../../support/until.ts'
import { contextOf, failure, largePayload, MiB, pausedAt } from '../payloads.ts'

const uploadBytes = fullOr(40, 20) * MiB
const objstore = createObjstore(createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })

const server = await startS3Server()
afterAll(async () => {
  await server.stop()
  await outbound.close()
})

const target = () => ({
  config: objstore.config.parse({ bucket: server.bucket, region: 'us-east-1', endpoint: server.endpoint, path_style: true }),
  credentials: objstore.credentials.parse({ access_key_id: server.accessKeyId, secret_access_key: server.secretAccessKey }),
})

const uploads = async () => (await server.client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }))).Uploads ?? []

const partsOf = async ({ Key, UploadId }: MultipartUpload = {}) =>
  (await server.client.send(new ListPartsCommand({ Bucket: server.bucket, Key, UploadId }))).Parts ?? []

/** Starts an upload and interrupts it after 60 % of the document. @returns the saved state */
const interruptedUpload = async (payload: Payload, reason: Error = new Interruption()): Promise<unknown> => {
  const stop = new AbortController()
  let saved: unknown
  const context = contextOf(outbound, {
    signal: stop.signal,
    save: (state) => {
      saved = state
    },
  })
  const source = pausedAt(payload, payload.sizeBytes * 0.6, async () => {
    await until('the store has a part', async () => (await partsOf((await uploads())[0])).length > 0)
    stop.abort(reason)
  })
  await expect(objstore.deliver(source, target(), context)).rejects.toThrow(reason.message)
  return saved
}

describe('a multipart upload', () => {
  test('stays at the store when the worker stops, and resumes after its parts', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interruptedUpload(payload)
    expect(await uploads()).toHaveLength(1)

    const result = await objstore.deliver(payload, target(), contextOf(outbound, { saved }))

    expect(result.bytesSent).toBeLessThanOrEqual(uploadBytes - 8 * MiB)
    expect(result.bytesSent).toBeGreaterThan(0)
    expect(await uploads()).toEqual([])
  })

  test('is aborted when the delivery is cancelled', async () => {
    await interruptedUpload(largePayload(uploadBytes), new Error('cancelled'))
    expect(await uploads()).toEqual([])
  })

  describe('goes on after an error that passes', () => {
    const xml = { 'content-type': 'application/xml' }
    const refusal = (status: number, code: string) => ({
      status,
      headers: xml,
      body: `<Error><Code>${code}</Code><Message>no</Message></Error>`,
    })
    const at = (port: number) => ({ ...target(), config: { ...target().config, endpoint: `http://127.0.0.1:${port}` } })
    const isPart = (request: IncomingMessage, url: URL) => request.method === 'PUT' && url.searchParams.has('partNumber')
    /** Attempts as the workflow makes them: each gets what the last one has saved. @returns the failures before the success */
    const attempts = async (payload: Payload, port: number) => {
      let saved: unknown
      const errors: DeliveryError[] = []
      for (;;) {
        const context = contextOf(outbound, { saved, save: (state) => void (saved = state) })
        const result = await objstore
          .deliver({ ...payload, attempt: errors.length + 1 }, at(port), context)
          .catch((thrown: unknown) => thrown)
        if (!(result instanceof DeliveryError)) return { errors, result: result as DeliveryResult }
        errors.push(result)
        if (errors.length > 10) throw new Error(JSON.stringify(errors.map((e) => e.message)))
      }
    }
    const stored = async (payload: Payload) => {
      const { Body } = await server.client.send(new GetObjectCommand({ Bucket: server.bucket, Key: payload.path }))
      const hash = createHash('sha256')
      for await (const chunk of Body as Readable) hash.update(chunk as Buffer)
      return hash.digest('hex')
    }

    test('160 MiB with every 13th part refused arrive, and what is sent is at most 1.2 times as much', async () => {
      let parts = 0
      await using store = await startRefusingStore(server.port, (request, url) => {
        if (!isPart(request, url)) return undefined
        parts += 1
        return parts % 13 === 0 ? refusal(503, 'SlowDown') : undefined
      })
      const payload = largePayload(160 * MiB)
      const { errors } = await attempts(payload, store.port)
      expect(errors.map(({ code }) => code)).toEqual(['http_503'])
      expect(store.receivedBytes()).toBeLessThanOrEqual(1.06 * payload.sizeBytes)
      expect(store.requests.filter((line) => line.startsWith('POST') && line.includes('uploads'))).toHaveLength(1)
      expect(await stored(payload)).toBe(payload.sha256)
      expect(await uploads()).toEqual([])
    })

    test.each<[string, (request: IncomingMessage, url: URL, nth: number) => boolean]>([
      ['the list of parts', (request, _url, nth) => request.method === 'GET' && nth === 1],
      ['the completion', (request, url, nth) => request.method === 'POST' && url.searchParams.has('uploadId') && nth === 1],
    ])('%s', async (_what, isRefused) => {
      let partsRefused = 0
      let others = 0
      await using store = await startRefusingStore(server.port, (request, url) => {
        if (isPart(request, url)) {
          partsRefused += 1
          return partsRefused === 2 ? refusal(500, 'InternalError') : undefined
        }
        if (!isRefused(request, url, others + 1)) return undefined
        others += 1
        return refusal(503, 'SlowDown')
      })
      const payload = largePayload(24 * MiB)
      const { errors } = await attempts(payload, store.port)
      expect(errors.map(({ code }) => code)).toEqual(['http_500', 'http_503'])
      expect(store.receivedBytes()).toBeLessThan(payload.sizeBytes + 9 * MiB)
      expect(await stored(payload)).toBe(payload.sha256)
      expect(await uploads()).toEqual([])
    })

    test('an upload that gets nowhere three times begins again', async () => {
      let completions = 0
      await using store = await startRefusingStore(server.port, (request, url) => {
        const isCompletion = request.method === 'POST' && url.searchParams.has('uploadId')
        if (!isCompletion) return undefined
        completions += 1
        return completions <= 4 ? refusal(500, 'InternalError') : undefined
      })
      const payload = largePayload(9 * MiB)
      const { errors } = await attempts(payload, store.port)
      expect(errors).toHaveLength(4)
      expect(store.requests.filter((line) => line.startsWith('POST') && line.includes('uploads'))).toHaveLength(2)
      expect(await uploads()).toEqual([])
    })

    test('but not after the last attempt', async () => {
      let parts = 0
      await using store = await startRefusingStore(server.port, (request, url) => {
        if (!isPart(request, url)) return undefined
        parts += 1
        return parts === 2 ? refusal(503, 'SlowDown') : undefined
      })
      const context = contextOf(outbound, { isLast: true })
      expect(await failure(objstore.deliver(largePayload(24 * MiB), at(store.port), context))).toMatchObject({ permanent: false })
      expect(await uploads()).toEqual([])
    })

    test.each([
      [400, 'InvalidPart'],
      [403, 'AccessDenied'],
    ])('but not after %i %s', async (status, code) => {
      await using store = await startRefusingStore(server.port, (request, url) =>
        request.method === 'POST' && url.searchParams.has('uploadId') ? refusal(status, code) : undefined,
      )
      await failure(objstore.deliver(largePayload(9 * MiB), at(store.port), contextOf(outbound)))
      expect(await uploads()).toEqual([])
    })
  })

  test('stays at the store when the time of the attempt has passed, and resumes after its parts', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interruptedUpload(payload, new DOMException('the time has passed', 'TimeoutError'))
    expect(await uploads()).toHaveLength(1)
    const result = await objstore.deliver(payload, target(), contextOf(outbound, { saved }))
    expect(result.bytesSent).toBeLessThanOrEqual(uploadBytes - 8 * MiB)
    expect(await uploads()).toEqual([])
  })

  test('that the store has completed counts as delivered, and nothing is sent again', async () => {
    const payload = largePayload(12 * MiB)
    let saved: unknown
    const save = (state: unknown) => {
      saved = state
    }
    const first = await objstore.deliver(payload, target(), contextOf(outbound, { save }))

    const second = await objstore.deliver(
      {
        ...payload,
        open: () => {
          throw new Error('read again')
        },
      },
      target(),
      contextOf(outbound, { saved }),
    )

    expect(second).toMatchObject({ path: first.path, bytesSent: 0, answer: { etag: first.answer?.etag } })
  })

  test('starts again if the store no longer has it and somebody else has stored another object', async () => {
    const payload = largePayload(12 * MiB)
    let saved: unknown
    await objstore.deliver(payload, target(), contextOf(outbound, { save: (state) => void (saved = state) }))
    await server.client.send(new PutObjectCommand({ Bucket: server.bucket, Key: payload.path, Body: 'another' }))
    expect(await objstore.deliver(payload, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 12 * MiB })
  })

  test('is aborted and starts again if the document has been appended to', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interruptedUpload(payload)
    const longer = largePayload(uploadBytes + MiB, { deliveryId: payload.deliveryId, path: payload.path })
    expect(await objstore.deliver(longer, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: uploadBytes + MiB })
    expect(await uploads()).toEqual([])
  })

  test.each([undefined, 'nonsense', { uploadId: 1 }])('starts again if the saved state cannot be parsed: %p', async (saved) => {
    const payload = largePayload(9 * MiB)
    expect(await objstore.deliver(payload, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 9 * MiB })
  })
})
