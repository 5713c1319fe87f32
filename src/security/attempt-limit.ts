import { createTtlCache } from '../base/ttl-cache.ts'
import { sourceOf } from './address-filter.ts'

const windowMs = 60_000
// An entry takes a few hundred bytes.
const maxAddressesCounted = 10_000

/**
 * Counts wrong attempts per source address in windows of one minute. Keeps at most `maxAddresses` addresses and drops the least
 * recently seen one. The count is per process and in memory: it slows down guessing and is not an exact total.
 * @param now clock in milliseconds that no change of the time of day affects
 */
export const createAttemptLimit = (
  perMinute: number,
  { maxAddresses = maxAddressesCounted, now = () => performance.now() }: { maxAddresses?: number; now?: () => number } = {},
) => {
  const windows = createTtlCache<{ endsAtMs: number; count: number }>({ maxEntries: maxAddresses, now })
  const secondsUntilAllowed = ({ endsAtMs }: { endsAtMs: number }) => Math.ceil((endsAtMs - now()) / 1_000)
  return {
    /** Returns the seconds until the next attempt is allowed, 0 while the limit is not reached. Counts nothing. */
    wait: (address: string): number => {
      const window = windows.get(sourceOf(address))
      return window && window.count >= perMinute ? secondsUntilAllowed(window) : 0
    },

    /** Counts one attempt. @returns seconds until the next attempt is allowed, 0 while the limit is not exceeded */
    count: (address: string): number => {
      const source = sourceOf(address)
      const window = windows.get(source) ?? { endsAtMs: now() + windowMs, count: 0 }
      window.count += 1
      windows.set(source, window, window.endsAtMs)
      return window.count <= perMinute ? 0 : secondsUntilAllowed(window)
    },
  }
}

export type AttemptLimit = ReturnType<typeof createAttemptLimit>
