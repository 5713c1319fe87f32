import { isOnHold, shareHolds } from '../archive/legal-holds.ts'
import { endOfProven, isSettled } from '../archive/removable.ts'
import { messageOf } from '../base/errors.ts'
import { idPrefixAt } from '../base/ids.ts'
import { DeliveryError } from '../connectors/connector.ts'
import type { Database } from '../db/database.ts'
import { isOutage } from '../db/errors.ts'
import type { BringBack, ContentAtHome } from './bring-back.ts'
import { HomeFailure } from './failure.ts'

/** A delivery that is about to be made. */
interface Replacing {
  documentId: string
  destinationId: string
  /** See `placeOf`. */
  place: string
}

/** Finds contents that a destination alone has. @param condition on `home_contents` */
const findAtHome = async (db: Database, condition: string, values: object): Promise<ContentAtHome[]> => {
  const { rows } = await db.raw<{ rows: ContentAtHome[] }>(
    `
    select
      home_contents.content_id as "contentId", documents.id as "documentId", documents.workspace_id as "workspaceId",
      size_bytes as "sizeBytes"
    from home_contents
    join documents on documents.id = home_contents.document_id and documents.content_id = home_contents.content_id
    where home_contents.destination_id = :destinationId
      and ${condition}
    order by documents.id
    `,
    { ...values },
  )
  return rows
}

/** Returns false if the document has another content by now, or none. */
const isOwned = async (db: Database, { documentId, contentId }: ContentAtHome): Promise<boolean> =>
  (await db('documents').where({ id: documentId, content_id: contentId }).first('id')) !== undefined

/**
 * Releases the content of a document that the source system has replaced or deleted, if nothing is left to be done with it and it is in a manifest.
 * @returns false if the document must keep it
 */
const release = (db: Database, { workspaceId, documentId, contentId }: ContentAtHome, now: Date): Promise<boolean> =>
  db.transaction(async (trx) => {
    await shareHolds(trx, workspaceId)
    const proven: { to: Date } | undefined = await trx('workspaces')
      .where({ id: workspaceId })
      .first(trx.raw(`${endOfProven} as "to"`, { now }))
    if (!proven) return false
    const { rows } = await trx.raw<{ rows: object[] }>(
      `
      with document as (
        update documents
        set content_id = null
        where id = :documentId
          and content_id = :contentId
          and superseded_at is not null
          and id < :provenId
          and ${isSettled('documents')}
          and not ${isOnHold('documents')}
        returning id
      )
      update contents
      set owned_at = null, created_at = now()
      from document
      where contents.id = :contentId
      returning contents.id
      `,
      { documentId, contentId, provenId: idPrefixAt(proven.to) },
    )
    return rows.length > 0
  })

interface SaveDeps {
  db: Database
  bringBack: BringBack
  now?: () => Date
}

/**
 * Brings contents back before something is done at their home. One that is lost there is released if the source system has replaced or deleted its
 * document, and neither a hold nor what retention waits for is against it.
 * @returns undefined if it may be done, and otherwise why not
 * @throws the reason of the signal, and failures of the relay itself
 */
const save = async (
  { db, bringBack, now = () => new Date() }: SaveDeps,
  contents: ContentAtHome[],
  what: string,
  signal: AbortSignal,
): Promise<DeliveryError | undefined> => {
  for (const content of contents) {
    try {
      await bringBack(content, signal)
    } catch (thrown) {
      signal.throwIfAborted()
      if (isOutage(thrown)) throw thrown
      if (!(thrown instanceof HomeFailure))
        return new DeliveryError('content_unreadable', `what only the destination has could not be stored: ${messageOf(thrown)}`, {
          cause: thrown,
        })
      // Another delivery to the same place has brought it back, and may have replaced it.
      if (!(await isOwned(db, content))) continue
      if (thrown.cause instanceof DeliveryError) return thrown.cause
      if (thrown.what !== 'altered') return new DeliveryError('content_unreadable', thrown.message)
      if (await release(db, content, now())) continue
      const text = `${what} the document ${content.documentId}, which only this destination has, and which cannot be brought back first`
      return new DeliveryError('content_altered', `${text}: ${thrown.message}`)
    }
  }
  return undefined
}

/** Creates the function that brings back what a delivery would replace at a home, before it does. See `save`. */
export const createSaveReplaced = (deps: SaveDeps) => async (replacing: Replacing, signal: AbortSignal) => {
  const condition = 'folded_place(home_contents.path) = folded_place(:place) and home_contents.document_id <> :documentId'
  return save(deps, await findAtHome(deps.db, condition, replacing), 'it would replace', signal)
}

/** Creates the function that brings back a document before it is changed at its home. See `save`. */
export const createSaveUpdated = (deps: SaveDeps) => async (copy: Omit<Replacing, 'place'>, signal: AbortSignal) => {
  const { documentId, destinationId } = copy
  const found = await findAtHome(deps.db, 'home_contents.document_id = :documentId', { documentId, destinationId })
  return save(deps, found, 'it may change', signal)
}
