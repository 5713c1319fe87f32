import { UserError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import type { openTemporal } from '../../temporal/client.ts'

/** Arguments of every check. */
export interface CheckDeps {
  config: Config
  db: Database
  temporal: ReturnType<typeof openTemporal>
  /** Where the configuration comes from, for the finding that names the environment. */
  source: string
  /** True if PostgreSQL stores its data in RELAY_DATA_DIR. */
  isEmbedded: boolean
  /** The file of `relay apply`, if the workspaces are to be compared with it, and the environment that it refers to. */
  workspacesFile?: { path: string; variables: NodeJS.ProcessEnv } | undefined
}

/** Effects of a condition on the relay, the worst first. */
export const urgencies = ['stops', 'loses', 'delays', 'is a risk'] as const

/** A line of `relay doctor`. */
export interface Check<Deps = CheckDeps> {
  name: string
  urgency: (typeof urgencies)[number]
  /** The checks that must have succeeded. */
  needs: readonly ('database' | 'schema' | 'secret keys' | 'temporal')[]
  /** False if this run does not have the check. */
  applies?(deps: Deps): boolean
  /** Returns what is in order, or a report. @throws Problem if the relay cannot work */
  run(deps: Deps): string | Report | Promise<string | Report>
}

/** Result of a check that has not failed. */
export interface Report {
  message: string
  /** Conditions that stop nothing, but that need an operator. */
  warnings: string[]
  /** Remedy for the warnings. */
  remedy: string
}

/** A condition that a check has found and that prevents the relay from working. */
export class Problem extends UserError {
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.name = 'Problem'
    this.remedy = remedy
  }
}

const clockDifferenceMaxMs = 5_000

/** @param whose the other clock, as in "The clock of PostgreSQL" */
export const describeClockDifference = (
  whose: string,
  { before, theirs, after }: { before: number; theirs: number; after: number },
): string[] => {
  // Between the two readings, any of our times may be that of the answer.
  const differenceMs = Math.max(before - theirs, theirs - after, 0)
  if (differenceMs < clockDifferenceMaxMs) return []
  return [`The clock of ${whose} is ${Math.round(differenceMs / 1_000)} seconds ${theirs > after ? 'ahead' : 'behind'}.`]
}
