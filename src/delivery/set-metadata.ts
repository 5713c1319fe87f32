import { checkEarly, keepEarly } from '../archive/early-metadata.ts'
import { setMetadata, type SetMetadataOf } from '../archive/metadata.ts'
import { notFound } from '../base/refusals.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { beginWaitingForData, planAnew } from './enriched.ts'
import { updateCopies } from './late-data.ts'

interface SetMetadataDeps {
  findConnector: FindConnector
}

/**
 * Creates the function that sets what is told about a docId. Deliveries that have not begun are planned again, those whose filter waits for it are
 * decided, and copies that were delivered before get it as late data.
 */
export const createSetMetadata =
  (db: Database, deps: SetMetadataDeps): SetMetadataOf =>
  (workspaceId, document, change, actor, unknown = 'refuse') =>
    db.transaction(async (trx) => {
      const set = await setMetadata(trx, workspaceId, document, change, actor)
      if (!set && unknown === 'keep') return keepEarly(trx, workspaceId, document, change, actor)
      if (!set) throw notFound()
      const { changedIds, ...told } = set
      if (changedIds.length === 0) return told
      await planAnew(trx, changedIds)
      await beginWaitingForData(trx, changedIds, false)
      await updateCopies(trx, changedIds, deps)
      return told
    })

// The next run takes the others.
const checkedMax = 1_000

/** Sets what was told about documents that were created at the same moment, without it. @returns their number */
export const settleEarlyMetadata = async (db: Database, deps: SetMetadataDeps): Promise<number> => {
  const set = createSetMetadata(db, deps)
  const missed = await checkEarly(db, checkedMax)
  for (const { workspaceId, metadata, remove, ...document } of missed) {
    const change = Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null))
    await set(workspaceId, document, change, systemActor, 'keep')
    await remove()
  }
  return missed.length
}
