import { certificateText, compareFingerprint, daysUntil, fingerprintLines } from '../../console/certificate.ts'

const sha1 = '9cb92e54815e08f10f2177f40ab7633dcb9c3e10'
const sha256 = 'a16e0d945f3bc872119e4d076bf2583c90ade41f7a26b5c308df61942b7ef05d'

test('a fingerprint is written in pairs, eight to a line', () => {
  expect(fingerprintLines(sha1)).toEqual(['9C:B9:2E:54:81:5E:08:F1', '0F:21:77:F4:0A:B7:63:3D', 'CB:9C:3E:10'])
  expect(fingerprintLines(sha256)).toHaveLength(4)
})

test('a fingerprint of the source system is compared without regard to its spelling', () => {
  const compare = (text: string) => compareFingerprint(text, { sha1, sha256 })
  expect([compare(sha1), compare(sha256.toUpperCase()), compare(fingerprintLines(sha256).join(':\n'))]).toEqual(['equal', 'equal', 'equal'])
  expect(compare(` ${sha1.replaceAll(/(..)/g, '$1 ')}`)).toBe('equal')
  expect([compare(sha1.replace('9c', '9d')), compare(`${sha256.slice(0, -1)}e`)]).toEqual(['different', 'different'])
  expect([compare(''), compare('9C:B9'), compare('STRUST')]).toEqual(['empty', 'incomplete', 'incomplete'])
  expect(compare('a'.repeat(32))).toBe('md5')
})

test('days are counted until the end of the validity, and after it', () => {
  const at = (text: string) => Date.parse(text)
  expect(daysUntil('2026-12-22T10:00:00.000Z', at('2026-11-22T10:00:00.000Z'))).toBe(30)
  expect(daysUntil('2026-11-22T11:00:00.000Z', at('2026-11-22T10:00:00.000Z'))).toBe(0)
  expect(daysUntil('2026-11-22T09:00:00.000Z', at('2026-11-22T10:00:00.000Z'))).toBe(-1)
})

test('a certificate file is sent as PEM or in base64', () => {
  const pem = '-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n'
  expect(certificateText(Buffer.from(pem))).toBe(pem)
  expect(certificateText(Buffer.from('MIIDdzCC\nAl8='))).toBe('MIIDdzCC\nAl8=')
  const der = Buffer.concat([Buffer.from([0x30, 0x82, 0x03, 0x77]), Buffer.alloc(100_000, 0xfe)])
  expect(Buffer.from(certificateText(der), 'base64')).toEqual(der)
})
