// Measures a large document: into the relay by PUT and out again by `get`, beside a plain web server that hashes the same bytes and writes
// them to the same store; and through each connector beside its SDK alone, against the same server. Both of a pair are measured
// alternately, and each is the first in half of the rounds. The goals are 0.8 of the floor, and a growth of memory below 64 MiB.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { Agent, request } from 'undici'
import { newId } from '../src/base/ids.ts'
import { readConfig } from '../src/config/config.ts'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import type { ContentStoreKind } from '../src/domain/content-store.ts'
import type { Rig } from '../test/connectors/rig.ts'
import { startS3Server } from '../test/support/s3-server.ts'
import { findAzurite, findSshd, findVersitygw } from '../test/support/tools.ts'
import type { SendJob, Sent } from './large/send.ts'
import { withInstallation, type Installation } from './support/installation.ts'
import { cpuMsPerUnit } from './support/measure.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { memoryOf, resetPeakMemory, type CpuTimes } from './support/processes.ts'
import { formatRange, printResult, say } from './support/report.ts'
import { commandUrl } from './support/requests.ts'
import { median, mediansOf, rangeOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('large', {
  ...commonOptions,
  mebibytes: { type: 'string' },
  rounds: { type: 'string' },
  only: { type: 'string', default: '' },
})
const mebibyte = 2 ** 20
const bytes = Number(options.mebibytes ?? (options.quick ? 32 : 1_024)) * mebibyte
const rounds = Number(options.rounds ?? (options.quick ? 1 : 4))

interface Pair {
  ours: Sent
  floor: Sent
}

interface Row {
  case: string
  ours_mb_per_second: number
  floor_mb_per_second: number
  /** Ratio of the bytes per second. */
  ratio: { min: number; median: number; max: number }
  growth_mib: number
  /** CPU time of one document by process, in seconds. */
  ours_cpu_seconds: CpuTimes
  floor_cpu_seconds: CpuTimes
}

const perSecond = ({ seconds }: Sent) => bytes / 1e6 / seconds

const rowOf = (name: string, pairs: Pair[]): Row => ({
  case: name,
  ours_mb_per_second: median(pairs.map(({ ours }) => perSecond(ours))),
  floor_mb_per_second: median(pairs.map(({ floor }) => perSecond(floor))),
  ratio: rangeOf(pairs.map(({ ours, floor }) => perSecond(ours) / perSecond(floor))),
  growth_mib: Math.max(...pairs.map(({ ours }) => ours.growthMiB)),
  ours_cpu_seconds: mediansOf(pairs.map(({ ours }) => ours.cpuSeconds)),
  floor_cpu_seconds: mediansOf(pairs.map(({ floor }) => floor.cpuSeconds)),
})

/** Returns the bytes from memory that is allocated once, so that sending them costs little. */
const body = () => {
  const block = Buffer.alloc(256 * 1024, 'incompressible by the store, which does not compress')
  return Readable.from(
    (function* () {
      for (let sent = 0; sent < bytes; sent += block.length) yield block
    })(),
    { objectMode: false },
  )
}

const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })

const transfer = async (
  installation: Installation,
  pid: number,
  method: 'PUT' | 'GET',
  url: string,
  expectedStatus: number,
): Promise<Sent> => {
  resetPeakMemory(pid)
  const { nowMiB } = memoryOf(pid)
  const cpuBefore = installation.cpuTimes()
  const startedAt = performance.now()
  const answer = await request(url, {
    method,
    headers: method === 'PUT' ? { 'content-type': 'application/octet-stream', 'content-length': String(bytes) } : {},
    body: method === 'PUT' ? body() : null,
    dispatcher: agent,
  })
  let received = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) received += chunk.length
  const seconds = (performance.now() - startedAt) / 1_000
  if (answer.statusCode !== expectedStatus || (method === 'GET' && received !== bytes)) {
    throw new Error(`${method} ${url} was answered ${answer.statusCode} with ${received} bytes`)
  }
  return { seconds, growthMiB: memoryOf(pid).peakMiB - nowMiB, cpuSeconds: cpuMsPerUnit(cpuBefore, installation.cpuTimes(), 1_000) }
}

/** Measures both, the floor first in every second round only: the second has to wait for what the first left the store to write. */
const inTurn = async (round: number, measure: Record<'floor' | 'ours', () => Promise<Sent>>): Promise<Pair> => {
  if (round % 2 === 0) return { floor: await measure.floor(), ours: await measure.ours() }
  const ours = await measure.ours()
  return { ours, floor: await measure.floor() }
}

/** Measures the way in and out, with the content in a store. `variables` choose the store of the relay and of the floor. */
const measureStore = async (store: ContentStoreKind, variables: Record<string, string>): Promise<Row[]> => {
  Object.assign(process.env, variables)
  const pairs = { in: [] as Pair[], out: [] as Pair[] }
  await withInstallation(async (installation) => {
    const api = await installation.startRelay('api')
    const floor = await installation.startModule<{ url: string; pid: number }>(
      'floor',
      new URL('./floor/large-store.ts', import.meta.url),
      {
        FLOOR_STORE: store,
      },
    )
    // Nothing is delivered during the measurement, because no worker runs. The documents are held, so they are stored.
    const receiver = await createConnectedWorkspace(installation, api.baseUrl, {
      name: `bench/large-${store}`,
      targetUrls: ['http://127.0.0.1:9/'],
      isActive: false,
    })
    // Round 0 is a warm-up and not counted.
    for (let round = 0; round <= rounds; round += 1) {
      const docId = newId()
      const put = await inTurn(round, {
        floor: () => transfer(installation, floor.pid, 'PUT', `${floor.url}/${docId}`, 201),
        ours: () => transfer(installation, api.pid, 'PUT', commandUrl(receiver, 'create', docId, '&compId=data'), 201),
      })
      const get = await inTurn(round, {
        floor: () => transfer(installation, floor.pid, 'GET', `${floor.url}/${docId}`, 200),
        ours: () => transfer(installation, api.pid, 'GET', commandUrl(receiver, 'get', docId, '&compId=data'), 200),
      })
      say(
        `${store}, round ${round}: in ${(put.floor.seconds / put.ours.seconds).toFixed(2)}, out ${(get.floor.seconds / get.ours.seconds).toFixed(2)}`,
      )
      if (round === 0) continue
      pairs.in.push(put)
      pairs.out.push(get)
    }
  })
  for (const name of Object.keys(variables)) delete process.env[name]
  return [rowOf(`in by PUT, content in ${store}`, pairs.in), rowOf(`out by get, content in ${store}`, pairs.out)]
}

const send = async (job: SendJob): Promise<Sent> => {
  const child = fork(new URL('./large/send.ts', import.meta.url))
  child.send(job)
  const [sent] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`${job.kind} by ${job.how} exited with ${code}`))),
  ])) as [Sent]
  return sent
}

interface ConnectorTarget {
  config: Record<string, unknown>
  credentials: Record<string, unknown>
  stop(): Promise<void>
}

const startTarget = async (kind: SendJob['kind']): Promise<ConnectorTarget> => {
  if (kind === 'webhook') {
    const { url, stop } = await startWebhookSink()
    return { config: { url }, credentials: {}, stop }
  }
  const { rig } = (await import(`../test/connectors/${kind}/rig.ts`)) as { rig: Rig }
  const running = await rig.start()
  return { ...(running.target() as Pick<ConnectorTarget, 'config' | 'credentials'>), stop: running.stop }
}

/** Sends the document to a target of its own: some servers are slower after they have received a large document. */
const sendToNewTarget = async (kind: SendJob['kind'], how: SendJob['how']): Promise<Sent> => {
  const { config, credentials, stop } = await startTarget(kind)
  try {
    return await send({ kind, how, bytes, config, credentials })
  } finally {
    await stop()
  }
}

const measureConnector = async (kind: SendJob['kind']): Promise<Row> => {
  const pairs: Pair[] = []
  for (let round = 1; round <= rounds; round += 1) {
    const { ours, floor } = await inTurn(round, {
      floor: () => sendToNewTarget(kind, 'sdk'),
      ours: () => sendToNewTarget(kind, 'connector'),
    })
    say(`${kind}, round ${round}: ${(floor.seconds / ours.seconds).toFixed(2)}, memory +${ours.growthMiB.toFixed(0)} MiB`)
    pairs.push({ ours, floor })
  }
  return rowOf(`through ${kind}, beside its SDK`, pairs)
}

const tools = { config: readConfig(), say }
process.env['TEST_VERSITYGW_BIN'] ??= await findVersitygw(tools)
process.env['TEST_AZURITE_BIN'] ??= await findAzurite(tools)
process.env['TEST_SSHD_BIN'] ??= await findSshd(tools)

const cases: [string, () => Promise<Row[]>][] = [
  // An empty CONTENT_DIR counts as not set.
  ['postgres', () => measureStore('postgres', { CONTENT_DIR: '' })],
  ['files', () => measureStore('files', {})],
  [
    's3',
    async () => {
      const server = await startS3Server()
      try {
        return await measureStore('s3', {
          CONTENT_S3_BUCKET: server.bucket,
          CONTENT_S3_ENDPOINT: server.endpoint,
          CONTENT_S3_PATH_STYLE: 'true',
          CONTENT_S3_ACCESS_KEY_ID: server.accessKeyId,
          CONTENT_S3_SECRET_ACCESS_KEY: server.secretAccessKey,
        })
      } finally {
        await server.stop()
      }
    },
  ],
  ...(['objstore', 'blob', 'sftp', 'webhook'] as const).map((kind): [string, () => Promise<Row[]>] => [
    kind,
    async () => [await measureConnector(kind)],
  ]),
]
const rows: Row[] = []
for (const [name, run] of cases) if (options.only === '' || options.only.split(',').includes(name)) rows.push(...(await run()))
await agent.close()
const lines = rows.map(
  ({ case: name, ours_mb_per_second: ours, floor_mb_per_second: floor, ratio, growth_mib: growth }) =>
    `${name}: ${ours.toFixed(0)} MB/s, floor ${floor.toFixed(0)} MB/s, ratio ${formatRange(ratio)}, memory +${growth.toFixed(0)} MiB`,
)
printResult(options.json, { name: 'large', settings: { rounds, bytes }, rows }, lines)
