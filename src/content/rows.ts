import type { Database, Transaction } from '../db/database.ts'
import type { ContentStore, UnownedContent } from './store.ts'

/** A content that is being written: should the process die now, the sweep finds it by this row. */
export const insertUnownedContent = async (db: Database, content: { id: string; workspaceId: string; store: ContentStore['kind'] }) => {
  await db('contents').insert({ id: content.id, workspace_id: content.workspaceId, store: content.store })
}

/** @throws where the sweep was faster: the document must not be committed without its bytes */
export const ownContent = async (trx: Transaction, content: Omit<UnownedContent, 'own' | 'discard'>): Promise<void> => {
  const owned = await trx('contents')
    .where({ id: content.id })
    .whereNull('owned_at')
    .update({ size_bytes: content.sizeBytes, sha256: content.sha256, owned_at: trx.fn.now() })
  if (owned !== 1) throw new Error(`content ${content.id} was removed before a document came to own it`)
}

export const deleteUnownedContent = async (db: Database | Transaction, id: string): Promise<boolean> =>
  (await db('contents').where({ id }).whereNull('owned_at').delete()) > 0
