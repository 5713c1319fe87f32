import { UserError } from '../base/errors.ts'

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
