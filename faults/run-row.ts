import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../test/support/until.ts'
import { areSettled, check, type Counts } from './check.ts'
import type { Installation } from './installation.ts'
import { createLoad, type Load, type Workspace } from './load.ts'
import { startReader, type Reader } from './reader.ts'
import type { Kind, Target } from './targets.ts'
import { countTerminated, type TerminatedCounter } from './terminated.ts'

/** One fault. */
export interface Row {
  name: string
  /** Description of what is done, and of how the dependency returns. */
  fault: string
  /** Left out of the short form. */
  longOnly?: boolean
  /** Kinds of targets that every document goes to. Default: `objstore`, `sftp` and `webhook`. */
  kinds?: Kind[]
  /** Variables of the relay, if the row needs others. */
  variables?: (installation: Installation) => Record<string, string>
  /** Settings of destinations that differ from the usual. */
  configs?: (installation: Installation) => Partial<Record<Kind, object>>
  /** Settings of the workspace that differ from those of the other rows. */
  settings?: object
  /** True if it needs an installation of one machine, with a Temporal of its own. */
  oneMachine?: boolean
  /** True if no create may be refused. */
  acceptsAlways?: boolean
  /** Why targets that keep every message may get a document twice. Without it, none may. */
  mayDuplicate?: string
  /** Why the relay has to terminate workflows. Without it, it may terminate none. */
  mayTerminate?: string
  /** Why the row is known to fall short. It does not fail the run then. */
  known?: string
  /** Load to send before, during and after the fault. Default: two documents a second in the short form, and one every two seconds in the long form. */
  load?: { clients: number; intervalMs: number; largestBytes?: number }
  /** @returns the reason why this machine cannot run the row */
  cannotRun?: (installation: Installation) => Promise<string | undefined>
  /** Prepares the installation, before the load. */
  prepare?: (installation: Installation) => Promise<void>
  /** Causes the fault and ends it. Calls `scene.returned` at the moment from which the recovery counts. */
  run(scene: Scene): Promise<void>
  /** Undoes what the row did to the installation. */
  cleanUp?: (installation: Installation) => Promise<void>
}

export interface Scene {
  installation: Installation
  load: Load
  workspace: Workspace
  isShort: boolean
  /** Waits for one time in the short form and for another in the long form. */
  hold(shortMs: number, longMs: number): Promise<void>
  /** Marks the return of the dependency. */
  returned(): void
  /** Declares that a document must end `failed`. */
  expectFailed(docId: string): void
  /** Declares that a document must end `failed` after one attempt. */
  expectRefused(docId: string): void
  /** Adds a line to the findings. */
  note(text: string): void
}

export interface Outcome {
  row: Row
  /** Absent if the row was not run. */
  counts?: Counts
  /** Workflows that the relay has terminated during the row. Absent if the row was not run to its end. */
  terminated?: number
  /** Absent if not recovered within the limit. */
  recoverySeconds?: number
  findings: string[]
  /** Missed goals. */
  shortfalls: string[]
  /** Why the row was not run. */
  notRun?: string
}

export const recoveryGoalSeconds = 30
const defaultKinds: Kind[] = ['objstore', 'sftp', 'webhook']
const warmUpMs = 2_000
const warmUpDocuments = 5

export const runRow = async (
  installation: Installation,
  row: Row,
  { seed, isShort, settleLimitMs = isShort ? 90_000 : 240_000 }: { seed: string; isShort: boolean; settleLimitMs?: number },
): Promise<Outcome> => {
  const notRun = await row.cannotRun?.(installation)
  if (notRun !== undefined) return { row, findings: [], shortfalls: [], notRun }
  const kinds = row.kinds ?? defaultKinds
  const targets: Target[] = kinds.map((kind) => installation.targets.all[kind])
  for (const target of targets) await target.clear()
  await installation.configure(row.variables?.(installation) ?? {})
  await row.prepare?.(installation)
  const slug = `${row.name}-${Date.now().toString(36)}`
  const workspace = await installation.createWorkspace(slug, kinds, {
    configs: row.configs?.(installation) ?? {},
    settings: row.settings ?? {},
  })
  const load = createLoad({
    seed: `${seed} ${row.name}`,
    baseUrls: installation.baseUrls,
    workspace,
    signer: installation.signer,
    clients: isShort ? 2 : 4,
    // What waits at the end of a long fault must fit into the goal of the recovery: two cores deliver some eight documents a second to
    // three targets, and a destination whose circuit was open takes back one a second from each worker.
    intervalMs: isShort ? 1_000 : 8_000,
    largestBytes: (isShort ? 8 : 32) * 1024 * 1024,
    ...row.load,
  })
  const crashesBefore = crashesOf(installation)
  const failed = new Set<string>()
  const refused = new Set<string>()
  const notes: string[] = []
  let returnedAt: number | undefined
  let reader: Reader | undefined
  let counter: TerminatedCounter | undefined
  try {
    counter = await countTerminated(installation.temporal)
    reader = await startReader(installation.baseUrls, workspace)
    load.start()
    await pause(warmUpMs)
    const acknowledgedCount = () => load.sent.filter(({ outcome }) => outcome === 'acknowledged').length
    await until('the first documents are acknowledged', () => acknowledgedCount() >= warmUpDocuments)
    await row.run({
      installation,
      load,
      workspace,
      isShort,
      hold: (shortMs, longMs) => pause(isShort ? shortMs : longMs),
      returned: () => void (returnedAt = Date.now()),
      expectFailed: (docId) => void failed.add(docId),
      expectRefused: (docId) => [failed, refused].forEach((each) => each.add(docId)),
      note: (text) => void notes.push(text),
    })
    returnedAt ??= Date.now()
    const deadline = Date.now() + settleLimitMs
    const recoverySeconds = await untilRecovered(installation, workspace, load, returnedAt, deadline)
    const acknowledged = load.sent.filter(({ outcome }) => outcome === 'acknowledged').map(({ docId }) => docId)
    for (; Date.now() < deadline; await pause(250)) {
      if (await areSettled(installation, workspace.id, acknowledged)) break
    }
    const { counts, findings } = await check(installation, workspace.id, load.sent, targets, { failed, refused })
    const misread = await reader.check(installation.query, deadline)
    const terminated = await counter.stop()
    const crashes = crashesOf(installation) - crashesBefore
    if (crashes > 0) notes.push(`${crashes} x a process of the relay ended by itself and was started again`)
    return {
      row,
      counts,
      terminated,
      ...(recoverySeconds !== undefined && { recoverySeconds }),
      findings: [...notes, ...findings],
      shortfalls: [...shortfallsOf(row, { ...counts, terminated }, recoverySeconds), ...misread],
    }
  } finally {
    await load.stop()
    await load.close()
    await reader?.close()
    await counter?.close()
    await row.cleanUp?.(installation)
  }
}

const crashesOf = ({ processes }: Installation) => processes.reduce((sum, one) => sum + one.crashes(), 0)

/**
 * Waits until a create is acknowledged again and every document that was acknowledged before the return is delivered.
 * @returns the seconds from the return to the later of the two
 */
const untilRecovered = async (
  installation: Installation,
  workspace: Workspace,
  load: Load,
  returnedAt: number,
  deadline: number,
): Promise<number | undefined> => {
  const accepted = () => load.sent.find(({ outcome, answeredAt }) => outcome === 'acknowledged' && answeredAt > returnedAt)
  while (!accepted() && Date.now() < deadline) await pause(100)
  // Documents that arrive now say nothing about the fault, but delay the ones that do.
  await load.stop()
  const before = load.sent.filter(({ outcome, answeredAt }) => outcome === 'acknowledged' && answeredAt <= returnedAt)
  const docIds = before.map(({ docId }) => docId)
  for (; Date.now() < deadline; await pause(250)) {
    const first = accepted()
    if (first && (await areSettled(installation, workspace.id, docIds).catch(() => false))) {
      return (Math.max(first.answeredAt, Date.now()) - returnedAt) / 1_000
    }
  }
  return undefined
}

const shortfallsOf = (row: Row, counts: Counts & { terminated: number }, recoverySeconds: number | undefined): string[] => {
  const found: string[] = []
  for (const name of ['lost', 'altered', 'stuck'] as const) if (counts[name] > 0) found.push(`${counts[name]} ${name}`)
  if (counts.acknowledged === 0) found.push('nothing acknowledged')
  if (counts.duplicated > 0 && row.mayDuplicate === undefined) found.push(`${counts.duplicated} duplicated`)
  if (counts.terminated > 0 && row.mayTerminate === undefined) found.push(`${counts.terminated} terminated by the relay`)
  if (counts.refused > 0 && row.acceptsAlways) found.push(`${counts.refused} refused`)
  if (recoverySeconds === undefined) found.push('not recovered')
  else if (recoverySeconds > recoveryGoalSeconds) found.push(`recovered after ${recoverySeconds.toFixed(0)} s`)
  return found
}
