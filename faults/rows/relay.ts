// Faults of the relay's own processes.
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { runProgram } from '../../src/programs/programs.ts'
import { until } from '../../test/support/until.ts'
import type { Installation } from '../installation.ts'
import { bytesOf, type Sent } from '../load.ts'
import type { Verb } from '../relay-processes.ts'
import type { Row, Scene } from '../run-row.ts'
import { kinds, type Kind } from '../targets.ts'

const MiB = 1024 * 1024

const processesOf = ({ processes }: Installation, verb: Verb) => processes.filter((one) => one.verb === verb)
const killAll = (installation: Installation, verb: Verb) => {
  for (const one of processesOf(installation, verb)) one.kill()
}
const untilReady = async (installation: Installation, verb: Verb) => {
  // The supervisor waits for a second.
  await pause(1_500)
  for (const one of processesOf(installation, verb)) await one.ready()
}

const apiKilledBeforeStart: Row = {
  name: 'api-killed-before-start',
  fault:
    'Temporal does not answer. Documents are acknowledged, and every API process is killed before it can start their workflows. ' +
    'The supervisor starts the processes again, and Temporal answers',
  run: async ({ installation, hold, returned }) => {
    installation.proxies.temporal.set({ kind: 'silent' })
    await hold(2_000, 5_000)
    killAll(installation, 'api')
    installation.proxies.temporal.set({ kind: 'down' })
    installation.proxies.temporal.set({ kind: 'up' })
    await untilReady(installation, 'api')
    returned()
  },
}

/** Sends the head of a create and half of its body. @returns the socket */
const sendHalf = async (baseUrl: string, path: string, body: Buffer): Promise<Socket> => {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`PUT ${path} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: ${body.length}\r\n\r\n`)
  socket.write(body.subarray(0, body.length / 2))
  return socket
}

const apiKilledInBody: Row = {
  name: 'api-killed-in-body',
  fault: 'Every API process is killed while it receives bodies. The supervisor starts it again, and the same documents are sent again',
  run: async ({ installation, load, workspace, returned, note }) => {
    const body = bytesOf('half a body', 4 * MiB)
    const docIds = Array.from({ length: 4 }, load.newDocId)
    const sockets = await Promise.all(
      docIds.map((docId, index) =>
        sendHalf(
          installation.baseUrls[index % installation.baseUrls.length]!,
          `${workspace.path}?create&pVersion=0045&contRep=${workspace.repositories.open}&docId=${docId}&compId=data`,
          body,
        ),
      ),
    )
    const closed = sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.on('close', () => resolve()).resume()
        }),
    )
    await pause(500)
    killAll(installation, 'api')
    await Promise.all(closed)
    await untilReady(installation, 'api')
    returned()
    const again = await Promise.all(docIds.map((docId) => load.create({ docId, body, signed: false })))
    const accepted = again.filter(({ outcome }) => outcome === 'acknowledged').length
    note(`${accepted} of ${docIds.length} half-received documents accepted when they were sent again`)
    if (accepted < docIds.length) throw new Error(`The repeated creates were answered ${again.map(({ answer }) => answer).join(', ')}`)
  },
}

const uploadBytes = 8 * MiB
const killAfterBytes = MiB

/** Kills every worker while it uploads to each of these kinds of targets. */
const killWorkersInUploads = async ({ installation, load, returned }: Scene, slowed: Kind[]) => {
  const { workerDatabase } = installation.proxies
  const proxies = slowed.map((kind) => installation.targets.all[kind].proxy ?? workerDatabase)
  for (const proxy of proxies) proxy.set({ kind: 'slow', bytesPerSecond: MiB })
  const created = await load.create({ sizeBytes: uploadBytes })
  if (created.outcome !== 'acknowledged') throw new Error(`The create was answered ${created.answer}`)
  // A folder has no network: the content is read slowly instead, and its upload is under way as long as the others.
  const uploads = proxies.filter((proxy) => proxy !== workerDatabase)
  await (uploads.length > 0
    ? until('every upload has begun', () => uploads.every((proxy) => proxy.sentBytes() > killAfterBytes))
    : pause(3_000))
  killAll(installation, 'worker')
  for (const proxy of proxies) proxy.set({ kind: 'up' })
  await untilReady(installation, 'worker')
  returned()
}

const lostAnswer = 'a worker that is killed between the answer of a target and its record sends the document again'

const workerKilled = (name: string, slowed: Kind[], more: Partial<Row>): Row => ({
  name,
  fault: `Every worker is killed in the middle of an upload to ${slowed.join(', ')}. The supervisor starts it again`,
  kinds: slowed,
  mayDuplicate: lostAnswer,
  acceptsAlways: true,
  load: { clients: 1, intervalMs: 2_000, largestBytes: MiB },
  run: (scene) => killWorkersInUploads(scene, slowed),
  ...more,
})

/** Kills every process of the installation but the targets, and starts them again. */
export const killEverything = async (installation: Installation): Promise<void> => {
  const postgres = installation.postgres()
  for (const verb of ['api', 'worker', 'server'] as const) killAll(installation, verb)
  await Promise.all([postgres.kill(), installation.temporal.kill()])
  await Promise.all([postgres.start(), installation.temporal.start()])
}

const everythingKilled: Row = {
  name: 'everything-killed',
  fault: 'PostgreSQL, Temporal, every API process and every worker are killed at once. All are started again',
  mayDuplicate: lostAnswer,
  run: async ({ installation, returned }) => {
    await killEverything(installation)
    returned()
  },
}

const isAcknowledged = ({ outcome }: Sent) => outcome === 'acknowledged'
const burst = 48
const acknowledgedAtKill = [1, 20]

const brokenOffTogether: Row = {
  name: 'creates-broken-off-together',
  fault:
    `${burst} creates are sent at once, so that they share transactions, and PostgreSQL is killed when ${acknowledgedAtKill.join(', then when ')} ` +
    'of them are acknowledged; the same with every API process instead. All are started again each time',
  // One target: what is acknowledged here is delivered within the goal.
  kinds: ['webhook'],
  mayDuplicate: lostAnswer,
  run: async ({ installation, load, returned, note }) => {
    const counts: number[] = []
    for (const acknowledged of acknowledgedAtKill) {
      for (const part of ['postgres', 'api']) {
        const before = load.sent.length
        const creating = Array.from({ length: burst }, (_, index) => load.create({ sizeBytes: 2_048, signed: false, apiIndex: index }))
        const all = Promise.all(creating)
        const answered = () => load.sent.slice(before)
        while (answered().length < burst && answered().filter(isAcknowledged).length < acknowledged) await pause(1)
        if (part === 'api') killAll(installation, 'api')
        else await installation.postgres().kill()
        counts.push((await all).filter(isAcknowledged).length)
        if (part === 'postgres') await installation.postgres().start()
        await untilReady(installation, 'api')
      }
    }
    returned()
    note(`acknowledged of ${burst}, by kill: ${counts.join(', ')}`)
  },
}

const deploy: Row = {
  name: 'deploy-rolling',
  fault: 'Every process is replaced, one after the other, by one of a new version: SIGTERM, then a start',
  // A start takes seconds of a processor, and the fault lasts for several of them.
  load: { clients: 1, intervalMs: 1_000 },
  run: async ({ installation, returned }) => {
    for (const one of installation.processes) {
      await one.replace(installation.variablesOf(one))
      await one.ready()
    }
    returned()
  },
}

const answerMs = 700
const uploadMs = 1_500

const stoppedInTheMiddle: Row = {
  name: 'stopped-in-the-middle',
  fault:
    'Every process is stopped with SIGTERM and started again, twice (long form: six times), while creates and attempts are under way at each: ' +
    `uploads that take ${uploadMs} ms, and a target that answers after ${answerMs} ms. Every create is answered, and no attempt is made again`,
  kinds: ['webhook'],
  acceptsAlways: true,
  // As with a load balancer: answers end their connections before the process closes.
  variables: () => ({ RELAY_DRAIN_MS: '2000' }),
  load: { clients: 2, intervalMs: 500, largestBytes: MiB },
  run: async ({ installation, load, isShort, returned, note }) => {
    installation.targets.web.answerWith((_, response) => void setTimeout(() => response.end('accepted'), answerMs))
    const { processes, variablesOf } = installation
    const over = new AbortController()
    const uploads = [0, 1, 2, 3].map(async (client) => {
      await pause((client * uploadMs) / 4)
      while (!over.signal.aborted) await load.create({ sizeBytes: 64 * 1024, slowMs: uploadMs, apiIndex: client })
    })
    let stops = 0
    for (let round = 0; round < (isShort ? 2 : 6); round += 1) {
      for (const one of processes) {
        await one.replace(variablesOf(one))
        await one.ready()
        stops += 1
      }
    }
    over.abort()
    await Promise.all(uploads)
    returned()
    const [interrupted] = await installation.query<{ count: number }>(
      `select count(*)::integer as count from delivery_attempts where outcome = 'interrupted' and started_at > now() - interval '10 minutes'`,
    )
    note(`${stops} stops; ${interrupted!.count} attempts were interrupted`)
  },
  cleanUp: async ({ targets }) => targets.web.answerWith((_, response) => void response.end('accepted')),
}

/** Makes a build current in Temporal, or none. The call is refused while Temporal records a worker that has just started. */
const setCurrentBuild = async (installation: Installation, buildId: string | undefined, tries = 10): Promise<void> => {
  const { config, temporal, temporalProgram } = installation
  const version = buildId === undefined ? ['--unversioned'] : ['--build-id', buildId]
  const command = ['worker', 'deployment', 'set-current-version', '--yes', '--address', `127.0.0.1:${temporal.port()}`]
  try {
    await runProgram(temporalProgram, [...command, '--deployment-name', 'document-relay', ...version], {
      env: config.childEnvironment,
      timeoutMs: 30_000,
    })
  } catch (thrown) {
    if (tries === 1) throw thrown
    await pause(1_000)
    await setCurrentBuild(installation, buildId, tries - 1)
  }
}

const deployVersioned: Row = {
  name: 'deploy-versioned',
  longOnly: true,
  fault:
    'With worker versioning: a worker of a new build is started, the build is made current in Temporal, and the worker of the old build is replaced',
  variables: () => ({ TEMPORAL_WORKER_BUILD_ID: 'one' }),
  acceptsAlways: true,
  load: { clients: 1, intervalMs: 1_000 },
  prepare: (installation) => setCurrentBuild(installation, 'one'),
  run: async ({ installation, returned }) => {
    const [first, second] = processesOf(installation, 'worker')
    for (const worker of [first!, second!]) {
      await worker.replace(installation.variablesOf(worker, { TEMPORAL_WORKER_BUILD_ID: 'two' }))
      await worker.ready()
      if (worker === first) await setCurrentBuild(installation, 'two')
    }
    returned()
  },
  // Workers without a build id get the work again.
  cleanUp: (installation) => setCurrentBuild(installation, undefined),
}

/** Returns the inode of the socket that is bound to a local port of this machine, from /proc/net/tcp. */
const socketInode = (port: number): string | undefined => {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[1] === address)?.[9]
}

const hasSocket = (pid: number, inode: string): boolean => {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((name) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${name}`) === `socket:[${inode}]`
      } catch {
        return false
      }
    })
  } catch {
    return false
  }
}

const poisonRetries = 3

const poison: Row = {
  name: 'poison-document',
  longOnly: true,
  fault: `A document kills the worker that delivers it, at each attempt, with ${poisonRetries} retries allowed. The others must be delivered`,
  kinds: ['webhook'],
  settings: { max_retries: poisonRetries },
  // Without the proxy, the target sees the connection of the worker itself.
  configs: ({ targets }) => ({ webhook: { url: `${targets.web.origin}/` } }),
  mayDuplicate: 'deliveries under way in a killed worker are interrupted, and sent again',
  load: { clients: 3, intervalMs: 1_000, largestBytes: MiB },
  cannotRun: async () => (process.platform === 'linux' ? undefined : 'it finds the process behind a connection in /proc'),
  run: async ({ installation, load, returned, expectFailed, note, hold }) => {
    const docId = load.newDocId()
    expectFailed(docId)
    let deaths = 0
    installation.targets.web.answerWith(({ headers }, response) => {
      if (headers['x-relay-doc-id'] !== docId) {
        response.end('accepted')
        return
      }
      const inode = socketInode(response.socket?.remotePort ?? 0)
      const worker = processesOf(installation, 'worker').find((one) => inode !== undefined && hasSocket(one.pid() ?? 0, inode))
      worker?.kill()
      deaths += 1
    })
    await load.create({ docId, sizeBytes: 1_024, signed: false })
    const readStatus = async () => {
      const rows = await installation.query<{ status: string }>(
        'select deliveries.status from deliveries join documents on documents.id = document_id where doc_id = $1',
        [docId],
      )
      return rows[0]?.status
    }
    const limit = AbortSignal.timeout(150_000)
    while (!limit.aborted && (await readStatus()) !== 'failed') await hold(500, 500)
    note(`${deaths} workers killed by the document, which was then ${await readStatus()}`)
    await untilReady(installation, 'worker')
    returned()
  },
  cleanUp: async ({ targets }) => targets.web.answerWith((_, response) => void response.end('accepted')),
}

export const relayRows: Row[] = [
  apiKilledBeforeStart,
  apiKilledInBody,
  workerKilled('worker-killed-in-upload', [...kinds], {}),
  ...kinds.map((kind) => workerKilled(`worker-killed-in-${kind}`, [kind], { longOnly: true })),
  everythingKilled,
  brokenOffTogether,
  deploy,
  stoppedInTheMiddle,
  deployVersioned,
  poison,
]
