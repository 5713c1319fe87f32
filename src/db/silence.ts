// A path to PostgreSQL may drop every packet without closing the connection: its host is lost, or a NAT has forgotten the flow. The kernel
// reports such a connection after 15 minutes if bytes are unacknowledged, so the relay has limits of its own.
import type { Socket } from 'node:net'
import type { Client } from 'pg'

/** An idle connection is checked by the kernel after this time, and then once a second, ten times (libuv sets both numbers). */
export const keepAliveMs = 10_000

// For the way of the answer after PostgreSQL has ended a statement.
const answerMs = 2_000
// For the goodbye at the end of a connection, which needs the other side.
const endMaxMs = 2_000

/** What pg has and its types do not tell. */
type OpenClient = Client & { connection: { stream: Socket } }

const socketOf = (client: Client) => (client as OpenClient).connection.stream

interface Watched {
  /** Time of `performance.now()` of the last answer. */
  answeredAt: number
  isBusy: boolean
}

/** The limits that statements set for themselves: `set local statement_timeout`, until their transaction ends. */
const ownLimit = /^set local statement_timeout = (\d+)/
const transactionEnd = /^(commit|rollback);?$/i

/**
 * Ends connections that do not answer. Each statement has the time that PostgreSQL allows it, and a little more for the answer; a statement
 * that lifts the limit of PostgreSQL for its transaction lifts this one, too.
 *
 * One connection that is silent is a reason to doubt the idle ones: those that have not answered since are ended with it. Otherwise each of
 * them would cost its next statement the whole time.
 */
export const createSilenceWatch = (statementTimeoutMs: number) => {
  const connections = new Map<Client, Watched>()

  const end = (client: Client, reason: string) => socketOf(client).destroy(new Error(`Connection terminated: ${reason}`))

  const endSilent = (silent: Client, since: number, limitMs: number) => {
    end(silent, `PostgreSQL has not answered within ${limitMs} ms`)
    for (const [client, { answeredAt, isBusy }] of connections) {
      if (client !== silent && !isBusy && answeredAt < since) end(client, 'another connection is silent')
    }
  }

  /** Watches a connection from now on. */
  return (client: Client): void => {
    const watched: Watched = { answeredAt: performance.now(), isBusy: false }
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
      watched.isBusy = true
      clearTimeout(timer)
      const startedAt = performance.now()
      if (limitMs > 0) timer = setTimeout(() => endSilent(client, startedAt, limitMs + answerMs), limitMs + answerMs)
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
}
