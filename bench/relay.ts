// Measures the throughput of the relay: documents received over HTTP and delivered to a webhook. The baseline is the
// throughput of equally shaped workflows without work on the same Temporal server. Both are measured alternately,
// because the speed of a machine drifts. The ratio of the two is the result to compare. A second floor has the same workflows with what operators
// see of them: search attributes, summaries, inputs. A third one delivers the same documents through a plain queue on the same PostgreSQL: what
// the engine costs, beside what it gives. The second and the third together are the least for a relay with this engine. With
// `--temporal postgres`, the server is a cluster as in production.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pLimit from 'p-limit'
import { newId } from '../src/base/ids.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import { documentWorkflowId } from '../workflows/ids.ts'
import type { DocumentInput } from '../workflows/messages.ts'
import { documentOptions } from '../workflows/options.ts'
import { withInstallation, type Installation } from './support/installation.ts'
import { cpuMsPerUnit } from './support/measure.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { formatCpu, formatRange, printResult, say } from './support/report.ts'
import { createByPut, createRequests, type Requests } from './support/requests.ts'
import { mediansOf, rangeOf, sumOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('relay', {
  ...commonOptions,
  ...temporalOption,
  documents: { type: 'string' },
  rounds: { type: 'string' },
  only: { type: 'string' },
})
const documents = Number(options.documents ?? (options.quick ? 5 : 200))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5))
const inFlight = 50
const KiB = 1024
const allCases: { name: string; destinations: number; body: Buffer; isEnriched?: true }[] = [
  { name: '1 destination, 10 KiB', destinations: 1, body: Buffer.alloc(10 * KiB, 'x') },
  { name: '1 destination, 10 KiB, with an enrichment', destinations: 1, body: Buffer.alloc(10 * KiB, 'x'), isEnriched: true },
  { name: '3 destinations, 10 KiB', destinations: 3, body: Buffer.alloc(10 * KiB, 'x') },
  { name: '1 destination, 1 MiB', destinations: 1, body: Buffer.alloc(KiB * KiB, 'x') },
]

const cases = allCases.filter(({ name }) => name.includes(options.only ?? ''))

/** Starts a system that knows the vendor of every document. */
const startBusinessSystem = async () => {
  const system = createServer((_, response) => response.setHeader('content-type', 'application/json').end('{"vendor":"Acme Ltd"}'))
  system.listen(0, '127.0.0.1')
  await once(system, 'listening')
  return { url: `http://127.0.0.1:${(system.address() as AddressInfo).port}`, system }
}

interface Measurement {
  documents_per_second: number
  cpu_ms_per_document: Record<string, number>
}

const measureDocuments = async ({ cpuTimes }: Installation, work: () => Promise<void>): Promise<Measurement> => {
  const before = cpuTimes()
  const startedAt = performance.now()
  await work()
  const seconds = (performance.now() - startedAt) / 1000
  return { documents_per_second: documents / seconds, cpu_ms_per_document: cpuMsPerUnit(before, cpuTimes(), documents) }
}

const runRelay = async (client: Client, db: Database, receiverUrl: string, body: Buffer, { send }: Requests) => {
  const docIds = Array.from({ length: documents }, () => newId())
  await pLimit(inFlight).map(docIds, (docId) => send(createByPut(receiverUrl, docId, body), 201))
  // Only then all workflows are started and their results can be awaited.
  while (await db('deliveries').whereNotNull('begin_at').first('document_id')) await delay(200)
  const workspace = receiverUrl.split('/').slice(-2).join('/')
  const received = await db('documents')
    .whereIn('doc_id', docIds)
    .select<{ documentId: string; docId: string }[]>('id as documentId', 'doc_id as docId')
  await Promise.all(
    received.map((document) => {
      const workflowId = documentWorkflowId({ ...document, workspace, repoId: 'Z1', compId: 'data' })
      return client.workflow.getHandle(workflowId).result()
    }),
  )
  const delivered = await db('documents').whereIn('doc_id', docIds).where({ status: 'delivered' }).count({ total: '*' })
  if (Number(delivered[0]?.['total']) !== documents) throw new Error('Not every document was delivered')
}

const runBaseline = async (client: Client, destinations: number) => {
  const ids = Array.from({ length: documents }, () => `baseline/${newId()}`)
  await pLimit(inFlight).map(ids, (workflowId) =>
    client.workflow.start('bareDocument', { workflowId, taskQueue: 'baseline', args: [destinations] }),
  )
  await Promise.all(ids.map((workflowId) => client.workflow.getHandle(workflowId).result()))
}

const runShown = async (client: Client, destinations: number) => {
  const inputs = Array.from({ length: documents }, (): DocumentInput => ({
    documentId: newId(),
    workspace: 'bench/shown',
    repoId: 'Z1',
    docId: newId(),
    compId: 'data',
    policy: { maxRetries: 5, ttlMs: 86_400_000, initialIntervalMs: 1_000, maxIntervalMs: 60_000 },
    attemptTimeoutMs: 300_000,
    heartbeatTimeoutMs: 30_000,
    retryWindowMs: 604_800_000,
    destinations: Array.from({ length: destinations }, (_, index) => ({ id: newId(), name: `Z1 target ${index}`, connector: 'webhook' })),
  }))
  const handles = await pLimit(inFlight).map(inputs, (input) =>
    client.workflow.start('shownDocument', { ...documentOptions(input, { registered: true }), taskQueue: 'baseline' }),
  )
  await Promise.all(handles.map((handle) => handle.result()))
}

/** Sends the documents to the plain queue, and waits until it has delivered them. */
const runQueue = async (queueUrl: string, destinations: number, body: Buffer, { send, read }: Requests) => {
  const urls = Array.from({ length: documents }, () => `${queueUrl}?docId=${newId()}&destinations=${destinations}`)
  await pLimit(inFlight).map(urls, (url) => send({ method: 'PUT', url, body }, 201))
  while ((await read(queueUrl)) !== '0') await delay(20)
}

const summarizeRounds = (measured: Measurement[]) => ({
  documents_per_second: rangeOf(measured.map((one) => one.documents_per_second)),
  cpu_ms_per_document: mediansOf(measured.map((one) => one.cpu_ms_per_document)),
})

await withInstallation(async (installation) => {
  const server = await installation.startRelay('server')
  await installation.startModule('baseline worker', new URL('./baseline/worker.ts', import.meta.url))
  const db = openDatabase(installation.config, 'bench')
  const connection = await Connection.connect(installation.config.temporal.connectionOptions)
  const client = new Client({ connection, namespace: installation.config.temporal.namespace ?? 'default' })
  const requests = createRequests(inFlight)
  const sink = await startWebhookSink()
  const queue = await installation.startModule<{ url: string }>('queue', new URL('./floor/queue.ts', import.meta.url), {
    TARGET_URL: sink.url,
  })
  const businessSystem = await startBusinessSystem()

  const pairs = new Map(cases.map(({ name }) => [name, [] as Record<'ours' | 'floor' | 'shown' | 'queue', Measurement>[]]))
  const receiverUrls = new Map<string, string>()
  for (const [index, { name, destinations, isEnriched }] of cases.entries()) {
    const targetUrls = Array.from({ length: destinations }, () => sink.url)
    const wiring = { name: `bench/case-${index + 1}`, targetUrls, ...(isEnriched && { enrichmentUrl: businessSystem.url }) }
    receiverUrls.set(name, await createConnectedWorkspace(installation, server.baseUrl, wiring))
  }
  // Round 0 is a warm-up and not counted.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, destinations, body } of cases) {
      const floor = await measureDocuments(installation, () => runBaseline(client, destinations))
      const shown = await measureDocuments(installation, () => runShown(client, destinations))
      const ours = await measureDocuments(installation, () => runRelay(client, db, receiverUrls.get(name)!, body, requests))
      const queued = await measureDocuments(installation, () => runQueue(queue.url, destinations, body, requests))
      say(
        `${round === 0 ? 'warm-up' : `round ${round}`}, ${name}: relay ${ours.documents_per_second.toFixed(1)}/s, ` +
          `baseline ${floor.documents_per_second.toFixed(1)}/s, ratio ${(ours.documents_per_second / floor.documents_per_second).toFixed(2)}, ` +
          `queue ${queued.documents_per_second.toFixed(1)}/s`,
      )
      if (round > 0) pairs.get(name)!.push({ ours, floor, shown, queue: queued })
    }
  }

  const cpuOf = ({ cpu_ms_per_document: cpu }: Measurement) => sumOf(cpu)
  const rows = [...pairs].map(([name, measured]) => ({
    case: name,
    ours: summarizeRounds(measured.map(({ ours }) => ours)),
    floor: summarizeRounds(measured.map(({ floor }) => floor)),
    shown: summarizeRounds(measured.map(({ shown }) => shown)),
    ratio_by_cpu: rangeOf(measured.map(({ ours, floor }) => cpuOf(floor) / cpuOf(ours))),
    // What a relay would reach that adds no more than its engine shows and its documents cost in a queue.
    floors_ratio_by_cpu: rangeOf(measured.map(({ floor, shown, queue: queued }) => cpuOf(floor) / (cpuOf(shown) + cpuOf(queued)))),
    ratio: rangeOf(measured.map(({ ours, floor }) => ours.documents_per_second / floor.documents_per_second)),
    queue: summarizeRounds(measured.map((one) => one.queue)),
    ratio_to_queue: rangeOf(measured.map((one) => one.ours.documents_per_second / one.queue.documents_per_second)),
  }))
  const lines = rows.map(
    ({ case: name, ours, floor, shown, ratio, ratio_by_cpu: byCpu, floors_ratio_by_cpu: floors, queue: queued, ratio_to_queue: toQueue }) =>
      `${name}: ${ours.documents_per_second.median.toFixed(1)} documents/s, baseline ${floor.documents_per_second.median.toFixed(1)}, ` +
      `ratio ${formatRange(ratio)}; a document takes ${formatCpu(ours.cpu_ms_per_document)}, in the baseline ${formatCpu(floor.cpu_ms_per_document)}; the plain queue ` +
      `delivers ${queued.documents_per_second.median.toFixed(0)}/s (ratio ${toQueue.median.toFixed(2)}) for ${formatCpu(queued.cpu_ms_per_document)}; ` +
      `with what operators see, a bare document takes ${formatCpu(shown.cpu_ms_per_document)}; by processor time, the ratio is ${formatRange(byCpu)}, and that of the two floors together ` +
      formatRange(floors),
  )
  printResult(options.json, { name: 'relay', settings: { rounds, documents, inFlight, temporal: installation.temporalName }, rows }, lines)
  businessSystem.system.closeAllConnections()
  businessSystem.system.close()
  await Promise.all([requests.close(), sink.stop(), connection.close(), db.destroy()])
}, options)
