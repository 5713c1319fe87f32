import type { KeyLevel } from '../../src/security/levels.ts'

interface FuzzedWorkspace {
  /** `user/workspace`. */
  name: string
  keys: Record<KeyLevel, string>
}

/** Resources of the relay under test, from which the generators choose. */
export interface World {
  /** The workspace whose settings stay as they are, so that most requests reach their commands. */
  steady: FuzzedWorkspace
  /** The workspace whose settings change. */
  changing: FuzzedWorkspace
  /** A key of a workspace that no request names. */
  foreignKey: string
  foreignIds: string[]
  /** Ids by the first segment of their path. */
  ids: Record<string, string[]>
  /** Destinations that can be tested without leaving this machine. */
  testable: string[]
  /** Queries that are signed, and download links. */
  signedQueries: string[]
  links: string[]
  /** Texts that must not be found where they do not belong. */
  canaries: Canaries
}

interface Canaries {
  /** Secret of credentials, sensitive headers and parameters: neither in an answer nor in a log. */
  credential: string
  /** Text in contents of documents: not in a log. */
  content: string
}
