// Measures what deliveries cost that wait for a dead target, and how they come back: many documents are sent to a target that answers 503.
// When all of them wait, the events that Temporal writes for their workflows and the processor time of all processes are counted for some
// minutes. Then the target accepts, and the order in which the documents arrive is compared with that of their receipt. The floor is the
// processor time of the same processes before the first document.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pLimit from 'p-limit'
import { newId } from '../src/base/ids.ts'
import { openDatabase } from '../src/db/database.ts'
import { countOverdue } from '../src/delivery/overdue.ts'
import { deliveryWorkflowId } from '../workflows/ids.ts'
import { withInstallation } from './support/installation.ts'
import { cpuMsPerUnit } from './support/measure.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { formatCpu, printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('backlog', { ...commonOptions, ...temporalOption, documents: { type: 'string' }, seconds: { type: 'string' } })
const documents = Number(options.documents ?? (options.quick ? 20 : 10_000))
const seconds = Number(options.seconds ?? (options.quick ? 2 : 300))
const clients = 20
const workspace = 'bench/backlog'
const body = Buffer.alloc(1024, 'x')

/** Starts a target that refuses everything until it is told to accept, and notes what it has accepted. */
const startTarget = async () => {
  const arrived: string[] = []
  let accepts = false
  const server = createServer((request, response) => {
    if (accepts) request.once('end', () => arrived.push(String(request.headers['x-relay-document-id'])))
    request.resume()
    response.writeHead(accepts ? 200 : 503).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    arrived,
    accept: () => {
      accepts = true
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns by how many places a document arrived before or after its turn, at most. */
const largestDisplacement = (arrived: string[]): number => {
  const turns = new Map(arrived.toSorted().map((id, turn) => [id, turn]))
  return Math.max(...arrived.map((id, place) => Math.abs(turns.get(id)! - place)))
}

await withInstallation(async (installation) => {
  const server = await installation.startRelay('server')
  const db = openDatabase(installation.config, 'bench')
  const connection = await Connection.connect(installation.config.temporal.connectionOptions)
  const client = new Client({ connection, namespace: installation.config.temporal.namespace ?? 'default' })
  const requests = createRequests(clients)
  const target = await startTarget()
  const receiverUrl = await createConnectedWorkspace(installation, server.baseUrl, { name: workspace, targetUrls: [target.url] })
  const limit = pLimit(clients)

  /** Returns the processor time that each process uses in a second while nothing is sent. */
  const watch = async () => {
    const before = installation.cpuTimes()
    await delay(seconds * 1_000)
    return cpuMsPerUnit(before, installation.cpuTimes(), seconds)
  }
  const until = async (what: string, count: () => Promise<number>) => {
    for (let saidAt = 0; ; await delay(500)) {
      const left = await count()
      if (left === 0) return
      if (performance.now() - saidAt > 30_000) {
        say(`${left} ${what}`)
        saidAt = performance.now()
      }
    }
  }
  const countWhere = async (condition: string) =>
    Number((await db('deliveries').whereRaw(condition).count<{ total: string }[]>({ total: '*' }))[0]!.total)

  const idle = await watch()
  await limit.map(Array.from({ length: documents }), () => requests.send(createByPut(receiverUrl, newId(), body), 201))
  await until('deliveries have not begun', () => countWhere('begin_at is not null'))
  const waiting = await db('documents')
    .join('deliveries', 'documents.id', 'document_id')
    .select<{ documentId: string; docId: string; destinationId: string }[]>(
      'documents.id as documentId',
      'doc_id as docId',
      'destination_id as destinationId',
    )
  const countEvents = async () => {
    const lengths = await limit.map(waiting, async ({ destinationId, ...document }) => {
      const workflowId = deliveryWorkflowId({ ...document, workspace, repoId: 'Z1', compId: 'data' }, destinationId)
      return (await client.workflow.getHandle(workflowId).describe()).historyLength
    })
    return lengths.reduce((total, length) => total + length, 0)
  }
  // The first of them still open the circuit.
  if (!options.quick) await delay(60_000)
  const eventsBefore = await countEvents()
  const busy = await watch()
  const events = (await countEvents()) - eventsBefore
  const overdue = await countOverdue(db, installation.config)
  say(`${waiting.length} deliveries wait: ${events} events in ${seconds} s`)

  target.accept()
  const acceptedAt = performance.now()
  await until('deliveries have not arrived', () => countWhere(`status <> 'delivered'`))
  const row = {
    case: `${documents} deliveries behind a dead target`,
    events_per_second: events / seconds,
    counted_as_overdue: overdue,
    cpu_ms_per_second: busy,
    cpu_ms_per_second_idle: idle,
    seconds_until_all_arrived: (performance.now() - acceptedAt) / 1_000,
    arrived_twice: target.arrived.length - new Set(target.arrived).size,
    largest_displacement: largestDisplacement([...new Set(target.arrived)]),
  }
  const lines = [
    `${row.case}: ${row.events_per_second.toFixed(2)} events a second, ${overdue} counted as overdue; a second takes ` +
      `${formatCpu(busy)}, without them ${formatCpu(idle)}`,
    `all arrived within ${row.seconds_until_all_arrived.toFixed(0)} s, ${row.arrived_twice} twice, at most ${row.largest_displacement} ` +
      'places before or after their turn',
  ]
  printResult(options.json, { name: 'backlog', settings: { documents, seconds, temporal: installation.temporalName }, rows: [row] }, lines)
  await Promise.all([requests.close(), target.stop(), connection.close(), db.destroy()])
}, options)
