import { addAbortSignal } from 'node:stream'
import type { ContentStore } from '../content/store.ts'
import { inTransaction, type Database } from '../db/database.ts'

interface BringBackDeps {
  db: Database
  /** The contents that are at their home. */
  home: Pick<ContentStore, 'read'>
  /** The store that gets the bytes. */
  writeTo: ContentStore
}

/** A content at its home, and the document that owns it. */
export interface ContentAtHome {
  contentId: string
  documentId: string
  workspaceId: string
  sizeBytes: number
}

/**
 * Creates the function that brings a content back from its home into a store of the relay. The document gets another content with the same bytes. The
 * copy at the home stays, and the relay does not need it any more.
 */
export const createBringBack =
  ({ db, home, writeTo }: BringBackDeps) =>
  /**
   * @returns false if the document has another content by now, or none
   * @throws `HomeFailure`, the reason of the signal, or errors of the store
   */
  async ({ contentId, documentId, workspaceId, sizeBytes }: ContentAtHome, signal: AbortSignal): Promise<boolean> => {
    const bytes = addAbortSignal(signal, home.read({ id: contentId, sizeBytes }))
    const content = await writeTo.write(workspaceId, bytes).catch((thrown: unknown) => {
      signal.throwIfAborted()
      throw thrown
    })
    let isBack = false
    try {
      isBack = await inTransaction(db, async (trx, rollback) => {
        await content.own(trx)
        const changed = await trx('documents').where({ id: documentId, content_id: contentId }).update({ content_id: content.id })
        if (changed === 0) return rollback(false)
        // Readers may finish. The job remove-orphans removes the row later.
        await trx('contents').where({ id: contentId }).update({ owned_at: null, created_at: trx.fn.now() })
        return true
      })
      return isBack
    } finally {
      if (!isBack) await content.discard()
    }
  }

export type BringBack = ReturnType<typeof createBringBack>
