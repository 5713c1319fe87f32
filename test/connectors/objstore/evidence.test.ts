import { gzipSync } from 'node:zlib'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startHttpTarget, type Arrival } from '../../support/http-target.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

const objstore = createObjstore(createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const server = await startHttpTarget()
afterAll(async () => {
  await outbound.close()
  await server.stop()
})

interface Answer {
  status: number
  headers?: Record<string, string>
  body?: string | Buffer
}
type Command = 'put' | 'create' | 'part' | 'complete' | 'abort' | 'tag' | 'tags' | 'head'

const commandOf = ({ method, url }: Arrival): Command => {
  if (method === 'HEAD') return 'head'
  if (url.includes('tagging')) return method === 'GET' ? 'tags' : 'tag'
  if (method === 'DELETE') return 'abort'
  if (method === 'POST') return url.includes('uploads') ? 'create' : 'complete'
  return url.includes('partNumber') ? 'part' : 'put'
}

const xml = { 'content-type': 'application/xml' }
/** What a store answers. */
const usual: Record<Command, Answer> = {
  put: { status: 200, headers: { etag: '"e"' } },
  create: {
    status: 200,
    headers: xml,
    body: '<?xml version="1.0"?><InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>',
  },
  part: { status: 200, headers: { etag: '"p"' } },
  complete: {
    status: 200,
    headers: xml,
    body: '<?xml version="1.0"?>\n<CompleteMultipartUploadResult><ETag>"e-2"</ETag></CompleteMultipartUploadResult>',
  },
  abort: { status: 204 },
  tag: { status: 200 },
  tags: { status: 200, headers: xml, body: '<?xml version="1.0"?><Tagging><TagSet/></Tagging>' },
  head: { status: 404 },
}
const answerWith = (odd: Partial<Record<Command, Answer>>) => {
  server.answerWith((arrival, response) => {
    const { status, headers = {}, body } = { ...usual, ...odd }[commandOf(arrival)]
    response.writeHead(status, headers).end(body)
  })
}

const target = () => ({
  config: objstore.config.parse({ bucket: 'documents', region: 'us-east-1', endpoint: server.origin, path_style: true }),
  credentials: objstore.credentials.parse({ access_key_id: 'key', secret_access_key: 'secret' }),
})
const small = () => payloadOf(Buffer.from('x'))
const large = () => largePayload(9 * MiB)
const deliver = (payload = small()) => objstore.deliver(payload, target(), contextOf(outbound))

const html = { 'content-type': 'text/html; charset=utf-8' }
const page = '<!DOCTYPE html><html><title>Sign in</title></html>'
/** Answers of something that is no store. */
const strange: [string, Answer][] = [
  ['a page', { status: 200, headers: html, body: page }],
  ['a page with an ETag', { status: 200, headers: { ...html, etag: '"of-the-page"' }, body: page }],
  ['a page of XHTML with an ETag', { status: 200, headers: { etag: '"of-the-page"' }, body: `<?xml version="1.0"?>\n${page}` }],
  ['a text with a weak ETag', { status: 200, headers: { 'content-type': 'text/plain', etag: 'W/"2-x"' }, body: 'OK' }],
  ['a JSON object with an ETag', { status: 201, headers: { 'content-type': 'application/json', etag: 'W/"b"' }, body: '{"ok":true}' }],
  ['a page with 202', { status: 202, headers: html, body: page }],
  ['a page with 206', { status: 206, headers: html, body: page }],
  ['204', { status: 204 }],
  ['an empty 200', { status: 200 }],
  ['an empty ETag', { status: 200, headers: { etag: '' } }],
  ['an ETag of quotation marks', { status: 200, headers: { etag: '""' } }],
  ['a weak ETag that is empty', { status: 200, headers: { etag: 'W/""' } }],
  ['a script with an ETag', { status: 200, headers: { etag: '"e"' }, body: '<script>location = "/login"</script>' }],
  [
    'a part of a page with an ETag',
    { status: 200, headers: { etag: '"e"' }, body: '<!-- portal -->\n<META http-equiv="refresh"><BODY></BODY>' },
  ],
  [
    'an error with an ETag',
    { status: 200, headers: { ...xml, etag: '"e"' }, body: '<?xml version="1.0"?>\n<Error><Code>SlowDown</Code></Error>' },
  ],
  ['a compressed page with an ETag', { status: 200, headers: { ...html, etag: '"e"', 'content-encoding': 'gzip' }, body: gzipSync(page) }],
  ['XML that says nothing', { status: 200, headers: xml, body: '<?xml version="1.0"?><Welcome/>' }],
  ['XML that breaks off', { status: 200, headers: xml, body: '<?xml version="1.0"?><Initi' }],
]

describe.each(strange)('%s', (name, answer) => {
  test.each<[Command, () => ReturnType<typeof small>]>([
    ['put', small],
    ['create', large],
    ['part', large],
    ['complete', large],
  ])('to %s is a failed attempt', async (command, payloadFor) => {
    // The ETag of the result is in the body.
    answerWith({ [command]: answer })
    const error = await failure(deliver(payloadFor()))
    // The SDK itself takes an empty body for the end of a store that has already sent its status.
    const isAborted = command === 'complete' && !answer.body
    expect(error).toMatchObject({ code: isAborted ? 'http_503' : 'answer_unreadable', permanent: false })
    if (!isAborted) expect(error.answer).toMatchObject({ status: answer.status })
    if (name === 'a page') expect(error.answer?.body).toBe(page)
    expect(error.message).not.toContain('$response')
  })

  test('to the start of an upload fails the test of the destination', async () => {
    answerWith({ create: answer })
    expect(await failure(objstore.probe(target(), contextOf(outbound)))).toMatchObject({ code: 'answer_unreadable' })
  })
})

test.each<[string, Answer]>([
  ['an empty body of type text/html, as Google Cloud Storage and Swift send', { status: 200, headers: { ...html, etag: '"e"' } }],
  ['an ETag without quotation marks', { status: 200, headers: { etag: 'e' } }],
  ['201', { status: 201, headers: { etag: '"e"' } }],
  ['an XML body', { status: 200, headers: { ...xml, etag: '"e"' }, body: '\n<PutObjectResponse></PutObjectResponse>' }],
  ['no headers besides', { status: 200, headers: { etag: '"e"' } }],
])('a store that answers with an ETag and %s has stored the document', async (_, put) => {
  answerWith({ put })
  expect((await deliver()).answer).toMatchObject({ status: put.status, etag: put.headers?.etag })
})

test('tags that need a request of their own do not fail a document that is stored', async () => {
  const properties = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`name${index}`, 'ü'.repeat(200)]))
  const payload = () => payloadOf(Buffer.from('x'), { properties })
  answerWith({ tag: { status: 403, headers: xml, body: '<Error><Code>AccessDenied</Code><Message>no</Message></Error>' } })
  const result = await deliver(payload())
  expect(result).toMatchObject({ answer: { etag: '"e"' } })
  expect(result.propertiesError).toMatch(/s3:PutObjectTagging/)
  answerWith({ tag: { status: 200, headers: html, body: page } })
  expect((await deliver(payload())).propertiesError).toMatch(/no store sends/)
  answerWith({})
  expect((await deliver(payload())).propertiesError).toBeUndefined()
})

test('an answer that describes no object says nothing about a refused one', async () => {
  const refusal = { status: 403, headers: xml, body: '<Error><Code>AccessDenied</Code><Message>Object is WORM protected</Message></Error>' }
  answerWith({ put: refusal, head: { status: 200, headers: html } })
  expect(await failure(deliver())).toMatchObject({ code: 'answer_unreadable', permanent: false })
})

test('the tags of others are not replaced before they are known', async () => {
  const payload = payloadOf(Buffer.from('x'), { properties: { vendor: 'Acme' } })
  const copy = { ...payload, location: `s3://documents/${payload.path}`, foundAt: new Date() }
  const update = () => objstore.updateMetadata!(copy, target(), contextOf(outbound))
  for (const tags of [{ status: 200 }, { status: 200, headers: html, body: page }, { status: 200, headers: xml, body: '<Tagging/>' }]) {
    answerWith({ tags })
    const before = server.arrivals.length
    expect(await failure(update())).toMatchObject({ code: 'answer_unreadable', permanent: false })
    expect(server.arrivals.length).toBe(before + 1)
  }
  answerWith({})
  await update()
})

test('an upload that is unknown because a gateway has completed it twice', async () => {
  const payload = large()
  const metadata = { 'x-amz-meta-sha256': payload.sha256, 'x-amz-meta-delivery-id': payload.deliveryId }
  const unknown = {
    status: 404,
    headers: xml,
    body: '<Error><Code>NoSuchUpload</Code><Message>The upload does not exist.</Message></Error>',
  }
  const stored = { etag: '"e-2"', 'content-length': String(payload.sizeBytes) }
  answerWith({ complete: unknown, abort: unknown, head: { status: 200, headers: { ...stored, ...metadata } } })
  expect(await deliver(payload)).toMatchObject({ bytesSent: 0, answer: { etag: '"e-2"' } })
  answerWith({ complete: unknown, abort: unknown, head: { status: 200, headers: stored } })
  expect(await failure(deliver(payload))).toMatchObject({ code: 'http_404', permanent: false })
  answerWith({ complete: unknown, abort: unknown })
  expect(await failure(deliver(payload))).toMatchObject({ code: 'http_404', permanent: false })
})
