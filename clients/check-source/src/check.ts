import type { FactId } from './facts.ts'
import type { Source } from './source.ts'

/** Sets of checks. Each contains the sets before it. */
export const profiles = ['smoke', 'core', 'wire', 'full'] as const

export type Profile = (typeof profiles)[number]

/** What a check needs of its run. Without it, the check is `not_checked`. */
export type Need =
  /** The server has accepted a request of this run. */
  | 'access'
  /** The run signs its requests. */
  | 'signature'
  /** The run has made its certificate itself, and sends it. */
  | 'throw-away'

export interface Check {
  /** Stable name, for filters and for comparisons of runs. */
  id: string
  /** What a good server does, as a sentence. */
  title: string
  /** The smallest profile that contains the check. */
  profile: Profile
  facts: readonly FactId[]
  /** If it is undefined, `access` only. */
  needs?: readonly Need[]
  /** What to do about a failure. */
  remedy: string
  /** @throws `Deviation`, `NotOffered` or `NotChecked` */
  run(source: Source): Promise<void>
}
