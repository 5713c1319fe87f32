import { version } from '../../../src/base/version.ts'
import type { Check, Need, Profile } from './check.ts'
import { checksOf } from './checks.ts'
import { linesOf } from './checks/server.ts'
import { NoAnswer } from './http.ts'
import { Deviation, NotChecked, NotOffered } from './outcome.ts'
import { createSource, type Source, type Target } from './source.ts'

export const resultStatuses = ['passed', 'failed', 'not_offered', 'not_checked'] as const

export interface Result {
  id: string
  title: string
  status: (typeof resultStatuses)[number]
  /** What was found; `null` if the check passed. */
  message: string | null
  /** What to do; `null` unless the check failed. */
  remedy: string | null
  duration_ms: number
}

export interface Report {
  /** Version of the relay, whose checks these are. */
  version: string
  url: string
  cont_rep: string
  profile: Profile
  signed: boolean
  /** What serverInfo says about the server: vendor and version. `null` if it says nothing. */
  server: string | null
  started_at: string
  duration_ms: number
  passed: number
  failed: number
  not_offered: number
  not_checked: number
  /** True if the run was stopped before its end. */
  interrupted: boolean
  /** The docIds of documents that the server may still have. Empty if the run has left nothing behind. */
  left_behind: string[]
  results: Result[]
}

export interface RunOptions {
  profile: Profile
  /** Wait for an answer, and for each next piece of it. */
  timeoutMs?: number
  /** Stops the run, which then still deletes its documents. */
  signal?: AbortSignal
  onResult?: (result: Result) => void
  /** Is told each docId under which the run may create a document. */
  onDocument?: (docId: string) => void
}

const defaultTimeoutMs = 30_000
// A server that answers nothing is not asked sixty times.
const noAnswersMax = 3
// For all documents of a run together, also after Ctrl-C.
const cleanUpMaxMs = 60_000

/** Runs the checks of a profile one after another, and deletes the documents that they have created. */
export const runChecks = async (target: Target, options: RunOptions): Promise<Report> => {
  const { profile, timeoutMs = defaultTimeoutMs, signal = new AbortController().signal, onResult, onDocument } = options
  const [startedAt, began] = [new Date(), performance.now()]
  const source = createSource(target, { timeoutMs, signal }, onDocument)
  const results: Result[] = []
  let server: string | null = null
  try {
    for await (const result of resultsOf(source, profile, signal)) {
      results.push(result)
      onResult?.(result)
      if (result.id === 'server-info' && result.status === 'passed') server = await describeServer(source).catch(() => null)
    }
    const leftBehind = await source.deleteDocuments(AbortSignal.timeout(cleanUpMaxMs))
    const count = (status: Result['status']) => results.filter((result) => result.status === status).length
    return {
      version,
      url: target.url.href,
      cont_rep: target.contRep,
      profile,
      signed: source.isSigned,
      server,
      started_at: startedAt.toISOString(),
      duration_ms: Math.round(performance.now() - began),
      passed: count('passed'),
      failed: count('failed'),
      not_offered: count('not_offered'),
      not_checked: count('not_checked'),
      interrupted: signal.aborted,
      left_behind: leftBehind,
      results,
    }
  } finally {
    await source.close()
  }
}

/** Returns true if the server passed, and the run has left nothing behind. */
export const isGood = ({ failed, interrupted, left_behind: left }: Pick<Report, 'failed' | 'interrupted' | 'left_behind'>): boolean =>
  failed === 0 && !interrupted && left.length === 0

async function* resultsOf(source: Source, profile: Profile, signal: AbortSignal): AsyncGenerator<Result, void, undefined> {
  let [hasAccess, noAnswers] = [false, 0]
  const missingOf = ({ needs = ['access'] }: Check): string | undefined => {
    if (noAnswers >= noAnswersMax) return 'the server does not answer any more'
    const missing: Record<Need, string | undefined> = {
      access: hasAccess ? undefined : 'the server does not accept the requests of this run',
      signature: source.isSigned ? undefined : 'the run is unsigned',
      'throw-away': source.target.throwAway ? undefined : 'the run does not send a certificate of its own',
    }
    return needs.map((need) => missing[need]).find((reason) => reason !== undefined)
  }

  for (const check of checksOf(profile)) {
    if (signal.aborted) return
    const missing = missingOf(check)
    const { result, thrown } = missing === undefined ? await runCheck(check, source) : notChecked(check, missing)
    if (signal.aborted) return
    if (check.id === 'access') hasAccess = result.status === 'passed'
    if (missing === undefined) noAnswers = thrown instanceof NoAnswer ? noAnswers + 1 : 0
    yield result
  }
}

interface Ran {
  result: Result
  thrown?: unknown
}

const notChecked = ({ id, title }: Check, message: string): Ran => ({
  result: { id, title, status: 'not_checked', message, remedy: null, duration_ms: 0 },
})

const runCheck = async (check: Check, source: Source): Promise<Ran> => {
  const { id, title } = check
  const began = performance.now()
  const durationMs = () => Math.round(performance.now() - began)
  try {
    await check.run(source)
    return { result: { id, title, status: 'passed', message: null, remedy: null, duration_ms: durationMs() } }
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown
    const { message } = thrown
    const ended = { id, title, message, duration_ms: durationMs() }
    if (thrown instanceof NotOffered) return { result: { ...ended, status: 'not_offered', remedy: null }, thrown }
    if (thrown instanceof NotChecked) return { result: { ...ended, status: 'not_checked', remedy: null }, thrown }
    const own = thrown instanceof Deviation ? thrown.remedy : undefined
    return { result: { ...ended, status: 'failed', remedy: own ?? check.remedy }, thrown }
  }
}

const describeServer = async ({ ask }: Source): Promise<string | null> => {
  const [server] = linesOf(await ask('serverInfo'))
  return [server?.['serverVendorId'], server?.['serverVersion']].filter(Boolean).join(' ') || null
}
