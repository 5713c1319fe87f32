import { createHash, randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command, ListPartsCommand } from '@aws-sdk/client-s3'
import { documentWorkflowId } from '../workflows/ids.ts'
import { documentKeyOf } from './support/factories.ts'
import { createInstallation } from './support/installation.ts'
import { routeTo, saveTarget } from './support/relay-process.ts'
import { startS3Server } from './support/s3-server.ts'
import { share } from './support/share.ts'
import { startTcpProxy } from './support/tcp-proxy.ts'
import { until } from './support/until.ts'

// A worker is killed or stopped during a large upload. The next worker continues with the parts that are already stored.

const MiB = 1024 * 1024
const sizeBytes = 64 * MiB

const store = share(await startS3Server())
const { database, env, start, killAll } = share(await createInstallation({ RELAY_SHUTDOWN_GRACE_MS: '500' }))

const usualHeartbeatTimeoutMs = 20_000
const startWith = (verb: 'api' | 'worker', heartbeatTimeoutMs: number) =>
  start(verb, { DELIVERY_HEARTBEAT_TIMEOUT_MS: String(heartbeatTimeoutMs) })

// The default is 10 seconds.
const settings = { retry_initial_interval_seconds: 1 }
const configAt = (port: number) => ({
  bucket: store.bucket,
  region: 'us-east-1',
  endpoint: `http://127.0.0.1:${port}`,
  path_style: true,
})

const Bucket = 'documents'
const uploads = async () => (await store.client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []
const partNumbers = async () => {
  const [upload] = await uploads()
  if (!upload) return []
  const { Parts = [] } = await store.client.send(new ListPartsCommand({ Bucket, Key: upload.Key, UploadId: upload.UploadId }))
  return Parts.map(({ PartNumber }) => PartNumber!)
}
const countParts = async () => (await partNumbers()).length

/** Starts the upload of 64 MiB through a network that stalls after 44 MiB, waits until the upload stalls, and repairs the network. */
const stallUpload = async (heartbeatTimeoutMs = usualHeartbeatTimeoutMs) => {
  const proxy = await startTcpProxy(store.port, { kind: 'stall', afterBytes: 44 * MiB })
  const credentials = { access_key_id: store.accessKeyId, secret_access_key: store.secretAccessKey }
  const { workspaceId, destinationId, send } = await routeTo(database, 'objstore', configAt(proxy.port), credentials, settings)
  // The API pins the timeout when it receives the document.
  const api = await startWith('api', heartbeatTimeoutMs)
  const worker = await startWith('worker', heartbeatTimeoutMs)
  const body = randomBytes(sizeBytes)
  await send(api, 'LARGE', body)
  await until('at least 3 parts are stored', countParts, (parts) => parts >= 3)
  // Parts in flight are stored within 1.5 s after the network has stalled, and a heartbeat is sent.
  let [storedParts, since] = [0, Date.now()]
  await until('the number of stored parts does not change', async () => {
    const parts = await countParts()
    if (parts !== storedParts || !proxy.hasFaulted()) [storedParts, since] = [parts, Date.now()]
    return Date.now() - since > 1_500
  })
  expect(storedParts).toBeLessThan(8)
  // Four parts are sent at a time, and on a busy machine a later one may be stored before an earlier one. What follows the first gap is sent
  // again.
  const numbers = await partNumbers()
  const keptParts = numbers.filter((number, index) => number === index + 1).length
  expect(keptParts).toBeGreaterThan(0)
  await saveTarget(database.db, { workspaceId, id: destinationId }, 'objstore', configAt(store.port), credentials)
  return {
    workspaceId,
    worker,
    body,
    storedParts,
    keptParts,
    [Symbol.asyncDispose]: async () => {
      await killAll()
      await proxy.stop()
    },
  }
}

/** Waits for the delivery and checks the object and the uploads of the store. @returns the recorded attempts */
const untilDelivered = async (workspaceId: string, body: Buffer) => {
  const documentOf = () =>
    database.db('documents').where({ workspace_id: workspaceId }).first<{ id: string; status: string }>('id', 'status')
  const { id } = await until('the document is delivered', documentOf, (document) => document?.status === 'delivered')
  await env.client.workflow.getHandle(documentWorkflowId(await documentKeyOf(database.db, id))).result()
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
  test('continues after its worker is killed, and the interrupted attempt is recorded', async () => {
    // The loss of the worker is noticed after the timeout.
    await using upload = await stallUpload(5_000)
    const { workspaceId, worker, body, keptParts } = upload
    await worker.kill()
    await startWith('worker', usualHeartbeatTimeoutMs)
    const attempts = await untilDelivered(workspaceId, body)
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['interrupted', 'delivered'])
    expect(Number(attempts[1]!.bytes_sent)).toBe(sizeBytes - keptParts * 8 * MiB)
  }, 300_000)

  test('continues after its worker is stopped, and the interrupted attempt is recorded', async () => {
    await using upload = await stallUpload()
    const { workspaceId, worker, body, storedParts, keptParts } = upload
    expect(await worker.stop()).toBe(0)
    expect(await countParts()).toBe(storedParts)
    await startWith('worker', usualHeartbeatTimeoutMs)
    const attempts = await untilDelivered(workspaceId, body)
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['interrupted', 'delivered'])
    expect(Number(attempts[1]!.bytes_sent)).toBe(sizeBytes - keptParts * 8 * MiB)
  }, 300_000)
})
