// Runs a relay as in production from its packages: three API processes behind HAProxy and three workers, a cluster of Temporal, contents in
// files. Upgrades it under load, backs it up, destroys it, and restores it as docs/backup.md says. That of one machine: production-machine.ts.
import { rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { nextVersion } from './build.ts'
import { check } from './check.ts'
import { kinds, roundedSeconds, type Installed, type Run } from './production-ground.ts'
import { createSite, type Block, type Site } from './production-site.ts'
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
  sum,
  zero,
  type Result,
  type Traffic,
} from './production-traffic.ts'
import type { Kind } from './targets.ts'
import { replaceOneByOne, replicas, versionIn } from './upgrade.ts'

/** The blocks of docs/backup.md that are run, in this order. */
export const backupBlocks = {
  archive: [['Archive the write-ahead log', 0]],
  underLoad: [['Take a base backup'], ['Copy the contents']],
  atTheEnd: [['Archive everything until now'], ['Copy the contents'], ['Archive the write-ahead log', 1]],
  restore: [['1. Restore the database', 0], ['2. Restore the contents']],
  verify: [['3. Check'], ['4. Remove files without a document', 0]],
  start: [['5. Start']],
} satisfies Record<string, Block[]>

const countCrashes = (site: Site) => sum(site.processes().map((one) => one.crashes()))

/** Runs everything, and writes it into the transcript. */
export const runProduction = async (options: Run): Promise<Result> => {
  const site = await createSite(options)
  const to = await start(site)
  site.transcript.begin(
    'Load',
    'Source systems create documents through the proxy, and readers use the management API. Every document goes to a webhook and to a mailbox.',
  )
  const traffic = await startTraffic(site, site.haproxy.url)
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
  await site.run('relay migrate')
  await site.startProcesses(logFolders.installed)
  return to
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
  await site.run('relay migrate')
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

const backUp = async (site: Site, { acknowledged, end }: Traffic) => {
  const { transcript, query } = site
  transcript.begin(
    'Backup under load',
    'The mail server goes away: it answers 451, so deliveries to it stay open. The base backup and the first copy of the contents are made while documents arrive.',
  )
  await sendMailAway(site)
  const before = acknowledged().length
  await site.follow(backupBlocks.underLoad)
  await pause(loadedMs)
  const reads = await end()
  const sinceBackup = acknowledged().length - before
  transcript.note(
    `${sinceBackup} documents were acknowledged since the backup began. The load stops, and everything until now is archived.`,
  )
  const inBackup = await readDelivered(query)
  const archiver = await site.follow(backupBlocks.atTheEnd)
  return {
    reads,
    sinceBackup,
    failedArchives: Number(/\|\s+(\d+)\s+\|/.exec(archiver)?.[1]),
    inBackup,
  }
}

const loseEverything = async (site: Site, { acknowledged }: Traffic) => {
  const { transcript, commands, query } = site
  transcript.begin('Total loss', 'Every process is killed, and the data of PostgreSQL, the contents and Temporal are removed.')
  const open = await countOpen(query)
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

const restore = async (site: Site, traffic: Traffic) => {
  const { transcript } = site
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
  const docIds = traffic.acknowledged().map(({ docId }) => docId)
  await finish(site, traffic, docIds)
  return { isComplete: verified.includes('none is damaged.') }
}

type Observed = Awaited<ReturnType<typeof upgrade>> &
  Awaited<ReturnType<typeof backUp>> &
  Awaited<ReturnType<typeof loseEverything>> &
  Awaited<ReturnType<typeof restore>>

const compare = async (site: Site, { workspace, load, acknowledged }: Traffic, observed: Observed): Promise<Result> => {
  const { targets, query, config } = site
  const { atLoss, inBackup, reads } = observed
  const targetList = kinds.map((kind) => targets.all[kind])
  const { counts, findings } = await check({ query }, workspace.id, load.sent, targetList, { failed: new Set() })
  const atTheEnd = await countCopies(site)
  const held = (kind: Kind) => atTheEnd.get(kind)!.size
  const proxy = await site.haproxy.counters()
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
      ...repetitionCounts(atLoss, atTheEnd, inBackup),
    ],
  }
}
