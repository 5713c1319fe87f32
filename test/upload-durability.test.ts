import { createHash, randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command, ListPartsCommand } from '@aws-sdk/client-s3'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { documentWorkflowId } from '../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { relayVariables, startRelayProcess, wireTo, type RelayProcess } from './support/relay-process.ts'
import { startS3Server, type S3Server } from './support/s3-server.ts'
import { startTcpProxy, type TcpProxy } from './support/tcp-proxy.ts'
import { startTemporalDevServer } from './support/temporal.ts'
import { until } from './support/until.ts'

// A worker is killed, or stopped, in the midst of a large upload; the next one goes on with the parts that lie there.

const MiB = 1024 * 1024
const sizeBytes = 64 * MiB

let env: TestWorkflowEnvironment
let database: TestDatabase
let store: S3Server
const processes: RelayProcess[] = []
const proxies: TcpProxy[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  env = await startTemporalDevServer()
  store = await startS3Server()
})
afterAll(async () => {
  await store.stop()
  await env.teardown()
  await database.drop()
})
afterEach(async () => {
  for (const running of processes.splice(0)) await running.kill().catch(() => undefined)
  for (const proxy of proxies.splice(0)) await proxy.stop()
})

const start = async (verb: 'api' | 'worker') => {
  const running = await startRelayProcess(verb, {
    ...relayVariables(database, env.address),
    DELIVERY_HEARTBEAT_TIMEOUT_MS: '2000',
    RELAY_SHUTDOWN_GRACE_MS: '500',
  })
  processes.push(running)
  return running
}

const configAt = (port: number) => ({
  bucket: store.bucket,
  region: 'us-east-1',
  endpoint: `http://127.0.0.1:${port}`,
  path_style: true,
})

const Bucket = 'documents'
const uploads = async () => (await store.client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []
const partsThere = async () => {
  const [upload] = await uploads()
  if (!upload) return 0
  const { Parts = [] } = await store.client.send(new ListPartsCommand({ Bucket, Key: upload.Key, UploadId: upload.UploadId }))
  return Parts.length
}

/** A document of 64 MiB whose upload has come to a halt past its middle, because the network has. */
const haltedUpload = async () => {
  const proxy = await startTcpProxy(store.port, { kind: 'stall', afterBytes: 44 * MiB })
  proxies.push(proxy)
  const credentials = { access_key_id: store.accessKeyId, secret_access_key: store.secretAccessKey }
  const { workspaceId, workspaceSlug, destinationId } = await wireTo(database, 'objstore', configAt(proxy.port), credentials)
  const api = await start('api')
  const worker = await start('worker')
  const body = randomBytes(sizeBytes)
  const response = await fetch(`${api.baseUrl}/receiver/acme/${workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=LARGE&compId=data`, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body,
  })
  expect(response.status).toBe(201)
  await until('parts', partsThere, (parts) => parts >= 3)
  // the parts in flight have come to their halt once no more of them come, and a heartbeat has been sent by then
  let [kept, since] = [0, Date.now()]
  await until('the halt', async () => {
    const parts = await partsThere()
    if (parts !== kept) [kept, since] = [parts, Date.now()]
    return Date.now() - since > 1_500
  })
  expect(kept).toBeLessThan(8)
  // the network is mended
  await database
    .db('destinations')
    .where({ id: destinationId })
    .update({ config: JSON.stringify(configAt(store.port)) })
  return { workspaceId, worker, body, kept }
}

const delivered = async (workspaceId: string, body: Buffer) => {
  const documentOf = () =>
    database.db('documents').where({ workspace_id: workspaceId }).first<{ id: string; status: string }>('id', 'status')
  const { id } = await until('the delivery', documentOf, (document) => document?.status === 'delivered')
  await env.client.workflow.getHandle(documentWorkflowId(id)).result()
  const { Contents = [] } = await store.client.send(new ListObjectsV2Command({ Bucket, Prefix: 'Z1/LARGE' }))
  expect(Contents.map(({ Size }) => Size)).toEqual([sizeBytes])
  const { Body } = await store.client.send(new GetObjectCommand({ Bucket, Key: Contents[0]!.Key }))
  const hash = createHash('sha256')
  for await (const chunk of Body as Readable) hash.update(chunk as Buffer)
  expect(hash.digest('hex')).toBe(createHash('sha256').update(body).digest('hex'))
  expect(await uploads()).toEqual([])
  return database
    .db('delivery_attempts')
    .where({ document_id: id })
    .orderBy('number')
    .select<{ outcome: string; bytes_sent: string }[]>('outcome', 'bytes_sent')
}

describe('an upload of 64 MiB', () => {
  it('goes on after kill -9 of its worker, and the lost attempt is on record', async () => {
    const { workspaceId, worker, body, kept } = await haltedUpload()
    await worker.kill()
    await start('worker')
    const attempts = await delivered(workspaceId, body)
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['interrupted', 'delivered'])
    expect(Number(attempts[1]!.bytes_sent)).toBe(sizeBytes - kept * 8 * MiB)
  }, 300_000)

  it('goes on after its worker was stopped, and that costs no attempt', async () => {
    const { workspaceId, worker, body, kept } = await haltedUpload()
    expect(await worker.stop()).toBe(0)
    expect(await partsThere()).toBe(kept)
    await start('worker')
    const attempts = await delivered(workspaceId, body)
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['delivered'])
    expect(Number(attempts[0]!.bytes_sent)).toBe(sizeBytes - kept * 8 * MiB)
  }, 300_000)
})
