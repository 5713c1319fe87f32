import { setTimeout as delay } from 'node:timers/promises'
import { Client, type Connection } from '@temporalio/client'
import { Agent, request } from 'undici'
import { newId } from '../../src/base/ids.ts'
import type { WorkspaceClient } from '../../test/support/client.ts'
import type { startArrivals } from '../support/arrivals.ts'
import { commandUrl, createByPut, type BenchRequest } from '../support/requests.ts'

/** What is measured of a quiet workspace, and of the bare program in the same place. */
export const probes = ['create', 'get', 'arrival'] as const
export type Probe = (typeof probes)[number]

/** Milliseconds of each probe. */
export type Times = Record<Probe, number[]>

export interface Sample {
  relay: Times
  /** A program that does nothing else: it commits the same bytes, reads them, and has a workflow of the same shape with a worker of its own. */
  bare: Times
  /** Creates and reads that were not answered with success within the limit. Each counts as the limit. */
  refused: number
}

const requestsPerSecond = 8
const documentsPerSecond = 2
// A probe that is refused, or not answered by then, counts as this.
const lateMs = 30_000
const documentBytes = 10 * 1024
const body = Buffer.alloc(documentBytes, 'x')
const storedDocuments = 20

interface QuietOptions {
  baseUrl: string
  workspace: Pick<WorkspaceClient, 'name' | 'wire' | 'sendCreate'>
  healthy: Awaited<ReturnType<typeof startArrivals>>
  bare: {
    url: string
    arrivals: Awaited<ReturnType<typeof startArrivals>>
    connection: Connection
    namespace: string
  }
}

/** Calls a function at a constant rate, whatever becomes of the earlier calls, and waits for all. */
const atRate = async (perSecond: number, seconds: number, call: (number: number) => Promise<unknown>): Promise<void> => {
  const calls: Promise<unknown>[] = []
  const startedAt = performance.now()
  for (let number = 0; number < seconds * perSecond; number += 1) {
    await delay(Math.max(0, startedAt + (number * 1_000) / perSecond - performance.now()))
    calls.push(call(number))
  }
  await Promise.all(calls)
}

/** Creates the quiet workspace's repositories and documents. @returns the function that measures */
export const createQuiet = async ({ baseUrl, workspace, healthy, bare }: QuietOptions) => {
  const agent = new Agent({ connections: 64 })
  const connected = await workspace.wire([healthy.url])
  // Its documents are stored and delivered nowhere.
  const held = await workspace.wire([healthy.url], { isActive: false })
  const docIds = Array.from({ length: storedDocuments }, () => newId())
  for (const docId of docIds) {
    const { status } = await workspace.sendCreate(held.repoId, docId, body)
    if (status !== 201) throw new Error(`A create was answered ${status}`)
    await request(commandUrl(bare.url, 'create', docId), { method: 'PUT', body, dispatcher: agent }).then((answer) => answer.body.dump())
  }
  const client = new Client({ connection: bare.connection, namespace: bare.namespace })

  /** Sends a request. @returns milliseconds until its answer was read, or undefined if it was refused or late */
  const timed = async ({ method, url, headers = {}, body: sent }: BenchRequest, status: number): Promise<number | undefined> => {
    const startedAt = performance.now()
    try {
      const signal = AbortSignal.timeout(lateMs)
      const answer = await request(url, { method, headers, body: sent ?? null, dispatcher: agent, signal })
      await answer.body.dump()
      return answer.statusCode === status ? performance.now() - startedAt : undefined
    } catch {
      return undefined
    }
  }

  return {
    /**
     * Measures for some seconds.
     * @param options.readsFrom measures reads only, at this API process
     */
    measure: async (seconds: number, { readsFrom }: { readsFrom?: string | undefined } = {}): Promise<Sample> => {
      const sample: Sample = { relay: { create: [], get: [], arrival: [] }, bare: { create: [], get: [], arrival: [] }, refused: 0 }
      const probe = async (times: number[], sent: BenchRequest, status: number) => {
        const took = await timed(sent, status)
        if (took === undefined) sample.refused += 1
        times.push(took ?? lateMs)
      }
      const receiverUrl = `${readsFrom ?? baseUrl}/receiver/${workspace.name}`
      const readable = (url: string, number: number): BenchRequest => ({
        method: 'GET',
        url: commandUrl(url, 'get', docIds[number % docIds.length]!, '&compId=data', held.repoId),
      })
      const reads = atRate(requestsPerSecond, seconds, (number) =>
        Promise.all([probe(sample.relay.get, readable(receiverUrl, number), 200), probe(sample.bare.get, readable(bare.url, number), 200)]),
      )
      if (readsFrom !== undefined) {
        await reads
        return sample
      }
      const creates = atRate(requestsPerSecond, seconds, () => {
        const docId = newId()
        return Promise.all([
          probe(sample.relay.create, createByPut(receiverUrl, docId, body, held.repoId), 201),
          probe(sample.bare.create, createByPut(bare.url, docId, body), 201),
        ])
      })
      /** Measures the time from the answer to the arrival. */
      const deliver = async () => {
        const docId = newId()
        const arrival = healthy.arrival(docId)
        if ((await timed(createByPut(receiverUrl, docId, body, connected.repoId), 201)) === undefined) {
          sample.refused += 1
          sample.relay.arrival.push(lateMs)
          return
        }
        const answeredAt = performance.now()
        const late = delay(lateMs).then(() => undefined)
        const arrived = await Promise.race([arrival, late])
        sample.relay.arrival.push(arrived ? arrived.atMs - answeredAt : lateMs)
      }
      // One after the other: their requests look the same.
      const deliverBare = async () => {
        const startedAt = performance.now()
        for (let number = 0; performance.now() < startedAt + seconds * 1_000; number += 1) {
          const arrival = bare.arrivals.arrival('baseline')
          const handle = await client.workflow.start('bareDocument', {
            workflowId: `baseline/${newId()}`,
            taskQueue: 'baseline',
            args: [1],
          })
          const sentAt = performance.now()
          sample.bare.arrival.push((await arrival).atMs - sentAt)
          await handle.result()
          await delay(Math.max(0, startedAt + ((number + 1) * 1_000) / documentsPerSecond - performance.now()))
        }
      }
      await Promise.all([reads, creates, atRate(documentsPerSecond, seconds, deliver), deliverBare()])
      return sample
    },
    close: () => agent.close(),
  }
}
