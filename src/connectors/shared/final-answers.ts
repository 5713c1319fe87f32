import { finalStatuses, isPermanentStatus } from './final-statuses.ts'
import { saysClock, saysThatItPasses } from './passing-words.ts'

/** What a target says that no time changes, for the documentation of a kind. */
export interface FinalAnswer {
  /** A status, or a status and the codes that the target sends with it. */
  answer: string
  meaning: string
}

/** Returns rows for the statuses that are final at a kind of target. @param except statuses that pass there, or that other rows describe */
export const finalStatusRows = (except: readonly number[] = []): FinalAnswer[] =>
  Object.entries(finalStatuses)
    .filter(([status]) => !except.includes(Number(status)))
    .map(([status, meaning]) => ({ answer: status, meaning }))

/** Returns rows for the codes of a table. */
export const codeRows = (meanings: Readonly<Record<string, string>>, before = ''): FinalAnswer[] =>
  Object.entries(meanings).map(([code, meaning]) => ({ answer: `${before}\`${code}\``, meaning }))

/**
 * The statuses with which also a gateway before a store, which has limits of its own, says something about the request itself that no time
 * changes.
 */
export const gatewayStatuses: Readonly<Record<number, string>> = {
  413: 'the document is larger than a server on the way accepts',
  414: 'the address is longer than a server on the way accepts',
  431: 'the headers are larger than a server on the way accepts',
  508: 'the request has come back to where it came from',
}

export const gatewayRow: FinalAnswer = {
  answer: Object.keys(gatewayStatuses).join(', '),
  meaning: 'what they mean [at a webhook](webhook.md#answers-that-are-final), also of a server on the way',
}

// With these, a server may mean a limit, a lock or a clock: it has no other status for that, or does not use it.
const vagueStatuses = new Set([400, 403, 422])

/** An answer of a server that may be anything. */
interface Answer {
  status: number
  /** The time after which the answer asks the relay to try again: then the refusal passes, whatever its status is. */
  waitMs: number | undefined
  /** What it says. */
  text: string
  /** `true` if it is a page for people. A firewall or a proxy in between answers 403 with one, and programs do not. */
  isPage: boolean
}

/** Returns true if an answer says something that no time changes. */
export const isFinalAnswer = ({ status, waitMs, text, isPage }: Answer): boolean => {
  if (!isPermanentStatus(status, waitMs) || (status === 403 && isPage)) return false
  if (status === 401) return !saysClock.test(text)
  return !(vagueStatuses.has(status) && saysThatItPasses(text))
}
