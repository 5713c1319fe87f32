import { DeliveryError } from '../connectors/connector.ts'

/**
 * Brings back what only a destination has, for a limited time, before it is replaced or changed there.
 * @param save returns why that failed
 * @returns why nothing may be replaced or changed; undefined if it may be
 * @throws the reason of `cancelled`, and failures of the relay itself
 */
export const saveFirst = async (
  save: (signal: AbortSignal) => Promise<DeliveryError | undefined>,
  { timeoutMs, cancelled }: { timeoutMs: number; cancelled: AbortSignal },
): Promise<DeliveryError | undefined> => {
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    return await save(AbortSignal.any([cancelled, timeout]))
  } catch (thrown) {
    cancelled.throwIfAborted()
    if (!timeout.aborted) throw thrown
    return new DeliveryError('attempt_timeout', `what only the destination has was not brought back within ${timeoutMs / 1_000} s`)
  }
}
