import { createAuthenticator, newApiKey, type StoredKey } from '../../src/security/api-keys.ts'
import { createAttemptLimit } from '../../src/security/attempt-limit.ts'

const path = { userSlug: 'acme', workspaceSlug: 'prod' }

const arrange = (change: Partial<StoredKey> = {}) => {
  const { id, key, secretSha256 } = newApiKey()
  const stored: StoredKey = {
    id,
    name: 'CI',
    workspace: { id: 'W', ...path },
    memberId: null,
    level: 'member',
    secretSha256,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    ...change,
  }
  const lookedUp: string[] = []
  const used: string[] = []
  const authenticator = createAuthenticator({
    findKey: (keyId) => {
      lookedUp.push(keyId)
      return Promise.resolve(keyId === id ? stored : undefined)
    },
    recordUse: (usedId) => {
      used.push(usedId)
      return Promise.resolve()
    },
    wrongKeys: createAttemptLimit(100),
  })
  const authenticate = (authorization: string | undefined) => authenticator.authenticate(authorization, '192.0.2.1', path)
  return { id, key, authenticate, lookedUp, used }
}

test('a key has the form relay_<id>_<256 bits> and is unique', () => {
  const { id, key, secretSha256 } = newApiKey()
  expect(key).toMatch(new RegExp(`^relay_${id}_[\\w-]{43}$`))
  expect(secretSha256).toHaveLength(32)
  expect(newApiKey().key).not.toBe(key)
})

test.each(['Bearer ', 'bearer ', 'BEARER  '])('the scheme %p is accepted', async (scheme) => {
  const { id, key, authenticate } = arrange()
  expect(await authenticate(scheme + key)).toEqual({
    type: 'api_key',
    id,
    name: 'CI',
    userId: null,
    level: 'member',
    workspace: { id: 'W', ...path },
  })
})

test('a malformed key is refused without a database lookup', async () => {
  const { key, authenticate, lookedUp } = arrange()
  for (const wrong of [
    undefined,
    '',
    key,
    `Basic ${key}`,
    `Bearer ${key}x`,
    `Bearer ${key.toLowerCase()}`,
    'Bearer relay__',
    `Bearer ${key} ${key}`,
  ]) {
    await expect(authenticate(wrong)).rejects.toMatchObject({ code: 'unauthorized' })
  }
  expect(lookedUp).toEqual([])
})

test('a known id with a wrong secret is refused and not recorded as used', async () => {
  const { key, authenticate, lookedUp, used } = arrange()
  const changed = key.slice(0, -43) + newApiKey().key.slice(-43)
  await expect(authenticate(`Bearer ${changed}`)).rejects.toMatchObject({ code: 'unauthorized' })
  expect(lookedUp).toHaveLength(1)
  expect(used).toEqual([])
})

test('a use is recorded only if the last recorded use is at least a minute old', async () => {
  const recent = arrange({ lastUsedAt: new Date(Date.now() - 30_000) })
  await recent.authenticate(`Bearer ${recent.key}`)
  expect(recent.used).toEqual([])
  const old = arrange({ lastUsedAt: new Date(Date.now() - 60_000) })
  await old.authenticate(`Bearer ${old.key}`)
  expect(old.used).toEqual([old.id])
})

describe('the limit of wrong keys', () => {
  test('counts per address and minute', () => {
    let now = 0
    const limit = createAttemptLimit(2, { now: () => now })
    expect([limit.count('192.0.2.1'), limit.count('192.0.2.1'), limit.count('192.0.2.1')]).toEqual([0, 0, 60])
    expect(limit.count('192.0.2.2')).toBe(0)
    now = 45_000
    expect(limit.count('192.0.2.1')).toBe(15)
    now = 60_000
    expect(limit.count('192.0.2.1')).toBe(0)
  })

  test('counts a mapped address as IPv4, and an IPv6 /64 network as one address', () => {
    const limit = createAttemptLimit(1, { now: () => 0 })
    expect([limit.count('::ffff:192.0.2.1'), limit.count('192.0.2.1')]).toEqual([0, 60])
    expect([limit.count('2001:db8::1'), limit.count('2001:db8::ffff:1'), limit.count('2001:db8:0:1::1')]).toEqual([0, 60, 0])
  })

  test('removes the oldest address when it is full', () => {
    const limit = createAttemptLimit(1, { maxAddresses: 2, now: () => 0 })
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) limit.count(address)
    expect(limit.count('192.0.2.3')).toBe(60)
    expect(limit.count('192.0.2.2')).toBe(60)
    expect(limit.count('192.0.2.1')).toBe(0)
  })
})
