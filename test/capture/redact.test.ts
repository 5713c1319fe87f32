import * as fc from 'fast-check'
import { isOpaque, redactBody as redactInSteps, runInSlices } from '../../src/capture/redact-body.ts'
import { redactHeaders, redactQuery, redactQueryForReplay, runAtOnce } from '../../src/capture/redact.ts'
import { bytesOf, check } from '../support/properties.ts'

const json = 'application/json'
const redactBody = (data: Buffer, contentType: string | null) => runAtOnce(redactInSteps(data, contentType))
const redactText = (text: string, contentType: string | null = json) => redactBody(Buffer.from(text), contentType)?.toString()
const redactJson = (text: string) => redactText(text)

describe('a header', () => {
  test('is redacted if its name is sensitive, in any case', () => {
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
      'Ocp-Apim-Subscription-Key',
      'x-functions-key',
      'x-auth',
      'Signature',
      'X-Hub-Signature-256',
      'x-pwd',
      'X-Passwd',
      'passphrase',
      'secKey',
    ]
    const others = ['content-type', 'x-authorization-mode', 'cookies', 'x-forwarded-for', 'x-api-version', 'x-author', 'signature-input']
    const headers = Object.fromEntries([...secrets, ...others].map((name) => [name, 'canary']))
    const safe = redactHeaders({ ...headers, 'x-unset': undefined })
    expect(Object.keys(safe)).toEqual(Object.keys(headers).map((name) => name.toLowerCase()))
    for (const name of secrets) expect([name, safe[name.toLowerCase()]]).toEqual([name, '[REDACTED]'])
    for (const name of others) expect([name, safe[name]]).toEqual([name, 'canary'])
  })

  test('is stored whatever its name and its value are', () => {
    const headers = JSON.parse('{"__proto__": "a\\u0000b", "X-Many": ["one", "two"]}')
    expect(Object.entries(redactHeaders(headers))).toEqual([
      ['__proto__', 'a\uFFFDb'],
      ['x-many', 'one,two'],
    ])
  })

  test('has the query parameters of a URL redacted', () => {
    const url = 'https://erp.example/receiver/a/b?get&docId=D1&secKey=canary#top'
    expect(redactHeaders({ referer: url, origin: 'token=1' })).toEqual({
      referer: 'https://erp.example/receiver/a/b?get&docId=D1&secKey=[REDACTED]',
      origin: 'token=1',
    })
  })
})

describe('a query string', () => {
  test.each([
    ['get&docId=D1&secKey=canary%3D&authId=CN', 'get&docId=D1&secKey=[REDACTED]&authId=CN'],
    ['SECKEY=canary', 'SECKEY=[REDACTED]'],
    ['s%65cKe%79=canary&a=1', 's%65cKe%79=[REDACTED]&a=1'],
    ['secKey=one&secKey=canary==&x', 'secKey=[REDACTED]&secKey=[REDACTED]&x'],
    ['access_token=canary&password=canary', 'access_token=[REDACTED]&password=[REDACTED]'],
    ['pwd=&sig=a%26secKey=b', 'pwd=[REDACTED]&sig=[REDACTED]'],
    ['get&docId=token&compId=secKey&authId=auth&author=a&OBJ_KEY=k', 'get&docId=token&compId=secKey&authId=auth&author=a&OBJ_KEY=k'],
    ['', ''],
    ['&&==%zz=&token', '&&==%zz=&token'],
  ])('has exactly the values of sensitive names redacted: %s', (query, safe) => {
    expect(redactQuery(query)).toBe(safe)
  })

  test('keeps nothing but the secKey for a replay', () => {
    expect(redactQueryForReplay('get&secKey=abc&password=canary')).toBe('get&secKey=abc&password=[REDACTED]')
  })
})

describe('a form', () => {
  const form = 'application/x-www-form-urlencoded; charset=utf-8'

  test('has the values of sensitive fields redacted', () => {
    expect(redactText('user=u&pass%77ord=canary&note=a', form)).toBe('user=u&pass%77ord=[REDACTED]&note=a')
  })

  test('is left as it is if it is another text', () => {
    expect(redactText('password=canary', 'text/plain')).toBe('password=canary')
  })

  test.each([
    ['user=u;password=canary;a=b', 'user=u;password=[REDACTED];a=b'],
    ['user=u\r\npassword=canary\r\na=b', 'user=u\r\npassword=[REDACTED]\r\na=b'],
    ['a=1&b=c%3Fpassword%3Dcanary&d=1', 'a=1&b=[REDACTED]&d=1'],
    ['a=1&b=c%253F%2570assword%253Dcanary', 'a=1&b=[REDACTED]'],
    ['a=1&b=c%3Dd', 'a=1&b=c%3Dd'],
  ])('has the values of sensitive fields redacted, whatever separates them, and in URLs that are values: %s', (text, safe) => {
    expect(redactText(text, form)).toBe(safe)
  })

  test('is redacted in every encoding that contains ASCII, and in UTF-16', () => {
    const [text, safe] = ['user=M\u00fcller&password=canary', 'user=M\u00fcller&password=[REDACTED]']
    for (const type of [form, 'application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=iso-8859-1']) {
      for (const encoding of ['latin1', 'utf8', 'utf16le'] as const) {
        expect(redactBody(Buffer.from(text, encoding), type)).toEqual(Buffer.from(safe, encoding))
      }
      const [marked, safeMarked] = [text, safe].map((each) => Buffer.from(`\uFEFF${each}`, 'utf16le')) as [Buffer, Buffer]
      expect(redactBody(marked, type)).toEqual(safeMarked)
      expect(redactBody(Buffer.from(marked).swap16(), type)).toEqual(Buffer.from(safeMarked).swap16())
      expect(redactBody(Buffer.from(text, 'utf16le').swap16(), type)).toEqual(Buffer.from(safe, 'utf16le').swap16())
    }
  })

  test.each<[string, Buffer, string]>([
    ['compressed', Buffer.from([0x1f, 0x8b, 8, 0, 1, 2]), form],
    ['UTF-16 that lacks a byte', Buffer.from('\uFEFFpassword=canary', 'utf16le').subarray(0, -1), form],
    ['UTF-32', Buffer.from(Array.from('\uFEFFpassword=canary').flatMap((character) => [...Buffer.from(character, 'utf16le'), 0, 0])), form],
    ['UTF-7', Buffer.from('+AHA-assword+AD0-canary'), `application/x-www-form-urlencoded; charset="UTF-7"`],
    ['EBCDIC', Buffer.from('97A2A6847E838195', 'hex'), 'application/x-www-form-urlencoded;charset=IBM037'],
    ['EBCDIC that is not declared', Buffer.from('97A2A6847E838195', 'hex'), form],
  ])('that cannot be read is not stored: %s', (_, data, type) => {
    expect(redactBody(data, type)).toBeUndefined()
    expect(redactBody(data, type.replace('application/x-www-form-urlencoded', 'text/xml').replace(form, 'text/xml'))).toBeUndefined()
  })
})

describe('an XML body', () => {
  test.each([
    ['<a><password>canary</password><b>x</b></a>', '<a><password>[REDACTED]</password><b>x</b></a>'],
    ['<n:Password n:x="1" >canary</n:Password >', '<n:Password n:x="1" >[REDACTED]</n:Password >'],
    ['<token><token>canary</token>canary</token>', '<token>[REDACTED]</token>'],
    ['<secret><a b=">"/><![CDATA[</secret>canary]]><!--</secret>--></secret><c/>', '<secret>[REDACTED]</secret><c/>'],
    ['<a user="u" n:pwd="canary" passwd = \'ca"nary\'/>', '<a user="u" n:pwd="[REDACTED]" passwd = \'[REDACTED]\'/>'],
    ['<api-key/><token></token><pwd a="b"/>', '<api-key/><token></token><pwd a="b"/>'],
    ['<signature>canary</signature>', '<signature>[REDACTED]</signature>'],
    ['<ds:Signature><ds:Value>public</ds:Value></ds:Signature>', '<ds:Signature><ds:Value>public</ds:Value></ds:Signature>'],
    ['<Signature>\n<pwd>canary</pwd></Signature>', '<Signature>\n<pwd>[REDACTED]</pwd></Signature>'],
    ['<tokenSignature><a>canary</a></tokenSignature>', '<tokenSignature>[REDACTED]</tokenSignature>'],
    ['<?xml version="1.0"?><!-- password --><a password="canary"/>', '<?xml version="1.0"?><!-- password --><a password="[REDACTED]"/>'],
    ['<a><password>canary', '<a><password>[REDACTED]'],
    ['<p>the password is <b>here</b></p>', '<p>the password is <b>here</b></p>'],
    ['<prop name="password" value="canary" type="x"/>', '<prop name="password" value="[REDACTED]" type="x"/>'],
    [`<add value='canary' key='db_password'/>`, `<add value='[REDACTED]' key='db_password'/>`],
    ['<p name="pass&#119;ord" value="canary"/>', '<p name="pass&#119;ord" value="[REDACTED]"/>'],
    ['<param name="password">canary</param><a>b</a>', '<param name="password">[REDACTED]</param><a>b</a>'],
    ['<entry key="user">u</entry><entry key="pwd">canary</entry>', '<entry key="user">u</entry><entry key="pwd">[REDACTED]</entry>'],
    [
      '<key>password</key>\n<string>canary</string><key>a</key><string>b</string>',
      '<key>password</key>\n<string>[REDACTED]</string><key>a</key><string>b</string>',
    ],
    ['<m><name>token</name><value><string>canary</string></value></m><m/>', '<m><name>token</name><value>[REDACTED]</value></m><m/>'],
    ['<NAME>PASSWORD</NAME><VALUE>canary</VALUE><B>c</B>', '<NAME>PASSWORD</NAME><VALUE>[REDACTED]</VALUE><B>c</B>'],
    ['<name>token</name></a><b>c</b>', '<name>token</name></a><b>c</b>'],
    ['<a><![CDATA[<password>canary</password>]]></a>', '<a><![CDATA[<password>[REDACTED]</password>]]></a>'],
    ['<a><![CDATA[{"password":"canary"}]]></a>', '<a><![CDATA[{"password":"[REDACTED]"}]]></a>'],
    ['<a><![CDATA[x=1&password=canary]]></a>', '<a><![CDATA[x=1&password=[REDACTED]]]></a>'],
    ['<!-- <password>canary</password> --><a/>', '<!-- <password>[REDACTED]</password> --><a/>'],
    ['<a>&lt;password&gt;canary&lt;/password&gt;</a>', '<a>&lt;password&gt;[REDACTED]&lt;/password&gt;</a>'],
    ['<a>&#60;password&#x3e;canary&lt;/password&gt;</a>', '<a>&lt;password&gt;[REDACTED]&lt;/password&gt;</a>'],
    ['<a>&amp;lt;pwd&amp;gt;canary&amp;lt;/pwd&amp;gt;</a>', '<a>&amp;lt;pwd&amp;gt;[REDACTED]&amp;lt;/pwd&amp;gt;</a>'],
    ['<a b="{&quot;token&quot;:&quot;canary&quot;}"/>', '<a b="{&quot;token&quot;:&quot;[REDACTED]&quot;}"/>'],
    ['<c s="Server=x;Password=canary;Port=1"/>', '<c s="Server=x;Password=[REDACTED];Port=1"/>'],
    ['<a>{&amp;quot;token&amp;quot;:&amp;quot;canary&amp;quot;}</a>', '<a>{&amp;quot;token&amp;quot;:&amp;quot;[REDACTED]&amp;quot;}</a>'],
    ['<c>user=u&amp;password=canary&amp;a=b</c>', '<c>user=u&amp;password=[REDACTED]&amp;a=b</c>'],
  ])('has exactly the content of sensitive elements and attributes redacted: %s', (text, safe) => {
    expect(redactText(text, 'application/soap+xml')).toBe(safe)
    expect(redactText(`\uFEFF ${text}`, null)).toBe(`\uFEFF ${safe}`)
  })

  test('is redacted in any encoding', () => {
    const text = '<ä><password>canary</password></ä>'
    const safe = '<ä><password>[REDACTED]</password></ä>'
    for (const encoding of ['latin1', 'utf8'] as const) {
      expect(redactBody(Buffer.from(text, encoding), 'text/xml')).toEqual(Buffer.from(safe, encoding))
    }
    const [little, safeLittle] = [text, safe].map((content) => Buffer.from(`\uFEFF${content}`, 'utf16le')) as [Buffer, Buffer]
    expect(redactBody(little, 'text/xml')).toEqual(safeLittle)
    expect(redactBody(Buffer.from(little).swap16(), 'text/xml')).toEqual(Buffer.from(safeLittle).swap16())
    expect(redactBody(Buffer.from(text, 'utf16le'), 'text/xml')).toEqual(Buffer.from(safe, 'utf16le'))
  })

  test('that says of itself that its encoding does not contain ASCII is not stored', () => {
    expect(redactText('<?xml version="1.0" encoding="UTF-7"?>+ADw-password+AD4-canary', 'text/xml')).toBeUndefined()
    expect(redactText('<?xml version="1.0" encoding="UTF-8"?><a/>', 'text/xml')).toBe('<?xml version="1.0" encoding="UTF-8"?><a/>')
  })

  test.each([
    '<a><b c="x><password>canary</password></a>',
    '<a>1 < 2 "<password>canary</password></a>',
    '<a><!-- <password>canary</password></a>',
    '<a><![CDATA[<password>canary</password></a>',
    '<a password="canary',
    '<a></a <password>canary</password',
    '<a <password>canary</password></a>',
  ])('in which something does not end, before what may be a secret, is not stored: %s', (text) => {
    expect(redactText(text, 'text/xml')).toBeUndefined()
    expect(redactText(text, 'text/plain')).toBeUndefined()
    expect(redactText(text.replaceAll('password', 'word'), 'text/xml')).toBe(text.replaceAll('password', 'word'))
  })

  test('is not stored if what it contains was escaped more often than can be read', () => {
    let text = '<password>canary</password>'
    for (let layer = 0; layer < 9; layer += 1)
      text = `<a>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')}</a>`
    expect(redactText(text, 'text/xml') ?? '').not.toContain('canary')
  })
})

describe('a JSON body', () => {
  test.each([
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
    ['{"password":"canary",}', '{"password":"[REDACTED]",}'],
    ['[{"token":"canary",},]', '[{"token":"[REDACTED]",},]'],
    ['{"name":"password","value":"canary"}', '{"name":"password","value":"[REDACTED]"}'],
    ['[{"value":{"a":["canary"]},"x":1,"key":"api_key"}]', '[{"value":"[REDACTED]","x":1,"key":"api_key"}]'],
    ['{"name":"user","value":"u","b":{"name":"pwd","value":1}}', '{"name":"user","value":"u","b":{"name":"pwd","value":"[REDACTED]"}}'],
    ['\uFEFF{"token":"canary"}', '\uFEFF{"token":"[REDACTED]"}'],
  ])('has exactly the values of sensitive keys redacted: %s', (text, safe) => {
    expect(redactText(text)).toBe(safe)
  })

  test.each([
    '{"n":12345678901234567890,"n":1.0}',
    '{"value":"password: x"}',
    '["token"]',
    ' {"a" :\t[]}\n',
    'null',
    '"token"',
    ''.padEnd(9, '[').padEnd(18, ']'),
  ])('without a sensitive key is returned as the same buffer: %s', (text) => {
    const data = Buffer.from(text)
    expect(redactBody(data, json)).toBe(data)
  })

  test('is recognized by its content type, and by its first character under any other type', () => {
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

  test('can be one line of several, under any type', () => {
    const text = '{"token":"canary"}\n\n["a"]\r\n{"b":{"password":"canary"}}\n'
    const safe = '{"token":"[REDACTED]"}\n\n["a"]\r\n{"b":{"password":"[REDACTED]"}}\n'
    for (const type of [null, 'text/plain', 'application/x-ndjson', json]) expect([type, redactText(text, type)]).toEqual([type, safe])
    const harmless = Buffer.from('{"a":1}\n{"b":2}')
    expect(redactBody(harmless, null)).toBe(harmless)
    expect(redactText('{"token":"canary"}\n{"b":', json)).toBeUndefined()
  })

  test('is redacted in UTF-16 with a byte order mark, under any type', () => {
    const wide = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le')
    for (const type of [null, 'text/plain', json]) {
      for (const [text, safe] of [
        [' {"ä":1,"token":"canary"}', ' {"ä":1,"token":"[REDACTED]"}'],
        ['{"token":"canary"}\n{"a":1}', '{"token":"[REDACTED]"}\n{"a":1}'],
      ] as const) {
        expect(redactBody(wide(text), type)).toEqual(wide(safe))
        expect(redactBody(wide(text).swap16(), type)).toEqual(wide(safe).swap16())
      }
      const harmless = wide('{"a":1}')
      expect(redactBody(harmless, type)).toBe(harmless)
    }
    expect(redactBody(wide('<a><token>canary</token></a>'), 'text/plain')).toEqual(wide('<a><token>[REDACTED]</token></a>'))
  })

  test('that is invalid is dropped if its type is JSON', () => {
    const broken = [
      '{"password":"canary',
      '{password: canary}',
      "{'password':'canary'}",
      'password=canary',
      '{"a":1}{"token":"canary"}',
      '',
    ]
    for (const text of broken) expect([text, redactText(text)]).toEqual([text, undefined])
    const unmarked = Buffer.from('{"password":"canary"}', 'utf16le')
    expect(redactBody(unmarked, json)).toEqual(Buffer.from('{"password":"[REDACTED]"}', 'utf16le'))
    expect(redactBody(Buffer.from([0x1f, 0x8b, 8, 0]), json)).toBeUndefined()
  })

  test('that is invalid under another type is dropped if something in it may be a secret', () => {
    for (const text of ['{"password":"canary', "{'password': 'canary'}", '{password=canary}', '{"a":1}{"token" : "canary"}']) {
      expect([text, redactText(text, 'text/plain')]).toEqual([text, undefined])
    }
    for (const text of ['[2026] a token was found', '"Name","Token"\n"a","b"', '{"a":']) expect(redactText(text, 'text/plain')).toBe(text)
    expect(redactBody(Buffer.from('{"n":"M\u00fcller","password":"canary"}', 'latin1'), 'text/plain')).toBeUndefined()
  })

  test('in which a key has another sensitive name is redacted', () => {
    const names = ['pwd', 'passwd', 'passphrase', 'subscription-key', 'auth', 'signature', 'secKey']
    const text = JSON.stringify(Object.fromEntries(names.map((name) => [name, 'canary'])))
    expect(redactText(text)).toBe(text.replaceAll('canary', '[REDACTED]'))
  })
})

const mebibyte = 1024 * 1024
const filled = (unit: string) => unit.repeat(Math.floor(mebibyte / unit.length))
const nested = (text: string, depth: number): string => (depth === 0 ? text : nested(JSON.stringify({ a: text }), depth - 1))

test.each([
  ['deep JSON', json, `${'['.repeat(mebibyte / 2)}"token"${']'.repeat(mebibyte / 2)}`],
  ['many secrets in JSON', json, `[${filled('{"token":1},')}1]`],
  ['strings that begin like JSON', json, `[${filled(String.raw`"{\"token\":x}",`)}1]`],
  ['backslashes', json, `["${filled('\\\\')}","token"]`],
  ['quotes', json, `["${filled('\\"')}","token"]`],
  ['JSON in JSON', json, nested(JSON.stringify({ token: 'x', pad: ' '.repeat(700_000) }), 14)],
  ['JSON that does not end', json, filled('{"secret":')],
  ['pairs', 'application/x-www-form-urlencoded', filled('%41=&')],
  ['separators', 'application/x-www-form-urlencoded', `${filled('&')}token`],
  ['a name without a value', 'application/x-www-form-urlencoded', filled('token')],
  ['open elements', 'text/xml', filled('<pwd>')],
  ['comments that do not end', 'text/xml', `${filled('<!--')}token`],
  ['quotes in XML', 'text/xml', `${filled("<a '")}token`],
  ['attributes', 'text/xml', `<a ${filled("pwd='1' ")}>`],
  ['blanks in a tag', 'text/xml', `<a ${filled(' ')}=''>token`],
  ['lines of JSON', json, filled('{"token":1}\n')],
  ['blank lines before JSON that does not end', json, `[]\n${filled('\n')}{`],
  ['signatures', 'text/xml', filled('<signature><a>')],
  ['escaped markup', 'text/xml', `<a>${filled('&lt;token&gt;')}</a>`],
  ['names beside values', 'text/xml', filled('<p name="token" value="x"/>')],
  ['CDATA sections', 'text/xml', `<a>${filled('<![CDATA[<token>]]>')}</a>`],
  ['names without an end', 'text/plain', `{${filled('token')}`],
  ['values that were encoded often', 'application/x-www-form-urlencoded', `a=${filled('%2525')}token`],
  ['members that name others', json, `[${filled('{"name":"token","value":1},')}1]`],
])('a hostile megabyte is redacted in a time that is linear in its size: %s', async (_, contentType, text) => {
  // Needs 0.3 s of processor time at most. Quadratic work would need minutes.
  const began = process.cpuUsage()
  await runInSlices(redactInSteps(Buffer.from(text), contentType))
  expect(process.cpuUsage(began).user / 1_000).toBeLessThan(3_000)
})

const canary = 'canary-7d1f'
const sensitive = fc.constantFrom('token', 'x-Secret-y', 'PASSWORD', 'api-key', 'my_api_key', 'ApiKey', 'authorization', 'Set-Cookie')
const harmless = fc.oneof(fc.string(), fc.constantFrom('a', 'key', 'cookies', '"', '\\', '__proto__')).filter((name) => !isSecret(name))

/** Returns true for a sensitive name, independently of the implementation. */
const isSecret = (name: string) => {
  const lower = name.toLowerCase()
  if (['authorization', 'proxy-authorization', 'cookie', 'set-cookie'].includes(lower)) return true
  if (['auth', '-key', 'signature'].some((end) => lower.endsWith(end)) || /signature-\d+$/.test(lower) || lower === 'seckey') return true
  const parts = ['token', 'secret', 'password', 'passwort', 'kennwort', 'api-key', 'api_key', 'apikey', 'pwd', 'passwd', 'passphrase']
  const more = [
    'credential',
    'jwt',
    'assertion',
    'sessionid',
    'session-id',
    'session_id',
    'privatekey',
    'private-key',
    'private_key',
    'mysapsso',
  ]
  return [...parts, ...more].some((part) => lower.includes(part))
}

const { value } = fc.letrec<{ value: string }>((tie) => {
  const member = fc.oneof(
    {
      weight: 1,
      arbitrary: fc.tuple(sensitive, tie('value')).map(([key, inner]) => [key, `: [${JSON.stringify(canary)}, ${inner}]`]),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(sensitive, fc.string()).map(([key, text]) => [key, `:${JSON.stringify(text + canary)}`]),
    },
    { weight: 3, arbitrary: fc.tuple(harmless, tie('value')).map(([key, inner]) => [key, ` :${inner}`]) },
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
      // Without repeated keys: JSON.parse of V8 returns the first or the last of their values, by chance (Node 24.21).
      fc
        .uniqueArray(member, { maxLength: 4, selector: ([key]) => key })
        .map((members) => `{${members.map(([key, rest]) => JSON.stringify(key) + rest).join(',')}}`),
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

test('in arbitrary nested JSON every secret is redacted, and nothing else changes', () =>
  check(
    fc.asyncProperty(value, async (text) => {
      const safe = redactJson(text)!
      expect(safe).not.toContain(canary)
      expect(redactParsed(safe)).toEqual(redactParsed(text))
    }),
    2_000,
  ))

test('a body that its first bytes show to be opaque is never changed', () => {
  const types = [null, 'application/pdf', 'text/plain', json, 'text/xml', 'application/x-www-form-urlencoded', 'multipart/form-data']
  const bodies = bytesOf(['\xef', '\xbb', '\xbf', ' ', '\n', '{"password":"x"}', '<token>x</token>', 'password=x', '%PDF-1.7', '"', '['], 8)
  expect(isOpaque(Buffer.from('%PDF-1.7'), null)).toBe(true)
  return check(
    fc.asyncProperty(bodies, fc.nat(64), fc.constantFrom(...types), async (body, headBytes, contentType) => {
      if (isOpaque(body.subarray(0, headBytes), contentType)) expect(redactBody(body, contentType)).toBe(body)
    }),
    2_000,
  )
})
