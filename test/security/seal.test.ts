import { randomBytes } from 'node:crypto'
import { UserError } from '../../src/base/errors.ts'
import { createKeyRing, credentialsOf, SealError } from '../../src/security/seal.ts'

const keyOf = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
const owner = credentialsOf('workspace', 'destination', [['host', 'a.example']])
const credentials = { access_key_id: 'AKIA', secret_access_key: 'canary' }

test('a sealed value can be opened, and its envelope does not reveal it', () => {
  const ring = createKeyRing([keyOf('a')])
  const envelope = ring.seal(credentials, owner)
  expect(envelope.toString('latin1')).not.toContain('canary')
  expect(ring.open(envelope, owner)).toEqual(credentials)
  expect(ring.seal(credentials, owner)).not.toEqual(envelope)
})

test('the first key seals, every key opens, and a removed key opens nothing', () => {
  const [older, newer] = [keyOf('older'), keyOf('newer')]
  const envelope = createKeyRing([older]).seal(credentials, owner)
  const rotated = createKeyRing([newer, older])
  expect(rotated.open(envelope, owner)).toEqual(credentials)
  const renewed = rotated.seal(credentials, owner)
  expect(createKeyRing([newer]).open(renewed, owner)).toEqual(credentials)
  expect(() => createKeyRing([newer]).open(envelope, owner)).toThrow(/sealed with key "older"/)
})

test('another key with the same id opens nothing', () => {
  const envelope = createKeyRing([keyOf('a')]).seal(credentials, owner)
  expect(() => createKeyRing([keyOf('a')]).open(envelope, owner)).toThrow(SealError)
})

test('an envelope cannot be opened for another owner', () => {
  const ring = createKeyRing([keyOf('a')])
  const envelope = ring.seal(credentials, owner)
  for (const other of [
    credentialsOf('workspace', 'another', [['host', 'a.example']]),
    credentialsOf('another', 'destination', [['host', 'a.example']]),
    credentialsOf('workspacedestination', '', [['host', 'a.example']]),
    credentialsOf('workspace', 'destination', [['host', 'b.example']]),
    credentialsOf('workspace', 'destination', []),
  ]) {
    expect(() => ring.open(envelope, other)).toThrow(SealError)
  }
})

test('a change of any single byte and any truncation are detected', () => {
  const ring = createKeyRing([keyOf('a'), keyOf('b')])
  const envelope = ring.seal(credentials, owner)
  for (let at = 0; at < envelope.length; at += 1) {
    const changed = Buffer.from(envelope)
    changed[at]! ^= 3
    expect(() => ring.open(changed, owner)).toThrow(SealError)
    expect(() => ring.open(envelope.subarray(0, at), owner)).toThrow(SealError)
  }
})

test.each([
  ['no key', []],
  ['no id', ['c2VjcmV0']],
  ['a key that is too short', [`a:${randomBytes(16).toString('base64')}`]],
  ['the same id twice', [keyOf('a'), keyOf('a')]],
])('%s is a UserError that does not reveal the key', (_, entries) => {
  const failed = (() => {
    try {
      return createKeyRing(entries)
    } catch (thrown) {
      return thrown
    }
  })()
  expect(failed).toBeInstanceOf(UserError)
  for (const entry of entries) expect(String(failed)).not.toContain(entry.split(':').at(-1))
})
