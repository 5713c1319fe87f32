import ipaddr from 'ipaddr.js'

const windowMs = 60_000

/** One IPv6 customer has a whole /64 to send from; an IPv4 address may come dressed as IPv6. */
const sourceOf = (address: string): string => {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6' ? parsed.toNormalizedString().split(':').slice(0, 4).join(':') : parsed.toString()
}

/**
 * Counts wrong tries per source address, in windows of a minute. Keeps at most `maxAddresses` of them, forgetting the oldest.
 * In memory, hence per process: the number is a brake, no ledger.
 */
export const createAttemptLimit = (perMinute: number, maxAddresses: number, now: () => number = Date.now) => {
  const windows = new Map<string, { startedAt: number; count: number }>()
  return {
    /** Counts one. @returns seconds until the next try is welcome, 0 while the limit is not passed. */
    count: (address: string): number => {
      const source = sourceOf(address)
      let window = windows.get(source)
      if (!window || now() - window.startedAt >= windowMs) {
        window = { startedAt: now(), count: 0 }
        windows.delete(source)
        windows.set(source, window)
        const oldest = windows.keys().next()
        if (windows.size > maxAddresses && !oldest.done) windows.delete(oldest.value)
      }
      window.count += 1
      return window.count <= perMinute ? 0 : Math.ceil((window.startedAt + windowMs - now()) / 1_000)
    },
  }
}

export type AttemptLimit = ReturnType<typeof createAttemptLimit>
