import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { GetObjectCommand, GetObjectTaggingCommand } from '@aws-sdk/client-s3'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

const objstore = createObjstore(createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const server = await startS3Server()
afterAll(async () => {
  await server.stop()
  await outbound.close()
})

const target = (port: number) => ({
  config: objstore.config.parse({ bucket: server.bucket, region: 'us-east-1', endpoint: `http://127.0.0.1:${port}`, path_style: true }),
  credentials: objstore.credentials.parse({ access_key_id: server.accessKeyId, secret_access_key: server.secretAccessKey }),
})
const refusal = (code: string, message: string, status = 400) => ({
  status,
  headers: { 'content-type': 'application/xml' },
  body: `<Error><Code>${code}</Code><Message>${message}</Message></Error>`,
})
const checksumsOf = ({ headers }: IncomingMessage) => Object.keys(headers).filter((name) => /^x-amz-(?:checksum|sdk-checksum)/.test(name))
const isUpload = ({ method }: IncomingMessage, { searchParams }: URL) => method === 'PUT' && !searchParams.has('tagging')
const storedDigest = async (path: string) => {
  const { Body } = await server.client.send(new GetObjectCommand({ Bucket: server.bucket, Key: path }))
  return createHash('sha256')
    .update(await Body!.transformToByteArray())
    .digest('hex')
}
// Tags that need a request of their own, and a document that needs several.
const tags = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`name${index}`, '='.repeat(200)]))
const payloads = () => [payloadOf(Buffer.from('0123456789'), { properties: tags }), largePayload(12 * MiB), payloadOf(Buffer.alloc(0))]

describe('a store behind an endpoint', () => {
  test.each([
    ['refuses the headers of checksums', 400, 'InvalidArgument'],
    ['does not implement checksums', 501, 'NotImplemented'],
  ])('that %s gets every document, with tags', async (_, status, code) => {
    await using store = await startRefusingStore(server.port, (request) =>
      checksumsOf(request).length > 0
        ? refusal(code, `Unsupported header '${checksumsOf(request)[0]}' received for this API call.`, status)
        : undefined,
    )
    for (const payload of payloads()) {
      const result = await objstore.deliver(payload, target(store.port), contextOf(outbound))
      expect(result.propertiesError).toBeUndefined()
      expect(await storedDigest(payload.path)).toBe(payload.sha256)
      if (Object.keys(payload.properties).length > 0) {
        const { TagSet } = await server.client.send(new GetObjectTaggingCommand({ Bucket: server.bucket, Key: payload.path }))
        expect(TagSet).toHaveLength(10)
      }
    }
  })

  test('whose Object Lock demands a digest gets every document, and is asked once', async () => {
    let refused = 0
    await using store = await startRefusingStore(server.port, (request, url) => {
      if (!isUpload(request, url) || request.headers['content-md5'] !== undefined || checksumsOf(request).length > 0) return undefined
      refused += 1
      return refusal('InvalidRequest', 'Missing required header for this request: Content-MD5 OR x-amz-checksum-*')
    })
    for (const payload of payloads()) {
      await objstore.deliver(payload, target(store.port), contextOf(outbound))
      expect(await storedDigest(payload.path)).toBe(payload.sha256)
    }
    expect(refused).toBe(1)
  })

  test('gets no question whether it wants the body', async () => {
    await using store = await startRefusingStore(server.port, ({ headers }) => (headers.expect === undefined ? undefined : { status: 417 }))
    for (const payload of [largePayload(3 * MiB), largePayload(12 * MiB)]) {
      expect(await objstore.deliver(payload, target(store.port), contextOf(outbound))).toMatchObject({ bytesSent: payload.sizeBytes })
    }
  })

  test('checks the digest that the request is signed with', async () => {
    const payload = payloadOf(Buffer.from('0123456789'))
    const other = { ...payload, sha256: createHash('sha256').update('another').digest('hex') }
    const error = await failure(objstore.deliver(other, target(server.port), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'http_400', permanent: false, message: expect.stringMatching(/SHA256Mismatch/) as string })
  })
})
