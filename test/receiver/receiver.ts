import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { pino } from 'pino'
import { receiverUseCases } from '../../src/app/use-cases.ts'
import { createCaptureStore } from '../../src/capture/capture-store.ts'
import { createCaptureQueue } from '../../src/capture/queue.ts'
import { createSealedQueries } from '../../src/capture/redact.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import type { ContentStore } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import { createThreads } from '../../src/http/threads.ts'
import { createReceiver } from '../../src/receiver/app.ts'
import type { ReceiverLimits } from '../../src/receiver/limits.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { createSourceSystem } from '../support/source-system.ts'

export interface ReceiverOptions {
  /** Opens the content store; by default PostgreSQL. */
  openStore?: ((db: Database) => ContentStore) | undefined
  limits?: Partial<ReceiverLimits>
}

/** Starts a receiver on its own port, without Temporal: what it receives waits for the dispatcher. */
export const startReceiver = async (
  db: Database,
  variables: Record<string, string> = {},
  { openStore = createPostgresStore, limits = {} }: ReceiverOptions = {},
) => {
  const config = testConfig(variables)
  const writeTo = openStore(db)
  const stores = createSegmentedStores(db, { [writeTo.kind]: writeTo })
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const captures = createCaptureQueue(createCaptureStore(db), config, log, { writeIntervalMs: 20 })
  const sealedQueries = createSealedQueries(createKeyRing([`test:${randomBytes(32).toString('base64')}`]))
  const threads = createThreads(config)
  const receiver = createReceiver({
    captures,
    sealedQueries,
    runOnThread: threads.run,
    ...receiverUseCases(db, { ...config, ...limits }),
    contents: { stores, writeTo },
    launch: () => {},
    config,
    limits,
    log,
  })
  const app = new Koa()
  app.silent = true
  // The HTTP server sets a policy for every surface, which an answer of the receiver must replace or remove.
  app.use((ctx, next) => {
    ctx.set('Content-Security-Policy', "default-src 'none'")
    return next()
  })
  app.use(receiver.middleware)
  app.use((ctx) => {
    ctx.status = 418
    ctx.body = 'not for the receiver'
  })
  const handle = app.callback()
  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    stores,
    log: lines,
    replay: receiver.replay,
    openQuery: sealedQueries.open,
    metrics: receiver.metrics,
    /** Its `close` writes the captures that are still in the queue. */
    captures,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await captures.close()
      await threads.close()
    },
  }
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>

export const longAgo = '2026-03-02T10:15:30Z'

/**
 * Starts a database and a receiver. `workspace` creates a workspace with the repository Z1, its destinations, and a source system that
 * calls it.
 */
export const startScene = async (variables: Record<string, string> = {}, receiverOptions: ReceiverOptions = {}) => {
  const database: TestDatabase = await createTestDatabase()
  const receiver: Receiver = await startReceiver(database.db, variables, receiverOptions)
  const closers: (() => Promise<void>)[] = []

  const workspace = async (destinations = [{ name: 'archive' }], options: Parameters<typeof createRoutes>[2] = {}) => {
    const wiring = await createRoutes(database.db, destinations, options)
    const path = `/receiver/acme/${wiring.workspaceSlug}`
    const source = createSourceSystem(receiver.baseUrl + path, { repoId: wiring.repoId })
    closers.push(source.close)
    /** Dates everything that was received of a document back to `longAgo`. */
    const age = async (docId: string) => {
      const key = { workspace_id: wiring.workspaceId, doc_id: docId }
      await database.db('archive_documents').where(key).update({ created_at: longAgo, modified_at: longAgo })
      await database.db('documents').where(key).update({ received_at: longAgo, modified_at: longAgo })
    }
    return { ...wiring, path, source, age }
  }
  return {
    ...database,
    receiver,
    workspace,
    /** Counts the rows that a create writes. A failed request must leave none. */
    countRows: async (workspaceId: string) => {
      const { db } = database
      const inWorkspace = { workspace_id: workspaceId }
      const contents = await db('contents').where(inWorkspace)
      const [archiveDocuments, documents] = await Promise.all([
        db('archive_documents').where(inWorkspace),
        db('documents').where(inWorkspace),
      ])
      return { archiveDocuments: archiveDocuments.length, documents: documents.length, contents: contents.length }
    },
    stop: async () => {
      for (const close of closers) await close()
      await receiver.stop()
      await database.drop()
    },
  }
}

export type Scene = Awaited<ReturnType<typeof startScene>>
export type SceneWorkspace = Awaited<ReturnType<Scene['workspace']>>
