import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Client, type ClientConfig } from 'pg'
import { DatabaseUnavailable } from './errors.ts'

// A path to PostgreSQL may drop every packet without closing the connection: its host is lost, its processes are frozen, or a NAT has
// forgotten the flow. The kernel reports such a connection after 15 minutes if bytes are unacknowledged, so the relay has limits of its own.

// Time for the answer to arrive after PostgreSQL has ended a statement.
const answerMs = 2_000
// Time for the end of a connection, in which the other side takes part.
const endMaxMs = 2_000

// The limits of a pool whose statements answer requests: together they end a silence before a client has waited for 5 seconds.

/** Time without a byte from a connection after which the relay asks PostgreSQL whether it still works on the statement. */
const doubtMs = 1_000
/** Interval of checks of the connections in use, and of questions to a silent PostgreSQL. */
const lookMs = 250
/**
 * Limit for the answer to that question, over a connection of its own. Counted in steps, so that a process that was busy during one of them
 * still waits.
 */
const askMaxMs = 2_000
const askSteps = 4

/** What pg has and its types do not tell. */
type OpenClient = Client & { connection: { stream: Socket }; processID: number | null }

const socketOf = (client: Client) => (client as OpenClient).connection.stream

interface Watched {
  /** Times of `performance.now()`. */
  startedAt: number
  answeredAt: number
  /** When PostgreSQL was asked for the statement last. Each question doubles the time to the next one. */
  askedAt: number
  isBusy: boolean
  /** Received until the last look. The socket counts them: COPY takes the listeners of a connection. */
  bytes: number
}

/** The limits that statements set for themselves: `set local statement_timeout`, until their transaction ends. */
const ownLimit = /^set local statement_timeout = (\d+)/
const transactionEnd = /^(commit|rollback);?$/i

// What PostgreSQL says of a session whose statement it has not received, or whose answer was lost.
const idleSessions = `
  select pid
  from pg_stat_activity
  where pid = any($1)
    and state in ('idle', 'idle in transaction', 'idle in transaction (aborted)')
    and state_change < clock_timestamp() - interval '1 second'
`

/**
 * Asks PostgreSQL over a new connection which of the sessions do nothing. An error is also an answer.
 * @returns undefined if there is no answer in time
 */
const askForIdle = async (connection: ClientConfig, sessions: number[]): Promise<Set<number> | undefined> => {
  const client = new Client(connection)
  client.on('error', () => {})
  const answered = new AbortController()
  const waitForAnswer = async () => {
    for (let step = 0; step < askSteps; step += 1) await pause(askMaxMs / askSteps, undefined, { signal: answered.signal, ref: false })
    return undefined
  }
  const answer = client
    .connect()
    .then(() => client.query<{ pid: number }>(idleSessions, [sessions]))
    .then(
      ({ rows }) => new Set(rows.map(({ pid }) => pid)),
      () => new Set<number>(),
    )
  const idle = await Promise.race([answer, waitForAnswer().catch(() => undefined)])
  answered.abort()
  if (idle) void client.end().catch(() => {})
  setTimeout(() => socketOf(client).destroy(), idle ? endMaxMs : 0).unref()
  return idle
}

export interface SilenceOptions {
  statementTimeoutMs: number
  /** How PostgreSQL is asked whether it still works. Absent for a pool whose statements may take as long as PostgreSQL allows. */
  askWith?: ClientConfig
  /** False behind a pooler, which does not say which session runs a statement. */
  knowsSessions: boolean
}

/**
 * Ends connections that do not answer. Each statement has the time that PostgreSQL allows it, and a little more for the answer; a statement
 * that lifts the limit of PostgreSQL for its transaction also lifts this one.
 *
 * One connection that is silent is a reason to doubt the idle ones: those that have not answered since are ended with it. Otherwise each of
 * them would cost its next statement the whole time.
 *
 * With `askWith`, a statement without an answer is also a reason to ask PostgreSQL. If it does not answer either, and no connection has
 * received a byte since the question, all connections are ended, and none is given out until PostgreSQL answers. If it does, and the
 * session of the statement does nothing, that connection is ended. A statement on which PostgreSQL works goes on.
 */
export const createSilenceWatch = ({ statementTimeoutMs, askWith, knowsSessions }: SilenceOptions) => {
  const connections = new Map<Client, Watched>()
  const waiting = new Set<{ since: number; fail: (thrown: Error) => void }>()
  let lastByteAt = 0
  let isSilent = false
  let isAsking = false
  let looking: NodeJS.Timeout | undefined

  const end = (client: Client, reason: string) => socketOf(client).destroy(new Error(`Connection terminated: ${reason}`))

  const endSilent = (silent: Client, since: number, limitMs: number) => {
    end(silent, `PostgreSQL has not answered within ${limitMs} ms`)
    for (const [client, { answeredAt, isBusy }] of connections) {
      if (client !== silent && !isBusy && answeredAt < since) end(client, 'another connection is silent')
    }
  }

  const silence = () => new DatabaseUnavailable('PostgreSQL does not answer')

  const endAll = () => {
    isSilent = true
    for (const client of connections.keys()) end(client, 'PostgreSQL does not answer')
    for (const { fail } of waiting) fail(silence())
  }

  /** Notes which connections have received bytes. */
  const listen = (now: number) => {
    for (const [client, watched] of connections) {
      const bytes = socketOf(client).bytesRead
      if (bytes === watched.bytes) continue
      Object.assign(watched, { bytes, answeredAt: now })
      lastByteAt = now
    }
  }

  /** Returns the connections whose statement has waited for too long, since it was sent or PostgreSQL was asked for it. */
  const doubtful = (now: number): [Client, Watched][] =>
    [...connections].filter(([, { startedAt, answeredAt, askedAt, isBusy }]) => {
      const since = Math.max(startedAt, answeredAt)
      const waitMs = askedAt > since ? Math.max(doubtMs, askedAt - since) : doubtMs
      return isBusy && now - Math.max(since, askedAt) >= waitMs
    })

  const ask = async (connection: ClientConfig, doubted: [Client, Watched][]): Promise<void> => {
    const askedAt = performance.now()
    listen(askedAt)
    for (const [, watched] of doubted) watched.askedAt = askedAt
    const sessions = knowsSessions ? doubted.map(([client]) => (client as OpenClient).processID ?? 0) : []
    const idle = await askForIdle(connection, sessions)
    // What has arrived while this process was busy is read first.
    await new Promise(setImmediate)
    listen(performance.now())
    if (!idle) {
      if (lastByteAt <= askedAt) endAll()
      return
    }
    isSilent = false
    for (const [client, { answeredAt, startedAt, isBusy }] of doubted) {
      const isSame = isBusy && answeredAt <= askedAt && startedAt < askedAt
      if (isSame && idle.has((client as OpenClient).processID ?? 0)) end(client, 'PostgreSQL does not work on its statement')
    }
  }

  const look = (connection: ClientConfig) => {
    const now = performance.now()
    listen(now)
    const doubted = doubtful(now)
    const isWaiting = [...waiting].some(({ since }) => now - Math.max(since, lastByteAt) >= doubtMs)
    if ((isSilent || isWaiting || doubted.length > 0) && !isAsking) {
      isAsking = true
      void ask(connection, doubted).finally(() => {
        isAsking = false
      })
    }
    lookSoon()
  }

  /** Checks the connections as long as a caller waits for PostgreSQL. */
  const lookSoon = () => {
    if (!askWith || looking) return
    looking = setTimeout(() => {
      looking = undefined
      if (isSilent || waiting.size > 0 || [...connections.values()].some(({ isBusy }) => isBusy)) look(askWith)
    }, lookMs).unref()
  }

  /** Watches a connection from now on. */
  const watch = (client: Client): void => {
    const now = performance.now()
    const watched: Watched = { startedAt: now, answeredAt: now, askedAt: 0, isBusy: false, bytes: socketOf(client).bytesRead }
    lastByteAt = now
    connections.set(client, watched)
    let limitMs = statementTimeoutMs
    let timer: NodeJS.Timeout | undefined

    const send = client.query.bind(client) as (statement: unknown, ...rest: unknown[]) => unknown
    const query = (statement: unknown, ...rest: unknown[]) => {
      const text = typeof statement === 'string' ? statement : (statement as { text?: unknown }).text
      if (typeof text === 'string') {
        const own = ownLimit.exec(text)?.[1]
        if (own !== undefined) limitMs = Number(own)
        else if (transactionEnd.test(text)) limitMs = statementTimeoutMs
      }
      // A connection that has ended refuses the statement, and tells nothing else.
      if (!connections.has(client)) return send(statement, ...rest)
      const startedAt = performance.now()
      Object.assign(watched, { isBusy: true, startedAt, askedAt: 0 })
      clearTimeout(timer)
      if (limitMs > 0) timer = setTimeout(() => endSilent(client, startedAt, limitMs + answerMs), limitMs + answerMs)
      lookSoon()
      return send(statement, ...rest)
    }
    client.on('drain', () => {
      clearTimeout(timer)
      watched.answeredAt = performance.now()
      watched.isBusy = false
    })

    const endGently = client.end.bind(client) as (...rest: unknown[]) => unknown
    const endInTime = (...rest: unknown[]) => {
      // A connection that is lost already does not end again, and need not keep the process.
      const goodbye = setTimeout(() => socketOf(client).destroy(), endMaxMs).unref()
      client.once('end', () => clearTimeout(goodbye))
      return endGently(...rest)
    }
    client.once('end', () => {
      clearTimeout(timer)
      connections.delete(client)
    })
    Object.assign(client, { query, end: endInTime })
  }

  return {
    watch,

    /**
     * Waits for a connection of the pool, as long as PostgreSQL answers.
     * @param giveBack returns a connection that comes too late to the pool
     * @throws `DatabaseUnavailable` as soon as PostgreSQL is known to be silent
     */
    whileAnswering: async <Connection>(borrow: () => Promise<Connection>, giveBack: (late: Connection) => unknown): Promise<Connection> => {
      if (isSilent) throw silence()
      const { promise: failed, reject } = Promise.withResolvers<never>()
      const waiter = { since: performance.now(), fail: reject }
      waiting.add(waiter)
      lookSoon()
      let hasFailed = false
      const borrowed = borrow()
      try {
        return await Promise.race([borrowed, failed])
      } catch (thrown) {
        hasFailed = true
        throw thrown
      } finally {
        waiting.delete(waiter)
        if (hasFailed) borrowed.then(giveBack, () => {})
      }
    },
  }
}
