// What is sent to an installation of faults/production-main.ts, what its destinations hold, and how both are compared.
import { setTimeout as pause } from 'node:timers/promises'
import { readConfig } from '../src/config/config.ts'
import { until } from '../test/support/until.ts'
import { areSettled } from './check.ts'
import { createLoad, type Load, type Workspace } from './load.ts'
import type { Query } from './postgres.ts'
import { kinds, roundedSeconds, type Ground } from './production-ground.ts'
import type { Kind } from './targets.ts'
import type { Count } from './transcript.ts'
import { settleLimitMs, startClients } from './upgrade.ts'
import { setUpWorkspace } from './workspace.ts'

const KiB = 1024
const MiB = 1024 * KiB
const largestBytes = 16 * MiB
export const loadedMs = 10_000
const lateDocuments = 10
// The mails are open for minutes.
const retrySettings = { retry_max_interval_seconds: 20 }

export interface Traffic {
  workspace: Workspace
  load: Load
  /** Requests of the readers that have failed so far. */
  failedReads: string[]
  /** Documents that were answered 2xx. */
  acknowledged(): Load['sent']
  /** Stops the load and the readers. */
  end(): Promise<{ answered: number; failures: string[] }>
  stop(): Promise<void>
}

/** Creates a workspace, and starts the source systems and the readers at an address. Returns when the first documents are delivered. */
export const startTraffic = async (ground: Ground, baseUrl: string): Promise<Traffic> => {
  const { transcript, signer, targets, query } = ground
  const config = readConfig({ ...process.env, ...ground.variables() })
  const workspace = await setUpWorkspace({ config, baseUrl, signer, targets }, 'production', kinds, {
    configs: {},
    settings: retrySettings,
  })
  const load = createLoad({ seed: 'production', baseUrls: [baseUrl], workspace, signer, clients: 4, intervalMs: 1_000, largestBytes })
  load.start()
  const clients = startClients(baseUrl, workspace, load)
  const acknowledged = () => load.sent.filter(({ outcome }) => outcome === 'acknowledged')
  const traffic: Traffic = {
    workspace,
    load,
    failedReads: clients.failures,
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
    await until('the first documents are delivered', () => areSettled({ query }, workspace.id, docIds), Boolean, settleLimitMs)
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

/** Lets the mail server refuse every mail for now, so that deliveries to it stay open. */
export const sendMailAway = async ({ targets }: Pick<Ground, 'targets'>): Promise<void> => {
  targets.mail!.answerWith({
    onMailFrom: (_address, _session, done) => done(Object.assign(new Error('The mail server is away'), { responseCode: 451 })),
  })
  await pause(loadedMs)
}

/** Sends some documents after the restore, lets the mail server answer again, and waits until everything of a list has ended. */
export const finish = async ({ transcript, targets, query }: Ground, { workspace, load }: Traffic, docIds: string[]): Promise<void> => {
  const all = [...docIds]
  for (let count = 0; count < lateDocuments; count += 1) all.push((await load.create()).docId)
  targets.mail!.answerWith({})
  transcript.note(`${lateDocuments} more documents are sent. The mail server is back.`)
  const backAt = performance.now()
  let isSettled = false
  for (const deadline = Date.now() + settleLimitMs; !isSettled && Date.now() < deadline; await pause(500))
    isSettled = await areSettled({ query }, workspace.id, all)
  transcript.note(`${isSettled ? 'Every delivery has ended' : 'Deliveries are still open'} ${roundedSeconds(backAt)} later.`)
}

const nameOf = (docId: string, kind: string) => `${docId} ${kind}`

/** Returns the deliveries that the database has as delivered. */
export const readDelivered = async (query: Query): Promise<Set<string>> => {
  const recorded = await query<{ docId: string; kind: string }>(`
    select documents.doc_id as "docId", destinations.connector_type as kind
    from deliveries
    join documents on documents.id = deliveries.document_id
    join destinations on destinations.id = deliveries.destination_id
    where deliveries.status = 'delivered'
  `)
  return new Set(recorded.map(({ docId, kind }) => nameOf(docId, kind)))
}

export const countOpen = async (query: Query): Promise<number> => {
  const [row] = await query<{ open: number }>(`
    select count(*)::int as open
    from deliveries
    where status not in ('delivered', 'failed', 'cancelled')
  `)
  return row!.open
}

/** How often each destination has received each document. */
export type Copies = Map<Kind, Map<string, number>>

export const countCopies = async ({ targets }: Pick<Ground, 'targets'>): Promise<Copies> => {
  const copies: Copies = new Map()
  for (const kind of kinds) {
    const held = new Map<string, number>()
    for (const { docId } of await targets.all[kind].holdings()) held.set(docId, (held.get(docId) ?? 0) + 1)
    copies.set(kind, held)
  }
  return copies
}

export const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
const repetitions = (copies: Copies) => sum([...copies.values()].flatMap((held) => [...held.values()].map((times) => times - 1)))

export const zero = (name: string, value: number): Count => ({ name, value, goal: '0', isMet: value === 0 })
export const some = (name: string, value: number): Count => ({ name, value, goal: 'at least 1', isMet: value > 0 })
export const exactly = (name: string, value: number, goal: number): Count => ({ name, value, goal: String(goal), isMet: value === goal })

/**
 * Returns the counts of what was delivered twice.
 * @param atLoss what the destinations held when everything was lost
 * @param inBackup deliveries that the backup has as delivered
 * @param isInBackup tells if the backup has a document: another one is not delivered again
 */
export const repetitionCounts = (
  atLoss: Copies,
  atTheEnd: Copies,
  inBackup: Set<string>,
  isInBackup: (docId: string) => boolean = () => true,
): Count[] => {
  const before = repetitions(atLoss)
  const after = repetitions(atTheEnd) - before
  const countWhere = (copies: Copies, isCounted: (docId: string, kind: Kind, times: number) => boolean) =>
    sum(kinds.map((kind) => [...copies.get(kind)!].filter(([docId, times]) => isCounted(docId, kind, times)).length))
  const mayRepeat = countWhere(atLoss, (docId, kind) => isInBackup(docId) && !inBackup.has(nameOf(docId, kind)))
  const wrongly = countWhere(
    atTheEnd,
    (docId, kind, times) => times > (atLoss.get(kind)!.get(docId) ?? 0) && inBackup.has(nameOf(docId, kind)),
  )
  return [
    zero('delivered twice before the loss', before),
    {
      name: 'delivered twice by the restore',
      value: after,
      goal: `at most ${mayRepeat}: made before the loss, recorded after the backup`,
      isMet: after <= mayRepeat,
    },
    zero('... although the backup has them as delivered', wrongly),
  ]
}

export interface Result {
  counts: Count[]
  /** A line for each kind of deviation. */
  findings: string[]
}

/** Folders of the logs of the relay's processes, until the loss and since the restore. */
export const logFolders = { installed: 'logs', restored: 'logs-restored' }
