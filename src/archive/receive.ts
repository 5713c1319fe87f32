import { inTransaction, type Database, type Transaction } from '../db/database.ts'
import type { StartDocument } from '../db/outbox.ts'
import {
  insertDocuments,
  isOneStatement,
  ownContents,
  type InsertConfig,
  type Inserted,
  type InsertedDocument,
  type ReceivedDocument,
} from './insert-documents.ts'

/**
 * Commits a create: archive document, contents, documents, planned deliveries and the messages that start their workflows, all or none.
 * If no destination is wired to the repository, the documents are discarded and their contents are not kept.
 * The function returns `created: false` if the docId exists already; the contents are then still unowned.
 */
export const createReceive =
  (db: Database, config: InsertConfig) =>
  async (received: ReceivedDocument): Promise<{ created: boolean; documents: InsertedDocument[]; messages: StartDocument[] }> => {
    const { components, repository } = received
    const mode = repository.routes.length === 0 ? 'discard' : 'create'
    const positions = components.map((_, position) => ({ position }))
    const insert = (executor: Database | Transaction) => insertDocuments(executor, { mode }, received, positions, config)

    const insertInTransaction = () =>
      inTransaction<Inserted>(db, async (trx, rollback) => {
        await ownContents(trx, received)
        const result = await insert(trx)
        return result.inserted ? result : rollback(result)
      })

    const { inserted, ...rest } = isOneStatement(components) ? await insert(db) : await insertInTransaction()
    return { created: inserted, ...rest }
  }

export type Receive = ReturnType<typeof createReceive>
