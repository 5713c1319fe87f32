// Workspaces that must not disturb another one: it sends as in every row, and what it gets is counted.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import pLimit from 'p-limit'
import { startNoise } from '../../bench/neighbours/noise.ts'
import { endNoise, noises, type Noise } from '../../bench/neighbours/noises.ts'
import { openDatabase } from '../../src/db/database.ts'
import { reconcileDuty } from '../../src/delivery/reconcile.ts'
import { createClient, createWorkspaceClient } from '../../test/support/client.ts'
import { startHttpTarget } from '../../test/support/http-target.ts'
import { until } from '../../test/support/until.ts'
import { startBystander } from '../bystander.ts'
import type { Installation } from '../installation.ts'
import { createLoad, type Workspace } from '../load.ts'
import { databaseUrl } from '../postgres.ts'
import type { Row, Scene } from '../run-row.ts'

const clientsAtOnce = 10

/** Creates a workspace whose documents go to webhooks at these addresses. @returns it with functions that send, change and remove */
const startNeighbour = async ({ installation }: Pick<Scene, 'installation'>, urls: string[]) => {
  const { baseUrls, signer } = installation
  const baseUrl = baseUrls[0]!
  const workspace = await installation.createWorkspace(`neighbour-${Date.now().toString(36)}`, ['webhook'], {
    configs: { webhook: { url: urls[0] } },
    settings: {},
  })
  const { call, change, create, connect } = createClient({ baseUrl, name: workspace.apiPath.slice('/api/'.length), key: workspace.key })
  const list = async (path: string): Promise<{ id: string }[]> => (await call('GET', path)).json.data
  const more: string[] = []
  for (const [index, url] of urls.slice(1).entries()) {
    more.push(await create('/destinations', { name: `webhook ${index}`, connector_type: 'webhook', config: { url }, credentials: {} }))
  }
  if (more.length > 0) {
    const repositories = await list('/repositories')
    await connect(
      repositories.map(({ id }) => id),
      more,
    )
  }
  const options = { seed: workspace.id, baseUrls, workspace, signer, clients: 1, intervalMs: 1_000, largestBytes: 1_024 }
  const own = createLoad(options)
  return {
    workspace,
    change,
    setActive: async (isActive: boolean) => {
      for (const { id } of await list('/connections')) await change('PATCH', `/connections/${id}`, { is_active: isActive })
    },
    /** Sends this many small documents, and waits for their answers. */
    send: async (count: number) => {
      const sent = await pLimit(clientsAtOnce).map(Array.from({ length: count }), () => own.create({ sizeBytes: 1_024, signed: false }))
      const refused = sent.filter(({ outcome }) => outcome !== 'acknowledged')
      if (refused.length > 0) throw new Error(`${refused.length} creates of the neighbour were answered ${refused[0]!.answer}`)
    },
    /** Ends what is open, so that the next row does not find it. */
    remove: async () => {
      for (const { id } of await list('/destinations')) await call('DELETE', `/destinations/${id}`)
      await own.close()
    },
  }
}

/** Returns the 95th percentile of the times from the receipt of a document to its last delivery, of the documents received since then. */
const p95Of = async ({ query }: Installation, { id }: Workspace, since: Date): Promise<{ documents: number; p95Ms: number }> => {
  const [row] = await query<{ documents: number; p95Ms: number }>(
    `
    with delivered as (
      select max(delivered_at) - received_at as took
      from documents
      join deliveries on deliveries.document_id = documents.id
      where documents.workspace_id = $1
        and documents.status = 'delivered'
        and received_at >= $2
      group by documents.id
    )
    select
      count(*)::integer as documents,
      coalesce(round(1000 * percentile_cont(0.95) within group (order by extract(epoch from took))::numeric), 0)::integer as "p95Ms"
    from delivered
    `,
    [id, since],
  )
  return row!
}

const describe = ({ documents, p95Ms }: { documents: number; p95Ms: number }) => `${p95Ms} ms (${documents} documents)`

const dripMs = 60_000

/** Starts a server that reads requests and answers nothing, or, below /drip, one byte a minute. */
const startTarpit = async (): Promise<{ server: Server; url: string; open: () => number }> => {
  let open = 0
  const server = createServer((request, response) => {
    open += 1
    request.resume()
    response.once('close', () => {
      open -= 1
    })
    if (!request.url?.startsWith('/drip')) return
    response.writeHead(200)
    response.write('.')
    const timer = setInterval(() => response.write('.'), dripMs)
    response.once('close', () => clearInterval(timer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open: () => open }
}

const tarpits = 12
const drips = 2
const tarpitDocuments = 12
// Of the 200 places of two workers, one workspace gets half.
const placesOfWorkspace = 100
const fillMs = 120_000
const countToBegin = async ({ query }: Installation, { id }: Workspace): Promise<number> => {
  const sql = 'select count(*)::integer as count from deliveries where workspace_id = $1 and begin_at is not null'
  return (await query<{ count: number }>(sql, [id]))[0]!.count
}
// Six intervals of the installation.
const maintenanceLateMs = 30_000

const twelveTarpits = (): Row => {
  let cleanUp = async () => {}
  return {
    name: 'twelve-tarpits',
    fault:
      `${tarpits} targets of another workspace hang, ${drips} of them send a byte a minute, and ${tarpits * tarpitDocuments} deliveries to them fill ` +
      'every place that a workspace may have. They go on hanging while the recovery is measured: what is delivered and maintained beside them',
    acceptsAlways: true,
    // Longer than the row: a target that hangs keeps its place for as long as that. Heartbeats come as often as in production: those of a hundred
    // attempts every two seconds would be a fault of their own.
    variables: () => ({ DELIVERY_IDLE_TIMEOUT_MS: '300000', DELIVERY_HEARTBEAT_TIMEOUT_MS: '30000' }),
    run: async (scene) => {
      const { installation, workspace, hold, returned, note } = scene
      const before = await p95Of(installation, workspace, new Date(0))
      const tarpit = await startTarpit()
      const urls = Array.from({ length: tarpits }, (_, index) => `${tarpit.url}/${index < drips ? 'drip' : 'hang'}/${index}`)
      const neighbour = await startNeighbour(scene, urls)
      cleanUp = async () => {
        cleanUp = async () => {}
        await neighbour.remove()
        tarpit.server.closeAllConnections()
        tarpit.server.close()
      }
      await neighbour.send(tarpitDocuments)
      // Beginning them is work like any other, which workspaces share. A delivery that hangs is not work.
      const isFilled = async () => tarpit.open() >= 0.9 * placesOfWorkspace && (await countToBegin(installation, neighbour.workspace)) === 0
      await until('the tarpits have all places of a workspace, and nothing waits for its start', isFilled, Boolean, fillMs)
      const since = new Date()
      let latestMs = 0
      const over = new AbortController()
      const watching = (async () => {
        while (!over.signal.aborted) {
          const [duty] = await installation.query<{ ageMs: number }>(
            'select (1000 * extract(epoch from now() - done_at))::integer as "ageMs" from duties where name = $1',
            [reconcileDuty],
          )
          latestMs = Math.max(latestMs, duty?.ageMs ?? 0)
          await pause(500)
        }
      })()
      await hold(20_000, 60_000)
      over.abort()
      await watching
      note(
        `${tarpit.open()} attempts hung; from receipt to the last delivery, p95: ${describe(await p95Of(installation, workspace, since))} beside them`,
      )
      note(`before them: ${describe(before)}; the reconciler had last run ${latestMs} ms ago at most`)
      if (latestMs > maintenanceLateMs) throw new Error(`The reconciler did not run for ${latestMs} ms`)
      returned()
    },
    cleanUp: () => cleanUp(),
  }
}

const arrivalLimitMs = 400_000

interface Backlog {
  name: string
  longOnly?: boolean
  fault: string
  counts: { short: number; long: number }
  /** Has the documents wait. */
  prepare(neighbour: Awaited<ReturnType<typeof startNeighbour>>, count: number, scene: Scene, target: Answers): Promise<void>
  /** Lets them go, all at once. */
  release(neighbour: Awaited<ReturnType<typeof startNeighbour>>): Promise<unknown>
}

interface Answers {
  refuse(): void
  accept(): void
}

/** A row in which another workspace has a backlog delivered, all at once, to a target that accepts it. */
const besideBacklog = ({ name, longOnly = false, fault, counts, prepare, release }: Backlog): Row => {
  let cleanUp = async () => {}
  return {
    name,
    longOnly,
    fault,
    acceptsAlways: true,
    run: async (scene) => {
      const { installation, workspace, isShort, returned, note } = scene
      const count = isShort ? counts.short : counts.long
      const target = await startHttpTarget()
      const neighbour = await startNeighbour(scene, [`${target.origin}/`])
      cleanUp = async () => {
        cleanUp = async () => {}
        await neighbour.remove()
        await target.stop()
      }
      const accepted: string[] = []
      const answers: Answers = {
        refuse: () => target.answerWith((_, response) => response.writeHead(404).end()),
        accept: () =>
          target.answerWith(({ headers }, response) => {
            accepted.push(String(headers['x-relay-doc-id']))
            response.end('accepted')
          }),
      }
      answers.accept()
      await prepare(neighbour, count, scene, answers)
      // The load alone, again: preparing has disturbed it.
      const quietSince = new Date()
      await pause(isShort ? 5_000 : 20_000)
      const before = await p95Of(installation, workspace, quietSince)
      const since = new Date()
      await release(neighbour)
      await until(`${count} documents of the neighbour arrive`, () => new Set(accepted).size >= count, Boolean, arrivalLimitMs)
      const seconds = (Date.now() - since.getTime()) / 1_000
      // Their records, and those of the load.
      await pause(2_000)
      note(
        `${count} deliveries in ${seconds.toFixed(0)} s, ${accepted.length - count} of them twice; from receipt to the last delivery, p95: ` +
          `${describe(await p95Of(installation, workspace, since))} beside them, ${describe(before)} before`,
      )
      if (accepted.length > count) throw new Error(`${accepted.length - count} documents of the neighbour were delivered twice`)
      returned()
    },
    cleanUp: () => cleanUp(),
  }
}

const releaseBesideOthers = besideBacklog({
  name: 'release-beside-others',
  fault: 'Another workspace activates a connection that has held 900 deliveries (short form: 300). All arrive, beside what others send',
  counts: { short: 300, long: 900 },
  prepare: async (neighbour, count) => {
    await neighbour.setActive(false)
    await neighbour.send(count)
  },
  release: (neighbour) => neighbour.setActive(true),
})

const bulkRetryBesideOthers = besideBacklog({
  name: 'bulk-retry-beside-others',
  longOnly: true,
  fault:
    'A target of another workspace has refused 2,000 documents for good, and they are retried in bulk. All arrive, beside what others send',
  counts: { short: 300, long: 2_000 },
  prepare: async (neighbour, count, { installation }, target) => {
    target.refuse()
    await neighbour.send(count)
    const hasFailed = async () => {
      const [row] = await installation.query<{ failed: number }>(
        `select count(*)::integer as failed from deliveries where workspace_id = $1 and status = 'failed'`,
        [neighbour.workspace.id],
      )
      return row!.failed >= count
    }
    await until('the documents of the neighbour have failed', hasFailed, Boolean, arrivalLimitMs)
    target.accept()
  },
  release: (neighbour) => neighbour.change('POST', '/documents/retry', {}),
})

// A request that waits for longer than the bystander is also counted, which happens on a machine with other work.
const refusedShare = 0.01

/** A row in which another workspace makes a noise of `script/bench isolation`. It goes on while the recovery is measured. */
const besideNoise = (noise: Noise): Row => {
  let cleanUp = async () => {}
  return {
    name: `beside-${noise.name}`,
    longOnly: true,
    fault: `Another workspace, for 45 s and on while the recovery is measured: ${noise.text}. What others send arrives, and their other requests are answered`,
    acceptsAlways: true,
    run: async ({ installation, workspace, load, hold, returned, note }) => {
      const before = await p95Of(installation, workspace, new Date(0))
      const db = openDatabase({ ...installation.config, DATABASE_URL: databaseUrl(installation.postgres().port) }, 'faults')
      const process = await startNoise()
      const baseUrl = installation.baseUrls[0]!
      const neighbour = await createWorkspaceClient(db, baseUrl, `faults/noise-${Date.now().toString(36)}`)
      const quiet = createClient({ baseUrl, name: workspace.apiPath.slice('/api/'.length), key: workspace.key })
      const scene = { baseUrl, db, noise: process, neighbour, quiet, isQuick: false }
      cleanUp = async () => {
        cleanUp = async () => {}
        await endNoise(noise, scene)
        await process.stop()
        await db.destroy()
      }
      await noise.begin(scene)
      const since = new Date()
      const sentBefore = load.sent.length
      const bystander = startBystander(installation.baseUrls, workspace)
      await hold(10_000, 45_000)
      const { requests, refused, slowestMs } = await bystander.stop()
      const slowestCreateMs = Math.max(0, ...load.sent.slice(sentBefore).map(({ durationMs }) => durationMs))
      note(await noise.describe(await process.facts(), scene))
      note(
        `from receipt to the last delivery, p95: ${describe(await p95Of(installation, workspace, since))} beside it, ${describe(before)} before; the ` +
          `slowest create took ${Math.round(slowestCreateMs)} ms, and the slowest of ${requests} other requests ${Math.round(slowestMs)} ms`,
      )
      if (refused.length > requests * refusedShare) {
        throw new Error(`${refused.length} of ${requests} requests of others were refused: ${refused.slice(0, 5).join(', ')}`)
      }
      returned()
    },
    cleanUp: () => cleanUp(),
  }
}

// The other noises are a fault of another row: a target that drips is in twelve-tarpits, a store that is silent in contents-silent, and
// destinations that hang in target-hanging.
const besides = new Set(['asking', 'bombs', 'hanging-subscription', 'migration', 'flood', 'hanging-source'])

export const neighbourRows: Row[] = [
  twelveTarpits(),
  releaseBesideOthers,
  bulkRetryBesideOthers,
  ...noises.filter(({ name }) => besides.has(name)).map(besideNoise),
]
