import { setTimeout as delay } from 'node:timers/promises'

export interface Load {
  /** Each client sends its next request when the one before has been answered. */
  clients: number
  seconds: number
  /** Pause of a client between two requests. */
  pauseMs?: () => number
}

export interface Answered {
  requests: number
  seconds: number
  latenciesMs: number[]
}

/** Sends requests until the time is up. Requests under way are awaited, and counted. */
export const runClients = async ({ clients, seconds, pauseMs }: Load, send: () => Promise<unknown>): Promise<Answered> => {
  const latenciesMs: number[] = []
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1_000
  const runClient = async () => {
    while (performance.now() < endsAt) {
      const sentAt = performance.now()
      await send()
      latenciesMs.push(performance.now() - sentAt)
      if (pauseMs) await delay(Math.min(pauseMs(), Math.max(endsAt - performance.now(), 0)))
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  return { requests: latenciesMs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesMs }
}
