import type { Database } from '../db/database.ts'
import { createSealedCredentials } from '../db/sealed-credentials.ts'
import { credentialsOf, rfcCredentialsOf, SealError, type KeyRing } from '../security/seal.ts'

const batchRows = 100

/**
 * `relay keys rotate`: seals under the first key whatever another one has sealed, while the relay runs. Run again, it does nothing.
 * @returns how many were sealed anew, and the ids of destinations (or, for the bridge, workspaces) whose credentials no key opens
 */
export const rotateKeys = async (db: Database, keyRing: KeyRing): Promise<{ resealed: number; unreadable: string[] }> => {
  const credentials = createSealedCredentials(db)
  const unreadable: string[] = []
  let resealed = 0
  let lastId = ''
  for (;;) {
    const batch = await credentials.listSealedOtherwise(keyRing.sealingId, lastId, batchRows)
    for (const row of batch) {
      const owner = row.kind === 'destination' ? credentialsOf(row.workspaceId, row.id) : rfcCredentialsOf(row.workspaceId)
      try {
        // saved anew meanwhile means sealed anew: by a process that may still seal under the key before, hence "run again"
        if (await credentials.replace(row, keyRing.seal(keyRing.open(row.sealed, owner), owner))) resealed += 1
      } catch (thrown) {
        if (!(thrown instanceof SealError)) throw thrown
        unreadable.push(row.id)
      }
    }
    if (batch.length < batchRows) return { resealed, unreadable }
    lastId = batch.at(-1)!.id
  }
}
