import type { Running } from '../app/runtime.ts'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'

/**
 * Returns a signal that SIGTERM and Ctrl-C abort. The handlers are installed immediately, and only for the first
 * signal: a second one ends the process without a clean shutdown.
 */
export const createStopSignal = (): AbortSignal => {
  const controller = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => controller.abort(new UserError(`Stopped by ${signal}.`)))
  }
  return controller.signal
}

/**
 * Waits until the signal is aborted or `ended` settles, then stops the parts in reverse order.
 * @param ended the end of a part that may end by itself
 */
export const runUntilStopped = async (
  stopSignal: AbortSignal,
  parts: (Running | undefined)[],
  log: Log,
  ended?: Promise<void>,
): Promise<void> => {
  try {
    await Promise.race([aborted(stopSignal), ...(ended ? [ended] : [])])
    log.info('stopping')
  } finally {
    for (const part of parts.toReversed()) await part?.stop()
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
