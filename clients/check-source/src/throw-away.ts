import { randomBytes, X509Certificate } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRequestSigner } from '../../../src/content-server/sign.ts'
import type { SigningKey } from '../../../src/security/cms-sign.ts'
import { createThrowAwayKey, type ThrowAwayKind } from '../../../src/security/throw-away-key.ts'
import { certificateMessageOf } from './certificate-message.ts'
import { Deviation } from './outcome.ts'
import type { ThrowAway } from './source.ts'

const validDays = 1
// Poll interval while an administrator activates the certificate.
const lookMs = 2_000

/** A key and its certificate before anybody knows how it becomes active. */
export type Identity = Pick<ThrowAway, 'signer' | 'certificate'> & { fingerprintSha256: string }

const newName = () => `content-server-check-${randomBytes(4).toString('hex')}`

const identityOf = (name: string, key: SigningKey): Identity => {
  const { raw, fingerprint256 } = new X509Certificate(key.certificate)
  return {
    // With a comma and an equals sign, as those of source systems.
    signer: createRequestSigner({ ...key, authId: `CN=${name},OU=Document Relay` }),
    certificate: { pem: key.certificate, der: raw },
    fingerprintSha256: fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

/** Makes a key and a certificate for one run. */
export const createIdentity = async (kind: ThrowAwayKind): Promise<Identity> => {
  const name = newName()
  return identityOf(name, await createThrowAwayKey(kind, name, validDays))
}

/** Makes a key whose certificate an authority has issued, and the message of both certificates. */
const createChain = async (): Promise<Identity & { message: Buffer }> => {
  const [name, issuer] = [newName(), { name: 'content-server-check authority' }]
  const authority = await createThrowAwayKey('rsa', issuer.name, validDays)
  const identity = identityOf(name, await createThrowAwayKey('rsa', name, validDays, { ...issuer, ...authority }))
  return { ...identity, message: certificateMessageOf(new X509Certificate(authority.certificate).raw, identity.certificate.der) }
}

/** Resolves when a certificate that was sent may be active. @throws `Deviation` if it will not be */
export type Activate = (identity: Identity, isAccepted: () => Promise<boolean>) => Promise<void>

/** Returns the keys of a run, whose certificates are activated in one way. */
export const throwAwayOf = (identity: Identity, activate: Activate): ThrowAway => ({
  ...identity,
  activated: (isAccepted) => activate(identity, isAccepted),
  chain: async () => {
    const chain = await createChain()
    return { ...chain, activated: (isAccepted) => activate(chain, isAccepted) }
  },
})

/**
 * Returns what waits until an administrator has activated a certificate.
 * @param ask tells the administrator, once the certificate has been sent
 */
export const awaitActivation =
  ({ waitMs, signal, ask }: { waitMs: number; signal: AbortSignal; ask: (identity: Identity) => void }): Activate =>
  async (identity, isAccepted) => {
    const deadline = Date.now() + waitMs
    if (await isAccepted()) return
    ask(identity)
    do {
      await sleep(lookMs, undefined, { signal })
      if (await isAccepted()) return
    } while (Date.now() < deadline)
    throw new Deviation(
      `the certificate was not activated within ${Math.round(waitMs / 60_000)} minutes`,
      `Activate the certificate with the SHA-256 ${identity.fingerprintSha256} for this repository, and run the check again. If the server ` +
        'shows others only, it has not taken that of the signer.',
    )
  }
