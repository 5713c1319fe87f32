import { documentLockTimeoutMs } from '../archive/locks.ts'
import { idleTimeoutMs } from '../http/server.ts'

/** Limits of the receivers that are the same in every installation. */
export const receiverLimits = {
  /** Components in one multipart request. */
  maxParts: 1_000,
  /** Wait of a command for another one on the same document, before it is answered 409. */
  lockTimeoutMs: documentLockTimeoutMs,
  /** A body must deliver `minBodyBytes` in each such time that is spent waiting for it. */
  idleTimeoutMs,
  minBodyBytes: 1_024,
  /** Limit for reading the rest of a refused body, so that the client receives the answer. */
  lingerTimeoutMs: 5_000,
  /** Certificates of a repository that were sent and that no operator has activated. Beyond it, the oldest of the busiest address is deleted. */
  maxUnreviewedCertificates: 20,
  /** Certificates that one address may send to one process. */
  certificatesPerMinute: 30,
}

export type ReceiverLimits = typeof receiverLimits
