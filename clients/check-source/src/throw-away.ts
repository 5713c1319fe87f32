import { randomBytes, X509Certificate } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRequestSigner } from '../../../src/content-server/sign.ts'
import { createThrowAwayKey, type ThrowAwayKind } from '../../../src/security/throw-away-key.ts'
import { Deviation } from './outcome.ts'
import type { ThrowAway } from './source.ts'

const validDays = 1
// Poll interval while an administrator activates the certificate.
const lookMs = 2_000

/** A throw-away before anybody knows how its certificate becomes active. */
export type Identity = Omit<ThrowAway, 'activated'> & { fingerprintSha256: string }

/** Makes a key and a certificate for one run. */
export const createIdentity = async (kind: ThrowAwayKind): Promise<Identity> => {
  const name = `content-server-check-${randomBytes(4).toString('hex')}`
  const key = await createThrowAwayKey(kind, name, validDays)
  const { raw, fingerprint256 } = new X509Certificate(key.certificate)
  return {
    // With a comma and an equals sign, as those of source systems.
    signer: createRequestSigner({ ...key, authId: `CN=${name},OU=Document Relay` }),
    certificate: { pem: key.certificate, der: raw },
    fingerprintSha256: fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

/**
 * Returns a throw-away that waits until an administrator has activated its certificate.
 * @param ask tells the administrator, once the certificate has been sent
 */
export const awaitActivation = (
  identity: Identity,
  { waitMs, signal, ask }: { waitMs: number; signal: AbortSignal; ask: () => void },
): ThrowAway => ({
  ...identity,
  activated: async (isAccepted) => {
    const deadline = Date.now() + waitMs
    if (await isAccepted()) return
    ask()
    do {
      await sleep(lookMs, undefined, { signal })
      if (await isAccepted()) return
    } while (Date.now() < deadline)
    throw new Deviation(
      `the certificate was not activated within ${Math.round(waitMs / 60_000)} minutes`,
      `Activate the certificate with the SHA-256 ${identity.fingerprintSha256} for this repository, and run the check again.`,
    )
  },
})
