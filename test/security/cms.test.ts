import { X509Certificate } from 'node:crypto'
import { readCertificate } from '../../src/security/certificate.ts'
import { readSignature, verifies } from '../../src/security/cms.ts'
import { share } from '../support/share.ts'
import { signWithShortDsa } from '../support/short-dsa.ts'
import { createSigner, keyKinds, type KeyKind, type Signer, type SigningOptions } from '../support/signer.ts'

const message = 'Z1005056B5A3F21EEFA9C1D04F7B6E8C11rCN%3DTST20301231235959'
const signers = {} as Record<KeyKind, Signer>

await Promise.all((Object.keys(keyKinds) as KeyKind[]).map(async (kind) => (signers[kind] = share(await createSigner(kind)))))

const keyOf = (kind: KeyKind) => new X509Certificate(signers[kind].der).publicKey
const check = (signature: Buffer, kind: KeyKind, text = message) => {
  const read = readSignature(signature)
  return read ? verifies(read, Buffer.from(text), keyOf(kind)) : 'unreadable'
}

const digests = ['md5', 'ripemd160', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512']
const minimal = ['-nocerts', '-nosmimecap']
const cases: [string, KeyKind, SigningOptions][] = [
  ...digests.map((digest): [string, KeyKind, SigningOptions] => [digest, 'RSA 2048', { digest, options: minimal }]),
  ...digests
    .filter((digest) => digest.startsWith('sha'))
    .map((digest): [string, KeyKind, SigningOptions] => [
      `PSS and ${digest}`,
      'RSA 2048',
      { digest, options: [...minimal, '-keyopt', 'rsa_padding_mode:pss'] },
    ]),
  ...['sha1', 'sha224', 'sha256'].map((digest): [string, KeyKind, SigningOptions] => [digest, 'DSA 1024', { digest, options: minimal }]),
  ...['sha1', 'sha256'].map((digest): [string, KeyKind, SigningOptions] => [digest, 'DSA 2048', { digest, options: minimal }]),
  ...['sha1', 'sha224', 'sha256', 'sha384', 'sha512'].flatMap((digest): [string, KeyKind, SigningOptions][] => [
    [digest, 'P-256', { digest, options: minimal }],
    [digest, 'P-521', { digest, options: minimal }],
  ]),
  ['md5', 'RSA 1024', { digest: 'md5', options: minimal }],
  ['sha256', 'RSA-PSS 2048', { digest: 'sha256', options: minimal }],
  ['no attributes and md5', 'RSA 2048', { digest: 'md5', options: [...minimal, '-noattr'] }],
  ['no attributes and sha256', 'RSA 2048', { digest: 'sha256', options: [...minimal, '-noattr'] }],
  ['no attributes and sha1', 'DSA 1024', { options: [...minimal, '-noattr'] }],
  ['no attributes and sha256', 'P-256', { digest: 'sha256', options: [...minimal, '-noattr'] }],
  ['embedded certificates', 'DSA 1024', { options: [] }],
  ['a key identifier', 'RSA 2048', { digest: 'sha256', options: [...minimal, '-keyid'] }],
  ['embedded content', 'DSA 1024', { options: [...minimal, '-nodetach'] }],
  ['embedded content and no attributes', 'RSA 2048', { digest: 'sha256', options: [...minimal, '-nodetach', '-noattr'] }],
  ['indefinite lengths', 'RSA 2048', { digest: 'sha256', options: [...minimal, '-stream', '-nodetach'] }],
  ['indefinite lengths and no content', 'DSA 1024', { options: [...minimal, '-stream'] }],
  ['openssl smime', 'DSA 1024', { program: 'smime' }],
]

describe('a signature', () => {
  test.each(cases)('with %s and a key of type %s is verified, and a tampered one is not', async (_, kind, options) => {
    const signature = await signers[kind].sign(message, options)
    expect(check(signature, kind)).toBe(true)
    expect(check(signature, kind, message.replace('8C11', '8C12'))).toBe(false)
    // In all these cases the signature value is at the end.
    const tampered = Buffer.from(signature)
    tampered[tampered.lastIndexOf(readSignature(signature)!.value) + 20]! ^= 1
    expect(check(tampered, kind)).toBe(false)
  })

  test('is not valid for another key of the same or another type', async () => {
    const otherSigner = await createSigner('DSA 1024')
    const signature = await otherSigner.sign(message)
    expect(verifies(readSignature(signature)!, Buffer.from(message), new X509Certificate(otherSigner.der).publicKey)).toBe(true)
    for (const kind of Object.keys(keyKinds) as KeyKind[]) expect(check(signature, kind)).toBe(false)
    await otherSigner.remove()
  })

  test('covers its attributes, so a matching digest alone is not enough', async () => {
    const [first, second] = [await signers['DSA 1024'].sign(message), await signers['DSA 1024'].sign('something else')]
    const [firstRead, secondRead] = [readSignature(first)!, readSignature(second)!]
    expect(verifies({ ...secondRead, attributes: firstRead.attributes }, Buffer.from(message), keyOf('DSA 1024'))).toBe(false)
    // Conversely, signed attributes must not be accepted as a message.
    const attributesAsMessage = secondRead.attributes!.encoded
    expect(verifies(secondRead, attributesAsMessage, keyOf('DSA 1024'))).toBe(false)
  })

  test('has the signer id of its certificate', async () => {
    for (const kind of ['DSA 1024', 'RSA 2048', 'P-256'] as const) {
      const signerId = readSignature(await signers[kind].sign(message, { digest: 'sha256' }))?.signerId
      expect(signerId).toBe(readCertificate(signers[kind].der)?.signerId)
      expect(signerId).not.toBe(readCertificate(signers['DSA 2048'].der)?.signerId)
    }
    const byKey = readSignature(await signers['DSA 1024'].sign(message, { options: ['-nocerts', '-keyid'] }))
    expect([byKey?.digest, byKey?.signerId]).toEqual(['sha1', undefined])
  })

  test('with an unknown algorithm identifier, as an old library writes it, is verified', async () => {
    const signature = await signers['DSA 1024'].sign(message, { options: minimal })
    const dsaWithSha1 = Buffer.from('06072a8648ce380403', 'hex')
    expect(signature.includes(dsaWithSha1)).toBe(true)
    // Replace it with an unknown identifier of the same length.
    const renamed = Buffer.from(signature)
    Buffer.from('06072b0e0302860f0f', 'hex').copy(renamed, signature.indexOf(dsaWithSha1))
    expect(check(renamed, 'DSA 1024')).toBe(true)
  })

  test('with a 512-bit key, which OpenSSL reads but no longer generates, is verified', async () => {
    const { key, signature: value } = await signWithShortDsa(message)
    const signature = { digest: 'sha1', content: undefined, attributes: undefined, isPss: false, value, signerId: undefined }
    expect(key.asymmetricKeyDetails).toMatchObject({ modulusLength: 512 })
    expect(verifies(signature, Buffer.from(message), key)).toBe(true)
    expect(verifies(signature, Buffer.from(`${message}0`), key)).toBe(false)
  })

  test('is invalid after a change of any covered byte, and no change makes the reader throw', async () => {
    const signature = await signers['DSA 1024'].sign(message, { options: minimal })
    const { attributes, value } = readSignature(signature)!
    const covered = [attributes!.encoded.subarray(1), value].flatMap((bytes) => {
      const start = signature.indexOf(bytes)
      return Array.from(bytes, (_, index) => start + index)
    })
    expect(covered.length).toBeGreaterThan(100)
    const changed = (index: number) => {
      const copy = Buffer.from(signature)
      copy[index]! ^= 0xff
      return copy
    }
    for (const index of covered) expect([index, check(changed(index), 'DSA 1024')]).not.toEqual([index, true])
    for (const index of signature.keys()) expect(() => check(changed(index), 'DSA 1024')).not.toThrow()
  })

  test('of another text is not valid because that text or the certificate of its signer is embedded', async () => {
    const attacker = await createSigner('RSA 2048')
    const embedded = await signers['RSA 2048'].sign('something else', { digest: 'sha256', options: [...minimal, '-nodetach'] })
    expect(check(embedded, 'RSA 2048')).toBe(false)
    const ownCertificate = await attacker.sign(message, { digest: 'sha256', options: [] })
    expect(check(ownCertificate, 'RSA 2048')).toBe(false)
    await attacker.remove()
  })

  test('with several signers is not read, so that the signature of one cannot stand for another', async () => {
    const { der } = signers['RSA 2048']
    const second = ['-signer', 'certificate.pem', '-inkey', 'key.pem', '-md', 'sha1']
    const twice = await signers['RSA 2048'].sign(message, { digest: 'sha256', options: [...minimal, ...second] })
    expect(twice.length).toBeGreaterThan(der.length / 2)
    expect(check(twice, 'RSA 2048')).toBe('unreadable')
  })

  test('is not found in other bytes', async () => {
    const { der, pkcs7 } = signers['DSA 1024']
    const signature = await signers['DSA 1024'].sign(message)
    const nested = Buffer.from('3080'.repeat(8_000), 'hex')
    const others = [Buffer.alloc(0), Buffer.from('hello'), der, pkcs7, signature.subarray(0, -1), signature.subarray(0, 40), nested]
    for (const bytes of others) expect(check(bytes, 'DSA 1024')).toBe('unreadable')
  })
})
