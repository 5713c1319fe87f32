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
  /** If it is undefined, `is a risk`. */
  urgency?: (typeof urgencies)[number]
  /** The checks that must have succeeded. */
  needs?: readonly ('database' | 'schema' | 'secret keys' | 'temporal')[]
  /** Condition of the hardening checklist that a hardened installation meets, as docs/security.md and `relay doctor` state it. */
  requirement?: string
  /** Remedy for what the check finds. */
  remedy: string
  /** False if this run does not have the check. */
  applies?(deps: Deps): boolean
  /** @throws `Problem` if the relay cannot work */
  find(deps: Deps): Found | Promise<Found>
}

/** Result of a passed check: a message, warnings, or both. A warning is a condition that stops nothing and needs an operator. */
export type Found = string | string[] | { message: string; warnings: string[]; remedy?: string }

/** A condition that prevents the relay from working. */
export class Problem extends UserError {
  /** If it is undefined, that of the check. */
  readonly remedy: string | undefined

  constructor(message: string, remedy?: string) {
    super(message)
    this.name = 'Problem'
    this.remedy = remedy
  }
}

/** Remedy for a problem whose message says what to do. */
export const correctVariables = 'Run relay doctor with the environment variables of the API, after correcting them.'

/** Returns a function that throws an error of the user as a problem with this remedy, and any other error as it is. */
export const problemWith =
  (remedy: string | undefined) =>
  (thrown: unknown): never => {
    throw thrown instanceof UserError ? new Problem(thrown.message, remedy) : thrown
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

/** Lists the column `name` of a query. */
export const listNames = async (db: Database, query: string): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(query)
  return rows.map(({ name }) => name)
}

/** Lists the first names, and says how many more there are. */
export const listed = (names: string[], max = 5): string =>
  `${names.slice(0, max).join(', ')}${names.length > max ? ` and ${names.length - max} more` : ''}`
