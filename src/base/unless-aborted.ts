/**
 * Waits for a result that other callers also wait for.
 * @param begin returns the work, or joins it. It is not called if the signal is aborted
 * @throws the reason of the signal as soon as it is aborted; the work goes on
 */
export const unlessAborted = async <Result>(begin: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result> => {
  if (!signal) return begin()
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([begin(), aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
