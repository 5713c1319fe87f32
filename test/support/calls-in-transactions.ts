import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Database } from '../../src/db/database.ts'

// A transaction that waits for another system holds a connection of the pool, its locks, and the events of all workspaces that are written
// after it began. So nothing but the database is called between begin and commit: every test with a database watches its transactions.

/** Channels of Node on which each call is announced in the context of the caller. */
const channels = ['http.client.request.start', 'undici:request:create', 'net.client.socket']

interface Transaction {
  isOpen: boolean
}

/**
 * Watches the transactions of a database that are functions: `db.transaction(async (trx) => ...)`.
 * @returns a function that ends it, and throws an error with the stack of the first call to another system that was made inside of one
 */
export const watchTransactions = (db: Database): (() => void) => {
  const current = new AsyncLocalStorage<Transaction>()
  const { context } = db as Database & { context: { transaction(...parameters: unknown[]): Promise<unknown> } }
  const whole = context.transaction
  const begin = (...parameters: unknown[]) => whole.call(context, ...parameters)
  const transaction = (work: unknown, ...rest: unknown[]): Promise<unknown> => {
    if (typeof work !== 'function') return begin(work, ...rest)
    const watched = async (trx: unknown) => {
      const state = { isOpen: true }
      try {
        return await current.run(state, () => (work as (trx: unknown) => unknown)(trx))
      } finally {
        state.isOpen = false
      }
    }
    return begin(watched, ...rest)
  }
  // The property of the database itself cannot be changed.
  context.transaction = transaction

  const calls: string[] = []
  const note = (_: unknown, channel: string | symbol) => {
    if (!current.getStore()?.isOpen) return
    const { stack = '' } = new Error('here')
    // The pool opens a connection.
    if (stack.includes('/node_modules/pg/')) return
    calls.push(`${String(channel)}\n${stack}`)
  }
  for (const channel of channels) subscribe(channel, note)
  return () => {
    for (const channel of channels) unsubscribe(channel, note)
    if (calls.length > 0)
      throw new Error(`Another system was called ${calls.length} times between begin and commit. The first: ${calls[0]}`)
  }
}
