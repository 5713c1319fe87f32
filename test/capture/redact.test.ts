import * as fc from 'fast-check'
import { redactBody, redactHeaders, redactJson } from '../../src/capture/redact.ts'
import { check } from '../support/properties.ts'

const json = 'application/json'
const redactText = (text: string, contentType: string | null = json) => redactBody(Buffer.from(text), contentType)?.toString()

describe('a header', () => {
  it('is redacted by its name, in whatever case, and no other is', () => {
    const secrets = [
      'Authorization',
      'PROXY-AUTHORIZATION',
      'cookie',
      'set-cookie',
      'X-Auth-Token',
      'x-client-secret',
      'X-Password-Hint',
      'X-API-Key',
      'x_api_key',
      'apikey',
    ]
    const others = ['content-type', 'x-authorization-mode', 'cookies', 'x-forwarded-for', 'x-key', 'x-api-version']
    const headers = Object.fromEntries([...secrets, ...others].map((name) => [name, 'canary']))
    const safe = redactHeaders(headers)
    expect(Object.keys(safe)).toEqual(Object.keys(headers))
    for (const name of secrets) expect([name, safe[name]]).toEqual([name, '[REDACTED]'])
    for (const name of others) expect([name, safe[name]]).toEqual([name, 'canary'])
  })
})

describe('a JSON body', () => {
  it.each([
    ['{"password":"canary"}', '{"password":"[REDACTED]"}'],
    ['{ "PassWord" : "canary" , "a" : 1 }', '{ "PassWord" : "[REDACTED]" , "a" : 1 }'],
    ['[{"deep":[{"accessToken":"canary"}]}]', '[{"deep":[{"accessToken":"[REDACTED]"}]}]'],
    ['{"client_secret":{"a":["canary","}"],"b":{}},"c":2}', '{"client_secret":"[REDACTED]","c":2}'],
    ['{"tokens":["canary"],"c":[]}', '{"tokens":"[REDACTED]","c":[]}'],
    ['{"api_key":123456,"x":null}', '{"api_key":"[REDACTED]","x":null}'],
    ['{"secret":null}', '{"secret":"[REDACTED]"}'],
    ['{"x":{"secret":-1.5e9}}', '{"x":{"secret":"[REDACTED]"}}'],
    ['{"cookie":true,"authorization":"canary"}', '{"cookie":"[REDACTED]","authorization":"[REDACTED]"}'],
    ['{"pass\\u0077ord":"canary"}', '{"pass\\u0077ord":"[REDACTED]"}'],
    ['{"password":"can\\"ary\\\\","n":1}', '{"password":"[REDACTED]","n":1}'],
    ['{"password":"canary","password":"canary"}', '{"password":"[REDACTED]","password":"[REDACTED]"}'],
    ['{"payload":"{\\"password\\":\\"canary\\",\\"n\\":1}"}', '{"payload":"{\\"password\\":\\"[REDACTED]\\",\\"n\\":1}"}'],
    ['"{\\"token\\":\\"canary\\"}"', '"{\\"token\\":\\"[REDACTED]\\"}"'],
    ['\uFEFF{"token":"canary"}', '\uFEFF{"token":"[REDACTED]"}'],
  ])('loses what stands under the contract’s keys, and nothing else: %s', (text, safe) => {
    expect(redactText(text)).toBe(safe)
  })

  it.each([
    '{"n":12345678901234567890,"n":1.0}',
    '{"value":"password: x"}',
    '["token"]',
    ' {"a" :\t[]}\n',
    'null',
    '"token"',
    ''.padEnd(9, '[').padEnd(18, ']'),
  ])('without such a key stays the very buffer: %s', (text) => {
    const data = Buffer.from(text)
    expect(redactBody(data, json)).toBe(data)
  })

  it('is recognised by any type that says JSON, and by its look under any other', () => {
    const types = [
      'application/json; charset=utf-8',
      'text/JSON',
      'application/problem+json',
      'application/octet-stream',
      'text/plain',
      null,
    ]
    for (const type of types) expect([type, redactText('{"token":"canary"}', type)]).toEqual([type, '{"token":"[REDACTED]"}'])
    expect(redactText('\uFEFF\r\n\t {"token":"canary"}', null)).toBe('\uFEFF\r\n\t {"token":"[REDACTED]"}')
  })

  it('that is none is not kept where its type says it is one', () => {
    const broken = [
      '{"password":"canary',
      '{password: canary}',
      "{'password':'canary'}",
      'password=canary',
      '{"a":1}{"token":"canary"}',
      '',
    ]
    for (const text of broken) expect([text, redactText(text)]).toEqual([text, undefined])
    expect(redactBody(Buffer.from('{"password":"canary"}', 'utf16le'), json)).toBeUndefined()
    expect(redactBody(Buffer.from([0x1f, 0x8b, 8, 0]), json)).toBeUndefined()
    expect(redactText('{"password":"canary', 'text/plain')).toBe('{"password":"canary')
  })

  it('of a megabyte or of any depth takes no time', () => {
    const depth = 200_000
    const deep = `${'{"a":['.repeat(depth)}{"token":"canary"}${']}'.repeat(depth)}`
    const wide = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => ({ index, password: 'canary', note: '\\"'.repeat(5) })))
    const backslashes = JSON.stringify({ token: '\\'.repeat(500_000), more: '"'.repeat(100_000) })
    // of the processor: others may be at work, too
    const began = process.cpuUsage()
    for (const text of [deep, wide, backslashes]) expect(redactJson(text)).not.toContain('canary')
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(3_000)
  })
})

const canary = 'canary-7d1f'
const sensitive = fc.constantFrom('token', 'x-Secret-y', 'PASSWORD', 'api-key', 'my_api_key', 'ApiKey', 'authorization', 'Set-Cookie')
const harmless = fc.oneof(fc.string(), fc.constantFrom('a', 'key', 'cookies', '"', '\\', '__proto__')).filter((name) => !isSecret(name))

/** The contract once more, in other words. */
const isSecret = (name: string) => {
  const lower = name.toLowerCase()
  if (['authorization', 'proxy-authorization', 'cookie', 'set-cookie'].includes(lower)) return true
  return ['token', 'secret', 'password', 'api-key', 'api_key', 'apikey'].some((part) => lower.includes(part))
}

const { value } = fc.letrec<{ value: string }>((tie) => {
  const member = fc.oneof(
    {
      weight: 1,
      arbitrary: fc.tuple(sensitive, tie('value')).map(([key, inner]) => `${JSON.stringify(key)}: [${JSON.stringify(canary)}, ${inner}]`),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(sensitive, fc.string()).map(([key, text]) => `${JSON.stringify(key)}:${JSON.stringify(text + canary)}`),
    },
    { weight: 3, arbitrary: fc.tuple(harmless, tie('value')).map(([key, inner]) => `${JSON.stringify(key)} :${inner}`) },
  )
  return {
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(
        fc.json({ maxDepth: 0 }),
        fc.string().map((text) => JSON.stringify(text)),
        fc.constant('12345678901234567890'),
      ),
      fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(' ,\n')}]`),
      fc.array(member, { maxLength: 4 }).map((members) => `{${members.join(',')}}`),
      tie('value').map((text) => JSON.stringify(text)),
    ),
  }
})

const redactParsed = (text: string): unknown =>
  JSON.parse(text, (key, item: unknown) => {
    if (isSecret(key)) return '[REDACTED]'
    return typeof item === 'string' ? unpack(item) : item
  })

const unpack = (text: string): unknown => {
  if (!/^\s*["[{]/.test(text)) return text
  try {
    return { unpacked: redactParsed(text) }
  } catch {
    return text
  }
}

it('of arbitrary JSON, however nested, no secret survives and everything else does', () =>
  check(
    fc.asyncProperty(value, async (text) => {
      const safe = redactJson(text)!
      expect(safe).not.toContain(canary)
      expect(redactParsed(safe)).toEqual(redactParsed(text))
    }),
    2_000,
  ))
