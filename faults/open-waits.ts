import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { newId } from '../src/base/ids.ts'
import { runProgram } from '../src/programs/programs.ts'
import { createClient } from '../test/support/client.ts'
import { until } from '../test/support/until.ts'
import { deliveryWorkflowId } from '../workflows/ids.ts'
import type { Installation } from './installation.ts'

// Deliveries that wait in every way in which one can, so that an upgrade meets them. What must become of them is the same for all: they
// arrive, each once, as soon as what they wait for happens.

/** Variables with which a wait lasts until it is ended: no trial of a circuit by itself, and an attempt that hangs goes on. */
export const waitVariables = {
  DELIVERY_CIRCUIT_FAILURES: '3',
  DELIVERY_CIRCUIT_PAUSE_MS: '3600000',
  DELIVERY_IDLE_TIMEOUT_MS: '600000',
}
const failuresBeforeCircuit = Number(waitVariables.DELIVERY_CIRCUIT_FAILURES)

const anHour = { retry_initial_interval_seconds: 3_600, retry_max_interval_seconds: 3_600 }

export const waits = ['back-off', 'circuit', 'failed', 'held', 'attempt', 'slot', 'paused'] as const
type Wait = (typeof waits)[number]

// SQL: the state of the last delivery that was sent to the repository of a wait.
const conditions: Record<Wait, string> = {
  'back-off': `status = 'retrying' and attempt_id is null`,
  circuit: `waiting = 'in_line'`,
  failed: `status = 'failed'`,
  held: `status = 'held'`,
  attempt: 'attempt_id is not null',
  slot: `waiting = 'in_line'`,
  paused: `status = 'retrying' and attempt_id is null`,
}

/** Starts a target that fails, refuses or hangs as the first part of the path says, until it is repaired. It counts what it has accepted. */
const startTarget = async () => {
  let isRepaired = false
  const hanging = new Set<{ docId: string; response: ServerResponse }>()
  const accepted: string[] = []
  const accept = (docId: string, response: ServerResponse) => {
    // A test of the destination has no document.
    if (docId !== '') accepted.push(docId)
    response.end('accepted')
  }
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const docId = String(request.headers['x-relay-doc-id'] ?? '')
      if (isRepaired) return accept(docId, response)
      const wait = request.url?.split('/')[1]
      if (wait === 'failed') return response.writeHead(404).end()
      if (wait !== 'slot') return response.writeHead(503).end()
      const held = { docId, response }
      hanging.add(held)
      return response.once('close', () => hanging.delete(held))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    urlOf: (wait: Wait) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${wait}`,
    accepted,
    repair: () => {
      isRepaired = true
      for (const { docId, response } of hanging) accept(docId, response)
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export interface OpenWaits {
  /** Ends every wait. @returns the documents that did not arrive, and those that arrived more than once, with the kind of their wait */
  end(): Promise<{ sent: number; missing: string[]; repeated: string[] }>
  stop(): Promise<void>
}

const arrivalLimitMs = 120_000

/** Opens one delivery in each kind of wait. */
export const openWaits = async (installation: Installation, baseUrl: string): Promise<OpenWaits> => {
  const { config, temporal, temporalProgram, query } = installation
  const target = await startTarget()
  const slug = `waits-${Date.now().toString(36)}`
  const workspace = await installation.createWorkspace(slug, ['webhook'], { configs: {}, settings: anHour })
  const name = workspace.apiPath.slice('/api/'.length)
  const { call, change, wire, sendCreate } = createClient({ baseUrl, name, key: workspace.key })

  const wireTo = (wait: Wait) =>
    wire([{ name: wait, connector_type: 'webhook', config: { url: target.urlOf(wait), max_concurrent_deliveries: 1 }, credentials: {} }], {
      repoId: wait.slice(0, 2).toUpperCase(),
      isActive: wait !== 'held',
    })
  // A destination with one slot has both: an attempt under way, and a delivery that waits for its slot.
  const wired = {
    'back-off': await wireTo('back-off'),
    circuit: await wireTo('circuit'),
    failed: await wireTo('failed'),
    held: await wireTo('held'),
    slot: await wireTo('slot'),
    paused: await wireTo('paused'),
  }
  const sent = new Map<string, Wait>()
  const documents = new Map<Wait, { id: string; docId: string }>()

  const send = async (wait: Wait, condition = conditions[wait]) => {
    const docId = newId()
    const { repoId } = wired[wait === 'attempt' ? 'slot' : wait]
    const { status, text } = await sendCreate(repoId, docId)
    if (status !== 201) throw new Error(`A create was answered ${status}: ${text}`)
    sent.set(docId, wait)
    const found = await until(`a delivery waits: ${wait}`, async () => {
      const [row] = await query<{ id: string }>(
        `select id from documents where doc_id = $1 and exists (select from deliveries where document_id = id and ${condition})`,
        [docId],
      )
      return row
    })
    documents.set(wait, { id: found!.id, docId })
  }
  const commandOn = async (wait: Wait, verb: string) => {
    const { id, docId } = documents.get(wait)!
    const { repoId, destinationId } = wired[wait as keyof typeof wired]
    const workflowId = deliveryWorkflowId({ documentId: id, workspace: name, repoId, docId, compId: 'data' }, destinationId)
    const address = ['--address', `127.0.0.1:${temporal.port()}`]
    await runProgram(
      temporalProgram,
      ['activity', verb, '--workflow-id', workflowId, '--activity-id', '1', '--identity', 'operator', ...address],
      {
        env: config.childEnvironment,
        timeoutMs: 30_000,
      },
    )
  }

  await send('back-off')
  for (let failures = 0; failures < failuresBeforeCircuit; failures += 1) await send('circuit', conditions['back-off'])
  await send('circuit')
  await send('failed')
  await send('held')
  await send('attempt')
  await send('slot')
  await send('paused')
  await commandOn('paused', 'pause')

  return {
    end: async () => {
      target.repair()
      await change('PATCH', `/connections/${wired.held.connectionId}`, { is_active: true })
      await change('POST', `/documents/${documents.get('failed')!.id}/retry`, {})
      await change('POST', `/documents/${documents.get('back-off')!.id}/attempt`, {})
      await commandOn('paused', 'unpause')
      await change('POST', `/documents/${documents.get('paused')!.id}/attempt`, {})
      // A successful test closes the circuit.
      const { destinationId } = wired.circuit
      await call('POST', `/destinations/${destinationId}/test`)
      await call('POST', `/destinations/${destinationId}/attempt`)
      const countsOf = () => new Map([...sent.keys()].map((docId) => [docId, target.accepted.filter((one) => one === docId).length]))
      const named = (wanted: (count: number) => boolean) =>
        [...countsOf()].filter(([, count]) => wanted(count)).map(([docId]) => sent.get(docId)!)
      const allArrived = async () => named((count) => count === 0).length === 0
      await until('every delivery that waited arrives', allArrived, Boolean, arrivalLimitMs).catch(() => {})
      return { sent: sent.size, missing: named((count) => count === 0), repeated: named((count) => count > 1) }
    },
    stop: target.stop,
  }
}
