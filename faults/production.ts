// Runs a relay as in production from its packages: three API processes behind HAProxy and three workers, a cluster of Temporal, contents in
// files. Upgrades it under load, backs it up, destroys it, and restores it as docs/backup.md says.
import { rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { readConfig } from '../src/config/config.ts'
import { until } from '../test/support/until.ts'
import { nextVersion } from './build.ts'
import { areSettled, check } from './check.ts'
import { createLoad, type Load, type Workspace } from './load.ts'
import { createSite, kinds, roundedSeconds, type Block, type CleanUp, type Installed, type Site } from './production-site.ts'
import type { Kind } from './targets.ts'
import type { Count, Transcript } from './transcript.ts'
import { replaceOneByOne, replicas, settleLimitMs, startClients, versionIn } from './upgrade.ts'
import { setUpWorkspace } from './workspace.ts'

/** The blocks of docs/backup.md that are run, in this order. */
export const backupBlocks = {
  archive: [['Archive the write-ahead log', 0]],
  underLoad: [['Take a base backup'], ['Copy the contents']],
  atTheEnd: [['Archive everything until now'], ['Copy the contents'], ['Archive the write-ahead log', 1]],
  restore: [['1. Restore the database', 0], ['2. Restore the contents']],
  verify: [['3. Check'], ['4. Remove files without a document', 0]],
  start: [['5. Start']],
} satisfies Record<string, Block[]>

const KiB = 1024
const MiB = 1024 * KiB
const largestBytes = 16 * MiB
const loadedMs = 10_000
const lateDocuments = 10
// The mails are open for minutes.
const retrySettings = { retry_max_interval_seconds: 20 }

/** How often each destination has received each document. */
type Copies = Map<Kind, Map<string, number>>

const countCopies = async ({ targets }: Site): Promise<Copies> => {
  const copies: Copies = new Map()
  for (const kind of kinds) {
    const held = new Map<string, number>()
    for (const { docId } of await targets.all[kind].holdings()) held.set(docId, (held.get(docId) ?? 0) + 1)
    copies.set(kind, held)
  }
  return copies
}

const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
const repetitions = (copies: Copies) => sum([...copies.values()].flatMap((held) => [...held.values()].map((times) => times - 1)))
const countCrashes = (site: Site) => sum(site.processes().map((one) => one.crashes()))

export interface Result {
  counts: Count[]
  /** A line for each kind of deviation. */
  findings: string[]
}

/** Folders of the logs of the relay's processes, until the loss and since the restore. */
export const logFolders = { installed: 'logs', restored: 'logs-restored' }

/** Runs everything in a folder, and writes it into the transcript. The caller runs `cleanUp`, even if this fails. */
export const runProduction = async (
  folder: string,
  transcript: Transcript,
  cleanUp: CleanUp,
  say: (line: string) => void,
): Promise<Result> => {
  const site = await createSite(folder, transcript, cleanUp, say)
  const to = await start(site)
  const traffic = await startTraffic(site)
  try {
    const upgraded = await upgrade(site, traffic, to)
    const backup = await backUp(site, traffic)
    const loss = await loseEverything(site, traffic)
    const restored = await restore(site, traffic)
    return await compare(site, traffic, { ...upgraded, ...backup, ...loss, ...restored })
  } finally {
    await traffic.stop()
  }
}

/** Installs two versions, and starts the first one with all servers. @returns the second version */
const start = async (site: Site): Promise<Installed> => {
  const { transcript } = site
  transcript.begin(
    'Install',
    'Two versions are packed and installed from their tarballs, each into a folder of its own. The second is the first with the next patch version, and one migration more: a column and an index in the table of documents.',
  )
  const from = await site.install('first')
  const to = await site.install('second', nextVersion(from.version))
  site.use(from)

  transcript.begin(
    'PostgreSQL and Temporal',
    'PostgreSQL archives its log from the beginning, by the commands of [backup.md](../backup.md). Temporal is a cluster with a PostgreSQL server of its own, and accepts only clients with a certificate.',
  )
  await site.startPostgres()
  await site.follow(backupBlocks.archive)
  await site.startTemporal('temporal')

  transcript.begin(
    'Start',
    'The first version creates the schema. HAProxy has `deploy/haproxy/haproxy.cfg`. Contents from 64 KiB are in files (`CONTENT_DIR`).',
  )
  await site.relay('relay migrate')
  await site.startProcesses(logFolders.installed)
  await site.relay('relay doctor')
  return to
}

interface Traffic {
  workspace: Workspace
  load: Load
  /** Documents that were answered 2xx. */
  acknowledged(): Load['sent']
  /** Stops the load and the readers. */
  end(): Promise<{ answered: number; failures: string[] }>
  stop(): Promise<void>
}

const startTraffic = async (site: Site): Promise<Traffic> => {
  const { transcript, haproxy, signer, targets, query } = site
  transcript.begin(
    'Load',
    'Source systems create documents through the proxy, and readers use the management API. Every document goes to a webhook and to a mailbox.',
  )
  const workspace = await setUpWorkspace(
    { config: readConfig({ ...process.env, ...site.variables() }), baseUrl: haproxy.url, signer, targets },
    'production',
    kinds,
    { configs: {}, settings: retrySettings },
  )
  const baseUrls = [haproxy.url]
  const load = createLoad({ seed: 'production', baseUrls, workspace, signer, clients: 4, intervalMs: 1_000, largestBytes })
  load.start()
  const clients = startClients(haproxy.url, workspace, load)
  const acknowledged = () => load.sent.filter(({ outcome }) => outcome === 'acknowledged')
  const traffic: Traffic = {
    workspace,
    load,
    acknowledged,
    end: async () => {
      await load.stop()
      return clients.stop()
    },
    stop: async () => {
      await traffic.end()
      await load.close()
    },
  }
  try {
    await pause(loadedMs)
    const docIds = acknowledged().map(({ docId }) => docId)
    await until('the first documents are delivered', () => areSettled({ query }, workspace.id, docIds))
    const sizes = acknowledged().map(({ sizeBytes }) => sizeBytes)
    transcript.note(
      `${sizes.length} documents of ${Math.round(Math.min(...sizes) / KiB)} KiB to ${Math.round(Math.max(...sizes) / MiB)} MiB are acknowledged. The load goes on.`,
    )
    return traffic
  } catch (thrown) {
    await traffic.stop()
    throw thrown
  }
}

const upgrade = async (site: Site, { load, acknowledged }: Traffic, to: Installed) => {
  const { transcript, haproxy } = site
  transcript.begin(
    'Upgrade under load',
    'The new version migrates the database while the old one works. Then one API process and one worker at a time are replaced.',
  )
  const startedAt = performance.now()
  const before = acknowledged().length
  site.use(to)
  await site.relay('relay migrate')
  await replaceOneByOne({ processes: site.processes(), variablesOf: site.variablesOf }, haproxy, to.main, transcript.note)
  const versions = await Promise.all(site.processes().map(async (one) => versionIn(await one.log())))
  const upgraded = versions.filter((version) => version === to.version).length
  const duringUpgrade = acknowledged().length - before
  const { serverErrors, brokenAnswers } = await haproxy.counters()
  transcript.note(`${upgraded} of ${versions.length} processes are ${to.version} after ${roundedSeconds(startedAt)}.`)
  transcript.note(`${duringUpgrade} documents were acknowledged meanwhile.`)
  transcript.note(
    `So far, ${load.sent.length - acknowledged().length} creates were refused or not answered; the proxy counts ${serverErrors} answers of status 5xx and ${brokenAnswers} broken answers.`,
  )
  return { upgraded, duringUpgrade }
}

const nameOf = (docId: string, kind: string) => `${docId} ${kind}`

const backUp = async (site: Site, { acknowledged, end }: Traffic) => {
  const { transcript, targets, query } = site
  transcript.begin(
    'Backup under load',
    'The mail server goes away: it answers 451, so deliveries to it stay open. The base backup and the first copy of the contents are made while documents arrive.',
  )
  targets.mail!.answerWith({
    onMailFrom: (_address, _session, done) => done(Object.assign(new Error('The mail server is away'), { responseCode: 451 })),
  })
  await pause(loadedMs)
  const before = acknowledged().length
  await site.follow(backupBlocks.underLoad)
  await pause(loadedMs)
  const reads = await end()
  const sinceBackup = acknowledged().length - before
  transcript.note(
    `${sinceBackup} documents were acknowledged since the backup began. The load stops, and everything until now is archived.`,
  )
  const recorded = await query<{ docId: string; kind: string }>(`
    select documents.doc_id as "docId", destinations.connector_type as kind
    from deliveries
    join documents on documents.id = deliveries.document_id
    join destinations on destinations.id = deliveries.destination_id
    where deliveries.status = 'delivered'
  `)
  const archiver = await site.follow(backupBlocks.atTheEnd)
  return {
    reads,
    sinceBackup,
    failedArchives: Number(/\|\s+(\d+)\s+\|/.exec(archiver)?.[1]),
    /** Deliveries that the backup has as delivered. */
    inBackup: new Set(recorded.map(({ docId, kind }) => nameOf(docId, kind))),
  }
}

const loseEverything = async (site: Site, { acknowledged }: Traffic) => {
  const { transcript, commands, query } = site
  transcript.begin('Total loss', 'Every process is killed, and the data of PostgreSQL, the contents and Temporal are removed.')
  const [row] = await query<{ open: number }>(`
    select count(*)::int as open
    from deliveries
    where status not in ('delivered', 'failed', 'cancelled')
  `)
  const open = row!.open
  const crashesBefore = countCrashes(site)
  await Promise.all(site.processes().map((one) => one.destroy()))
  transcript.note('SIGKILL to the three API processes and the three workers.')
  transcript.command('pg_ctl stop --mode=immediate\nrm -r "$PGDATA" "$CONTENT_DIR"')
  await commands.destroyCluster()
  await rm(commands.contentDir, { recursive: true })
  await site.destroyTemporal()
  transcript.note('SIGKILL to the four services of Temporal and their PostgreSQL. Their folders are removed.')
  const atLoss = await countCopies(site)
  transcript.note(
    `Of ${acknowledged().length} acknowledged documents, the webhook has ${atLoss.get('webhook')!.size} and the mailbox ${atLoss.get('email')!.size}. ` +
      `${open} deliveries were open.`,
  )
  return { open, crashesBefore, atLoss }
}

const restore = async (site: Site, { workspace, load, acknowledged }: Traffic) => {
  const { transcript, targets, query } = site
  transcript.begin(
    'Restore',
    'By the commands of [backup.md](../backup.md#restore), into a new cluster of PostgreSQL and an empty cluster of Temporal.',
  )
  const startedAt = performance.now()
  await site.follow(backupBlocks.restore)
  await site.startTemporal('temporal-restored')
  const verified = await site.follow(backupBlocks.verify)

  transcript.begin('Start again', 'The processes start, and nothing else is done: the reconciler resumes what is open.')
  await site.startProcesses(logFolders.restored)
  transcript.note(`The relay receives documents ${roundedSeconds(startedAt)} after the restore began.`)
  await site.follow(backupBlocks.start)
  for (let count = 0; count < lateDocuments; count += 1) await load.create()
  targets.mail!.answerWith({})
  transcript.note(`${lateDocuments} more documents are sent. The mail server is back.`)
  const backAt = performance.now()
  const docIds = acknowledged().map(({ docId }) => docId)
  let isSettled = false
  for (const deadline = Date.now() + settleLimitMs; !isSettled && Date.now() < deadline; await pause(500))
    isSettled = await areSettled({ query }, workspace.id, docIds)
  transcript.note(`${isSettled ? 'Every delivery has ended' : 'Deliveries are still open'} ${roundedSeconds(backAt)} later.`)
  return { isComplete: verified.includes('All of them are complete.') }
}

type Observed = Awaited<ReturnType<typeof upgrade>> &
  Awaited<ReturnType<typeof backUp>> &
  Awaited<ReturnType<typeof loseEverything>> &
  Awaited<ReturnType<typeof restore>>

const compare = async (site: Site, { workspace, load, acknowledged }: Traffic, observed: Observed): Promise<Result> => {
  const { transcript, targets, query, config } = site
  const { atLoss, inBackup, reads } = observed
  transcript.begin('Check', 'The SHA-256 of every copy at the webhook and in the mailbox is compared with what was sent.')
  const targetList = kinds.map((kind) => targets.all[kind])
  const { counts, findings } = await check({ query }, workspace.id, load.sent, targetList, { failed: new Set() })
  const atTheEnd = await countCopies(site)
  const held = (kind: Kind) => atTheEnd.get(kind)!.size
  transcript.note(
    `${counts.acknowledged} documents were acknowledged. The webhook has ${held('webhook')} of them, the mailbox ${held('email')}.`,
  )
  transcript.note(`${counts.lost} lost, ${counts.altered} altered.`)

  const repeatedBefore = repetitions(atLoss)
  const repeatedAfter = repetitions(atTheEnd) - repeatedBefore
  transcript.note(`${repeatedBefore} were delivered twice before the loss, and ${repeatedAfter} by the restore.`)
  const notInBackup = sum(kinds.map((kind) => [...atLoss.get(kind)!.keys()].filter((docId) => !inBackup.has(nameOf(docId, kind))).length))
  const repeatedFromBackup = sum(
    kinds.map(
      (kind) =>
        [...atTheEnd.get(kind)!].filter(
          ([docId, times]) => times > (atLoss.get(kind)!.get(docId) ?? 0) && inBackup.has(nameOf(docId, kind)),
        ).length,
    ),
  )
  const proxy = await site.haproxy.counters()

  const zero = (name: string, value: number): Count => ({ name, value, goal: '0', isMet: value === 0 })
  const some = (name: string, value: number): Count => ({ name, value, goal: 'at least 1', isMet: value > 0 })
  const exactly = (name: string, value: number, goal: number): Count => ({ name, value, goal: String(goal), isMet: value === goal })
  return {
    findings,
    counts: [
      some('documents acknowledged', counts.acknowledged),
      some('... whose content is in a file', acknowledged().filter(({ sizeBytes }) => sizeBytes >= config.CONTENT_DIR_MIN_BYTES).length),
      some('... while the processes were replaced', observed.duringUpgrade),
      some('... since the backup began', observed.sinceBackup),
      zero('**lost**', counts.lost),
      zero('**altered**', counts.altered),
      zero('neither delivered nor failed', counts.stuck),
      exactly('documents at the webhook', held('webhook'), counts.acknowledged),
      exactly('documents in the mailbox', held('email'), counts.acknowledged),
      zero('creates refused or not answered', counts.refused),
      zero('answers of status 5xx at the proxy', proxy.serverErrors),
      zero('broken answers at the proxy', proxy.brokenAnswers),
      some('requests of readers answered', reads.answered),
      zero('requests of readers that failed', reads.failures.length),
      exactly('processes upgraded', observed.upgraded, 2 * replicas),
      zero('processes that ended by themselves', observed.crashesBefore + countCrashes(site)),
      zero('segments of the log whose archiving failed', observed.failedArchives),
      some('deliveries open at the loss', observed.open),
      zero('failed checks of the restored contents', observed.isComplete ? 0 : 1),
      zero('delivered twice before the loss', repeatedBefore),
      {
        name: 'delivered twice by the restore',
        value: repeatedAfter,
        goal: `at most ${notInBackup}: made before the loss, recorded after the log was archived`,
        isMet: repeatedAfter <= notInBackup,
      },
      zero('... although the backup has them as delivered', repeatedFromBackup),
    ],
  }
}
