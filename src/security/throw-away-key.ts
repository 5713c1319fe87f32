import { createPrivateKey, generateKeyPair, randomBytes, X509Certificate, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { dayMs } from '../base/day.ts'
import { signBytes, signatureAlgorithms, type SigningDigest, type SigningKey } from './cms-sign.ts'
import { bits, integer, nothing, oid, sequence, setOf, tagged, utcTime, utf8 } from './der.ts'

const generate = promisify(generateKeyPair)

/** Kinds of keys. Source systems sign with the first two. Generating the numbers of a DSA key takes about a second. */
export type ThrowAwayKind = 'rsa' | 'dsa' | 'ec'

const digest: SigningDigest = 'sha256'
const commonName = oid('2.5.4.3')
const version3 = tagged(0, integer(Buffer.from([2])))
// In a certificate, unlike in a CMS signature, the algorithm of an RSA signature names its digest.
const certificateAlgorithms = {
  rsa: sequence(oid('1.2.840.113549.1.1.11'), nothing),
  dsa: signatureAlgorithms['dsa']![digest],
  ec: signatureAlgorithms['ec']![digest],
}

/**
 * Creates a key pair with a certificate, as a source system does.
 * @param name the common name in the certificate
 * @param days for which the certificate is valid
 * @param issuer its name and RSA key. Without it, the certificate is self-signed
 */
export const createThrowAwayKey = async (
  kind: ThrowAwayKind,
  name: string,
  days: number,
  issuer?: Pick<SigningKey, 'privateKey'> & { name: string },
): Promise<SigningKey> => {
  const { publicKey, privateKey } = await generatePair(kind)
  const algorithm = certificateAlgorithms[issuer ? 'rsa' : kind]
  const issuerKey = issuer ? createPrivateKey(issuer.privateKey) : privateKey
  const now = Date.now()
  // Clocks differ.
  const validity = sequence(utcTime(new Date(now - dayMs)), utcTime(new Date(now + days * dayMs)))
  const serialNumber = integer(Buffer.concat([Buffer.from([1]), randomBytes(15)]))
  const [issuedBy, subject] = [nameOf(issuer?.name ?? name), nameOf(name)]
  const content = sequence(
    version3,
    serialNumber,
    algorithm,
    issuedBy,
    validity,
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const der = sequence(content, algorithm, bits(signBytes(content, issuerKey, digest)))
  return {
    certificate: new X509Certificate(der).toString(),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const nameOf = (commonNameText: string) => sequence(setOf(sequence(commonName, utf8(commonNameText))))

const generatePair = (kind: ThrowAwayKind): Promise<{ publicKey: KeyObject; privateKey: KeyObject }> => {
  if (kind === 'ec') return generate('ec', { namedCurve: 'P-256' })
  return kind === 'rsa' ? generate('rsa', { modulusLength: 2_048 }) : generate('dsa', { modulusLength: 2_048, divisorLength: 256 })
}
