import { messageOf } from '../base/errors.ts'
import { DeliveryError, type AttemptContext, type Connector, type FindConnector, type Target } from './connector.ts'
import { contextOf, readTarget, type AttemptDeps, type OpenCredentials, type SealedDestination, type StoredDestination } from './target.ts'

export interface CallTargetDeps extends AttemptDeps {
  findConnector: FindConnector
  openCredentials: OpenCredentials
}

/** A destination as a statement has loaded it, with its sealed credentials. */
export interface StoredTarget extends SealedDestination {
  destination: StoredDestination
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
}

interface CallLimits {
  timeoutMs: number
  /** Aborted when the activity is cancelled, or its worker stops. */
  cancelled: AbortSignal
}

/**
 * Calls the target of a stored destination for a limited time, and turns every failure of it into a value: one that the connector does not
 * name is `unexpected`. `call` must touch nothing but the target, because a failure of the relay's own database is no failure of the target.
 * @param parts of the context of the call. `signal` replaces `cancelled`, for a connector that needs another reason
 * @returns what `call` returns, or a `DeliveryError`, which also stands for stored credentials that cannot be opened and a config that does not fit
 * @throws the reason of `cancelled`, and failures of the relay itself
 */
export const callTarget = async <Result>(
  deps: CallTargetDeps,
  stored: StoredTarget,
  { timeoutMs, cancelled }: CallLimits,
  call: (connector: Connector, target: Target<unknown, unknown>, context: AttemptContext) => Promise<Result>,
  { signal = cancelled, ...parts }: Partial<AttemptContext> = {},
): Promise<Result | DeliveryError> => {
  // Read from the database, and therefore neither within the time of the call nor among its failures.
  const installationId = await deps.installation.id()
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const { connector, target } = readTarget(deps.findConnector, stored.destination, (found) => deps.openCredentials(stored, found))
    const signals = AbortSignal.any([signal, timeout])
    return await call(
      connector,
      target,
      contextOf(deps, connector, target, { installationId, workspace: stored.workspace, ...parts, signal: signals }),
    )
  } catch (thrown) {
    cancelled.throwIfAborted()
    if (timeout.aborted) return new DeliveryError('attempt_timeout', `the attempt took longer than ${timeoutMs / 1_000} s`)
    return thrown instanceof DeliveryError ? thrown : new DeliveryError('unexpected', messageOf(thrown), { cause: thrown })
  }
}
