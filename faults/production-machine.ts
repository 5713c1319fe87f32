// Runs the relay of docs/one-machine.md from its packages: `relay server` with its own Temporal on PostgreSQL. Upgrades it under load, backs
// it up while documents arrive, destroys it, and restores it by the commands of the page.
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processTree } from '../bench/support/processes.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { temporalServerFolder } from '../test/support/tools.ts'
import { nextVersion } from './build.ts'
import { check } from './check.ts'
import type { Sent } from './load.ts'
import { createGround, kinds, roundedSeconds, type Ground, type Run } from './production-ground.ts'
import {
  countCopies,
  countOpen,
  exactly,
  finish,
  loadedMs,
  logFolders,
  readDelivered,
  repetitionCounts,
  sendMailAway,
  some,
  startTraffic,
  zero,
  type Result,
  type Traffic,
} from './production-traffic.ts'
import { supervise, type Supervised } from './relay-processes.ts'
import { versionIn } from './upgrade.ts'

const page = new URL('../docs/one-machine.md', import.meta.url)
const service = /^systemctl (stop|start) relay$/

/** Returns the commands of docs/one-machine.md under "Back up and restore", without those for the service, which is another one here. */
export const machineCommands = async (): Promise<{ backUp: string; restore: string }> => {
  const [, block] = /^## Back up and restore\n.*?^```sh\n(.*?)^```$/ms.exec(await readFile(page, 'utf8'))!
  const lines = block!.trim().split('\n')
  const [backUp, restore] = lines.filter((line) => !service.test(line))
  const services = lines.map((line) => service.exec(line)?.[1])
  if (String(services) !== ',stop,,start') throw new Error(`docs/one-machine.md has other commands for backup and restore:\n${block}`)
  return { backUp: backUp!, restore: restore! }
}

interface Machine extends Ground {
  baseUrl: string
  /** `relay server`, which is started again one second after it ends. */
  server(): Supervised
  /** @param logs name of the folder of its log */
  start(logs: string): Promise<void>
  /** Kills `relay server` with the worker and Temporal, and removes its folder. */
  destroy(): Promise<void>
}

const createMachine = async (options: Run): Promise<Machine> => {
  const { folder, cleanUp, say } = options
  const dataDir = join(folder, 'data')
  const port = await findFreePort()
  const baseUrl = `http://127.0.0.1:${port}`
  let temporalFolder = ''
  let server: Supervised | undefined
  const ground = await createGround(options, () => ({
    RELAY_TEMPORAL: 'local',
    RELAY_TEMPORAL_SERVER_DIR: temporalFolder,
    RELAY_DATA_DIR: dataDir,
    RELAY_PORT: String(port),
  }))
  temporalFolder = await temporalServerFolder({ config: ground.config, say })
  // SIGKILL of the server reaches neither the worker nor Temporal.
  const kill = async () => {
    const pid = server?.pid()
    const tree = pid === undefined ? [] : processTree([pid])
    await server?.destroy()
    for (const each of tree) {
      try {
        process.kill(each.pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
  }
  cleanUp.add(kill)
  return {
    ...ground,
    baseUrl,
    server: () => server!,
    start: async (logs) => {
      await mkdir(join(folder, logs))
      server = supervise(ground.current().main, 'server', 'server', join(folder, logs), ground.variables())
      await server.ready()
    },
    destroy: async () => {
      await kill()
      await rm(dataDir, { recursive: true })
    },
  }
}

/** Runs everything, and writes it into the transcript. */
export const runOneMachine = async (options: Run): Promise<Result> => {
  const { transcript } = options
  const commands = await machineCommands()
  const machine = await createMachine(options)
  transcript.begin(
    'Install and load',
    'Two versions from their packages, as above. `relay server` makes the schemas of the relay and of Temporal, and starts Temporal. Contents are in the database.',
  )
  const from = await machine.install('first')
  const to = await machine.install('second', nextVersion(from.version))
  machine.use(from)
  await machine.startPostgres()
  const startedAt = performance.now()
  await machine.start(logFolders.installed)
  transcript.note(`\`relay server\` of ${from.version} is ready after ${roundedSeconds(startedAt)}.`)
  const traffic = await startTraffic(machine, machine.baseUrl)
  try {
    machine.use(to)
    const upgraded = await upgrade(machine, traffic)
    const backup = await backUp(machine, traffic, commands.backUp)
    const atLoss = await loseEverything(machine, traffic)
    const restored = await restore(machine, traffic, commands.restore)
    return await compare(machine, traffic, { ...upgraded, ...backup, ...restored, atLoss })
  } finally {
    await traffic.stop()
  }
}

const isAcknowledged = ({ outcome }: Sent) => outcome === 'acknowledged'

/** Replaces the server. Creates that are refused while it is away are sent again, as a source system does. */
const upgrade = async (machine: Machine, { load, failedReads }: Traffic) => {
  const { transcript } = machine
  transcript.begin(
    'Upgrade under load',
    'The service is stopped, and started with the new version, which migrates. Refused creates are sent again after it.',
  )
  const server = machine.server()
  const before = { failedReads: failedReads.length, at: Date.now() }
  const { version, main } = machine.current()
  await server.replace(machine.variables(), main)
  await server.ready()
  const readyAt = Date.now()
  // Slow uploads that began before have ended by then.
  await pause(loadedMs)
  const wasAway = ({ answeredAt, durationMs }: Sent) => answeredAt >= before.at && answeredAt - durationMs < readyAt
  const away = load.sent.filter((one) => !isAcknowledged(one) && wasAway(one))
  const readsAway = failedReads.length - before.failedReads
  transcript.note(`The relay is ${versionIn(await server.log())}, and was away for ${Math.round((readyAt - before.at) / 1_000)} s.`)
  const again: Sent[] = []
  for (const { docId, sizeBytes } of away) again.push(await load.create({ docId, sizeBytes, signed: false }))
  return {
    isUpgraded: versionIn(await server.log()) === version,
    away: away.length,
    // A create that was not answered may have been stored: it is refused because the document exists.
    storedAgain: again.filter((one) => isAcknowledged(one) || one.answer.includes('document_exists')).length,
    refusedAgain: again.filter((one) => !isAcknowledged(one)).length,
    readsAway,
  }
}

const backUp = async (machine: Machine, { load, acknowledged, end }: Traffic, command: string) => {
  const { transcript } = machine
  transcript.begin(
    'Backup under load',
    'The mail server answers 451, so deliveries to it stay open. The dump is made while documents arrive.',
  )
  await sendMailAway(machine)
  const beganAt = Date.now()
  await machine.run(command)
  const endedAt = Date.now()
  await pause(loadedMs)
  const reads = await end()
  const answeredSince = (at: number) => acknowledged().filter(({ answeredAt }) => answeredAt >= at).length
  transcript.note(
    `${answeredSince(beganAt) - answeredSince(endedAt)} documents were acknowledged during the dump, and ${answeredSince(endedAt)} after it. The load stops.`,
  )
  return { reads, beganAt, sinceBackup: answeredSince(beganAt), sentBefore: load.sent.length }
}

const loseEverything = async (machine: Machine, { acknowledged }: Traffic) => {
  const { transcript, commands } = machine
  transcript.begin(
    'Total loss and restore',
    'The server, its worker and Temporal are killed; the data of PostgreSQL and `RELAY_DATA_DIR` are removed. Then the dump is restored into an empty database of a new PostgreSQL, the service is started, and nothing else is done.',
  )
  await machine.destroy()
  await commands.destroyCluster()
  const atLoss = await countCopies(machine)
  transcript.note(
    `Of ${acknowledged().length} acknowledged documents, the webhook has ${atLoss.get('webhook')!.size} and the mailbox ${atLoss.get('email')!.size}.`,
  )
  return atLoss
}

const restore = async (machine: Machine, traffic: Traffic, command: string) => {
  const { transcript, query, commands } = machine
  const startedAt = performance.now()
  await commands.createCluster()
  await machine.run(command)
  const rows = await query<{ docId: string }>('select doc_id as "docId" from documents')
  const restoredIds = new Set(rows.map(({ docId }) => docId))
  const inBackup = await readDelivered(query)
  const open = await countOpen(query)
  const crashesBefore = machine.server().crashes()
  await machine.start(logFolders.restored)
  transcript.note(`The relay receives documents ${roundedSeconds(startedAt)} after the restore began. ${open} deliveries are open.`)
  const docIds = traffic.acknowledged().flatMap(({ docId }) => (restoredIds.has(docId) ? [docId] : []))
  await finish(machine, traffic, docIds)
  return { restoredIds, inBackup, open, crashes: crashesBefore + machine.server().crashes() }
}

type Observed = Awaited<ReturnType<typeof upgrade>> &
  Awaited<ReturnType<typeof backUp>> &
  Awaited<ReturnType<typeof restore>> & { atLoss: Awaited<ReturnType<typeof countCopies>> }

const compare = async (machine: Machine, { workspace, load, acknowledged }: Traffic, observed: Observed): Promise<Result> => {
  const { targets, query } = machine
  const { restoredIds, inBackup, atLoss, reads } = observed
  const late = new Set(load.sent.slice(observed.sentBefore).map(({ docId }) => docId))
  const isKept = (docId: string) => restoredIds.has(docId) || late.has(docId)
  const gone = acknowledged().filter(({ docId }) => !isKept(docId))
  // What docs/backup.md says can be lost with a dump.
  const mayBeGone = gone.filter(({ answeredAt }) => answeredAt >= observed.beganAt)
  const expected = { failed: new Set<string>(), gone: new Set(mayBeGone.map(({ docId }) => docId)) }
  const targetList = kinds.map((kind) => targets.all[kind])
  const { counts, findings } = await check({ query }, workspace.id, load.sent, targetList, expected)
  return {
    findings,
    counts: [
      some('documents acknowledged', acknowledged().length),
      some('... since the backup began', observed.sinceBackup),
      zero('**lost** of those before the backup', counts.lost),
      {
        name: 'lost of those since the backup began',
        value: mayBeGone.length,
        goal: `at most ${observed.sinceBackup}: [what can be lost](../backup.md#what-can-be-lost)`,
        isMet: mayBeGone.length <= observed.sinceBackup,
      },
      zero('**altered**', counts.altered),
      zero('neither delivered nor failed', counts.stuck),
      some('creates refused or not answered during the upgrade', observed.away),
      exactly('... and stored when they were sent again', observed.storedAgain, observed.away),
      zero('creates refused or not answered at other times', counts.refused - observed.away - observed.refusedAgain),
      some('requests of readers answered', reads.answered),
      zero('requests of readers that failed, except during the upgrade', reads.failures.length - observed.readsAway),
      exactly('servers upgraded', Number(observed.isUpgraded), 1),
      zero('processes that ended by themselves', observed.crashes),
      some('deliveries open in the backup', observed.open),
      ...repetitionCounts(atLoss, await countCopies(machine), inBackup, (docId) => restoredIds.has(docId)),
    ],
  }
}
