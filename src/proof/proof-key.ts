import { dayMs } from '../base/day.ts'
import type { Database } from '../db/database.ts'
import type { SigningKey } from '../security/cms-sign.ts'
import { proofKey, type KeyRing } from '../security/seal.ts'
import { createThrowAwayKey } from '../security/throw-away-key.ts'

// A time after 2049 has another form in certificates. A manifest must be verifiable for ten years and longer.
const validUntil = Date.UTC(2049, 11, 31)

interface Stored {
  certificate: string | null
  sealed: Buffer | null
}

const read = (db: Database): Promise<Stored | undefined> =>
  db('installation').first<Stored | undefined>({ certificate: 'proof_certificate', sealed: 'proof_key_sealed' })

/** Returns the key that signs manifests, which the first call creates. @throws `SealError` if no key of the ring opens it */
export const openProofKey = async (db: Database, keyRing: Pick<KeyRing, 'seal' | 'open'>, installationId: string): Promise<SigningKey> => {
  let stored = await read(db)
  if (!stored?.sealed) {
    const days = Math.floor((validUntil - Date.now()) / dayMs)
    const { certificate, privateKey } = await createThrowAwayKey('ec', `Document Relay ${installationId}`, days)
    const fresh = { proof_certificate: certificate, proof_key_sealed: keyRing.seal(privateKey, proofKey) }
    // Another process may be the first.
    await db('installation').whereNull('proof_key_sealed').update(fresh)
    stored = await read(db)
  }
  if (!stored?.sealed || stored.certificate === null) throw new Error('the table installation is empty')
  return { certificate: stored.certificate, privateKey: keyRing.open(stored.sealed, proofKey) as string }
}
