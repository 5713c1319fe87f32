// Sends one large document in a process of its own: through a connector, or through the SDK of the connector alone. The parent passes
// the job, and gets the time and the growth of the memory.
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { S3Client } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { BlockBlobClient, StorageSharedKeyCredential } from '@azure/storage-blob'
import ssh2, { type SFTPWrapper } from 'ssh2'
import { request } from 'undici'
import type { Payload } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, largePayload } from '../../test/connectors/payloads.ts'

export interface SendJob {
  kind: 'objstore' | 'blob' | 'sftp' | 'webhook'
  how: 'connector' | 'sdk'
  bytes: number
  config: Record<string, unknown>
  credentials: Record<string, unknown>
}

export interface Sent {
  seconds: number
  growthMiB: number
  /** CPU time by process. */
  cpuSeconds: Record<string, number>
}

type SdkTarget = Record<string, string> & { port: number }

const begin = () => ({ atMs: performance.now(), cpu: process.cpuUsage() })

/** Send a document with nothing but the SDK, with the SDK's own defaults. @returns when sending began, if that was not at once */
const bySdk: Record<SendJob['kind'], (payload: Payload, target: SdkTarget) => Promise<ReturnType<typeof begin> | void>> = {
  objstore: async (payload, { endpoint, region, bucket, access_key_id: accessKeyId, secret_access_key: secretAccessKey }) => {
    const client = new S3Client({
      endpoint: endpoint!,
      region: region!,
      forcePathStyle: true,
      credentials: { accessKeyId: accessKeyId!, secretAccessKey: secretAccessKey! },
      requestChecksumCalculation: 'WHEN_REQUIRED',
    })
    await new Upload({ client, params: { Bucket: bucket!, Key: 'sdk', Body: payload.open() } }).done()
  },
  blob: async (payload, { account_url: accountUrl, container, account_key: accountKey }) => {
    const account = new URL(accountUrl!).pathname.slice(1)
    const client = new BlockBlobClient(`${accountUrl}/${container}/sdk`, new StorageSharedKeyCredential(account, accountKey!))
    await client.uploadStream(payload.open())
  },
  sftp: async (payload, { host, port, username, private_key: privateKey }) => {
    const client = new ssh2.Client()
    const ready = once(client, 'ready')
    client.connect({ host: host!, port, username: username!, privateKey: privateKey! })
    await ready
    const channel = await promisify<SFTPWrapper>((done) => client.sftp((error, opened) => done(error ?? null, opened)))()
    // Its streams wait for the answer to each write, which is 40 times slower.
    const folder = await mkdtemp(join(tmpdir(), 'relay-bench-'))
    const file = join(folder, 'document')
    await pipeline(payload.open(), createWriteStream(file))
    const began = begin()
    await promisify<void>((done) => channel.fastPut(file, 'sdk', (error) => done(error ?? null)))()
    client.end()
    await rm(folder, { recursive: true })
    return began
  },
  webhook: async (payload, { url }) => {
    const { body } = await request(url!, { method: 'POST', body: payload.open(), headers: { 'content-length': String(payload.sizeBytes) } })
    await body.dump()
  },
}

const byConnector = async (payload: Payload, { kind, config, credentials }: SendJob) => {
  const connector = createConnectors().find(kind)!
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
  await connector.deliver(
    payload,
    { config: connector.config.parse(config), credentials: connector.credentials.parse(credentials) },
    contextOf(outbound),
  )
  await outbound.close()
}

const sampleMs = 20
const mebibyte = 2 ** 20

const run = async (job: SendJob) => {
  // The digest is known before a delivery. A small one first: it loads what every delivery needs.
  const small = largePayload(10 * mebibyte)
  const payload = largePayload(job.bytes)
  const send = (content: Payload) =>
    job.how === 'connector' ? byConnector(content, job) : bySdk[job.kind](content, { ...job.config, ...job.credentials } as SdkTarget)
  await send(small)
  const before = process.memoryUsage.rss()
  let peak = before
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), sampleMs)
  const started = begin()
  const began = (await send(payload)) ?? started
  const { user, system } = process.cpuUsage(began.cpu)
  const sent: Sent = {
    seconds: (performance.now() - began.atMs) / 1_000,
    growthMiB: (peak - before) / mebibyte,
    cpuSeconds: { sender: (user + system) / 1e6 },
  }
  clearInterval(timer)
  process.send!(sent, () => process.exit())
}

process.once('message', (job: SendJob) => void run(job))
