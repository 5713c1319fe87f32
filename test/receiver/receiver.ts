import type { AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import { once } from 'node:events'
import Koa from 'koa'
import { pino } from 'pino'
import { createCaptureQueue } from '../../src/capture/queue.ts'
import { upsertCaptures } from '../../src/db/captures.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { Database } from '../../src/db/database.ts'
import type { DocumentMessage } from '../../src/db/outbox.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createSources } from '../../src/db/sources.ts'
import { createReceiver } from '../../src/receiver/app.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, testConfig } from '../support/factories.ts'
import { createSourceSystem } from '../support/source-system.ts'

/** A receiver on a real socket, and nothing else: what it would start is only noted. */
export const startReceiver = async (db: Database, variables: Record<string, string> = {}) => {
  const config = testConfig(variables)
  const store = createPostgresStore(db)
  const launched: DocumentMessage[] = []
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const captures = createCaptureQueue((batch) => upsertCaptures(db, batch), config, log)
  const receiver = createReceiver({
    captures,
    db,
    sources: createSources(db),
    receipts: createReceipts(db, config),
    contents: { stores: { postgres: store, s3: undefined }, writeTo: store },
    launch: (messages) => {
      for (const message of messages) if (message.kind === 'document') launched.push(message)
    },
    config,
    log,
  })
  const app = new Koa()
  app.silent = true
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
    launched,
    log: lines,
    replay: receiver.replay,
    /** Writes what has been captured and not written yet, and ends the writing. */
    captures,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await captures.close()
    },
  }
}

type Started = Awaited<ReturnType<typeof startReceiver>>

export const longAgo = '2026-03-02T10:15:30Z'

/** Database, receiver, a workspace with repository Z1 wired to one destination, and a source system that speaks to it. */
export const startScene = async (variables: Record<string, string> = {}) => {
  const database: TestDatabase = await createTestDatabase()
  const receiver: Started = await startReceiver(database.db, variables)
  const closers: (() => Promise<void>)[] = []

  const workspace = async (destinations = [{ name: 'archive' }], options: Parameters<typeof createWiring>[2] = {}) => {
    const wiring = await createWiring(database.db, destinations, options)
    const path = `/receiver/acme/${wiring.workspaceSlug}`
    const source = createSourceSystem(receiver.baseUrl + path, { repoId: wiring.repoId })
    closers.push(source.close)
    /** As if all that has been received of a document so far had come on that day. */
    const age = async (docId: string) => {
      const of = { workspace_id: wiring.workspaceId, doc_id: docId }
      await database.db('archive_documents').where(of).update({ created_at: longAgo, modified_at: longAgo })
      await database.db('documents').where(of).update({ received_at: longAgo, modified_at: longAgo })
    }
    return { ...wiring, path, source, age }
  }
  return {
    ...database,
    receiver,
    workspace,
    /** What is left of requests that came to nothing: everything that create writes. */
    leftovers: async (workspaceId: string) => {
      const { db } = database
      const of = { workspace_id: workspaceId }
      const contents = await db('contents').where(of)
      const [archiveDocuments, documents] = await Promise.all([db('archive_documents').where(of), db('documents').where(of)])
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
