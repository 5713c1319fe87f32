import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readCertificate } from '../../src/security/certificate.ts'
import { createSignMessage, signingKeyIssue, type SigningKey } from '../../src/security/cms-sign.ts'
import { readSignature, verifies } from '../../src/security/cms.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'

const run = promisify(execFile)

const message = Buffer.from('Z1005056B5A3F21EEFA9C1D04F7B6E8C11rCN%3DTST20301231235959')
const at = new Date('2026-11-26T23:59:58.123Z')
const [rsa, dsa] = await Promise.all([createThrowAwayKey('rsa', 'relay check', 2), createThrowAwayKey('dsa', 'relay check', 2)])

/** Verifies a detached signature with openssl. */
const verifyWithOpenssl = async ({ certificate }: SigningKey, signature: Buffer, signed: Buffer) => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-cms-'))
  const file = async (name: string, content: string | Buffer) => {
    await writeFile(join(folder, name), content)
    return name
  }
  try {
    const files = {
      certificate: await file('certificate.pem', certificate),
      signature: await file('signature.p7s', signature),
      message: await file('message', signed),
    }
    const given = ['-in', files.signature, '-content', files.message, '-certfile', files.certificate]
    await run('openssl', ['cms', '-verify', '-binary', '-inform', 'DER', ...given, '-noverify', '-nointern', '-out', 'verified'], {
      cwd: folder,
    })
    return true
  } catch {
    return false
  } finally {
    await rm(folder, { recursive: true })
  }
}

describe.each([
  ['RSA', rsa],
  ['DSA', dsa],
])('a signature with a throw-away key of type %s', (_, key) => {
  test.each(['sha1', 'sha256'] as const)('is verified by openssl and by the receiver, with %s', async (digest) => {
    const signature = createSignMessage(key, digest)(message, at)
    expect(await verifyWithOpenssl(key, signature, message)).toBe(true)
    expect(await verifyWithOpenssl(key, signature, Buffer.from('another message'))).toBe(false)
    const read = readSignature(signature)!
    const { publicKey } = new X509Certificate(key.certificate)
    expect(read).toMatchObject({ digest, content: undefined, signerId: readCertificate(Buffer.from(key.certificate))!.signerId })
    expect(verifies(read, message, publicKey)).toBe(true)
    expect(verifies(read, Buffer.from('another message'), publicKey)).toBe(false)
  })

  test('belongs to a certificate that openssl accepts as its own issuer', async () => {
    const certificate = new X509Certificate(key.certificate)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    expect(certificate.subject).toBe('CN=relay check')
    expect(readCertificate(Buffer.from(key.certificate))).toMatchObject({ keyBits: 2048 })
    expect(certificate.validToDate.getTime()).toBeGreaterThan(Date.now() + 86_400_000)
  })
})

describe('a signing key', () => {
  test('needs a certificate, a key that can be read, and that both belong together', () => {
    expect(signingKeyIssue(rsa)).toBeUndefined()
    expect(signingKeyIssue({ ...rsa, certificate: 'x' })).toBe('the certificate is not X.509 in PEM')
    expect(signingKeyIssue({ ...rsa, privateKey: 'x' })).toBe('the private key is not a key in PEM without a passphrase')
    expect(signingKeyIssue({ ...rsa, privateKey: dsa.privateKey })).toBe('the private key does not belong to the certificate')
    expect(() => createSignMessage({ ...rsa, privateKey: 'x' })).toThrow(TypeError)
  })
})
