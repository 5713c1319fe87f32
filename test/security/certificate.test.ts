import { createHash, X509Certificate } from 'node:crypto'
import { readCertificate } from '../../src/security/certificate.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'

const [dsa, rsa, curve] = await Promise.all([
  createSigner('DSA 1024').then(share),
  createSigner('RSA 2048', '/CN=ABC').then(share),
  createSigner('P-256', '/CN=EC').then(share),
])

const base64 = (bytes: Buffer, lineCharacters = 76) =>
  bytes.toString('base64').replaceAll(new RegExp(`.{${lineCharacters}}`, 'g'), '$&\r\n')
const inPem = (label: string, bytes: Buffer) => `-----BEGIN ${label}-----\r\n${base64(bytes, 64)}\r\n-----END ${label}-----\r\n`

describe('a certificate', () => {
  test.each<[string, () => string | Buffer]>([
    ['DER', () => dsa.der],
    ['DER with trailing bytes', () => Buffer.concat([dsa.der, Buffer.from('\r\n')])],
    ['PEM', () => dsa.pem],
    ['PEM after other text', () => `Bag Attributes\n    friendlyName: TST\n${dsa.pem}`],
    ['PEM followed by a second certificate', () => dsa.pem + rsa.pem],
    ['PKCS#7', () => dsa.pkcs7],
    ['PKCS#7 in PEM', () => inPem('PKCS7', dsa.pkcs7)],
    ['PKCS#7 in PEM with the label CERTIFICATE', () => inPem('CERTIFICATE', dsa.pkcs7)],
    ['base64 of DER', () => dsa.der.toString('base64')],
    ['base64 of DER in lines', () => `${base64(dsa.der)}\r\n`],
    ['base64 of PKCS#7', () => base64(dsa.pkcs7)],
    ['base64 of PEM', () => base64(Buffer.from(dsa.pem))],
  ])('is read as %s', (_, body) => {
    expect(readCertificate(Buffer.from(body()))?.der).toEqual(dsa.der)
  })

  test('has the properties that operators compare', () => {
    const { der: _, validFrom, validTo, ...facts } = readCertificate(dsa.pkcs7)!
    const { fingerprint, fingerprint256, serialNumber } = new X509Certificate(dsa.der)
    expect(facts).toEqual({
      subject: 'C=DE, O=SAP Trust Community, OU=SAP Web AS, CN=TST',
      issuer: 'C=DE, O=SAP Trust Community, OU=SAP Web AS, CN=TST',
      serialNumber: serialNumber.toLowerCase(),
      keyAlgorithm: 'dsa',
      keyBits: 1024,
      signatureAlgorithm: '2.16.840.1.101.3.4.3.2',
      fingerprintSha1: createHash('sha1').update(dsa.der).digest('hex'),
      fingerprintSha256: fingerprint256.replaceAll(':', '').toLowerCase(),
      signerId: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(facts.fingerprintSha1).toBe(fingerprint.replaceAll(':', '').toLowerCase())
    expect(validTo.getTime() - validFrom.getTime()).toBe(30 * 86_400_000)
    expect(readCertificate(rsa.der)).toMatchObject({ subject: 'CN=ABC', keyAlgorithm: 'rsa', keyBits: 2048 })
    expect(readCertificate(curve.der)).toMatchObject({ subject: 'CN=EC', keyAlgorithm: 'ec', keyBits: 256 })
  })

  test.each<[string, () => string | Buffer]>([
    ['an empty body', () => ''],
    ['plain text', () => 'hello, this is a certificate'],
    ['zeros', () => Buffer.alloc(1_000)],
    ['a truncated certificate', () => dsa.der.subarray(0, 300)],
    ['PEM of invalid bytes', () => inPem('CERTIFICATE', Buffer.from('nonsense'))],
    ['PEM without an end line', () => dsa.pem.slice(0, 200)],
    ['doubly encoded base64', () => base64(Buffer.from(base64(dsa.der)))],
    ['base64 of invalid bytes', () => base64(Buffer.from('nonsense'))],
    ['100,000 nested sequences', () => Buffer.from('3080'.repeat(100_000), 'hex')],
    ['a repeated PEM header', () => '-----BEGIN CERTIFICATE-----'.repeat(9_000)],
    ['250 kB of base64', () => 'A'.repeat(250_000)],
  ])('is not found in %s', (_, body) => {
    // Measure processor time, which other processes do not influence.
    const began = process.cpuUsage()
    expect(readCertificate(Buffer.from(body()))).toBeUndefined()
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(1_000)
  })
})
