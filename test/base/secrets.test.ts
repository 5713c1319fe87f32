import { redactAndCut, withoutSecrets } from '../../src/base/secrets.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const hexOf = (character: string, digits: number) => character.charCodeAt(0).toString(16).padStart(digits, '0')
const bytesAs = (text: string, prefix: string) => Buffer.from(text).toString('hex').replaceAll(/../g, `${prefix}$&`)
const json = (text: string) => JSON.stringify(text).slice(1, -1)
const html = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')
const urlSafe = (text: string) => text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
const lines = (text: string) => text.replaceAll(/.{7}/g, '$&\r\n')

// How programs write a text. Each is a function of a standard library, or what people write by hand.
const forms: Record<string, (text: string) => string> = {
  plain: (text) => text,
  json,
  'json of PHP': (text) => json(text).replaceAll('/', '\\/'),
  'json of .NET and Go': (text) => json(text).replaceAll(/[+<>&'"/]/g, (character) => `\\u${hexOf(character, 4).toUpperCase()}`),
  'json of Python': (text) => json(text).replaceAll(/[^\x20-\x7e]/g, (character) => `\\u${hexOf(character, 4)}`),
  'json in json': (text) => json(json(text)),
  'json in json of PHP': (text) => json(json(text).replaceAll('/', '\\/')).replaceAll('/', '\\/'),
  'every character of json escaped': (text) => text.replaceAll(/[^]/g, (character) => `\\u${hexOf(character, 4)}`),
  html,
  'html with numbers': (text) => text.replaceAll(/[^A-Za-z0-9]/gu, (character) => `&#${character.codePointAt(0)};`),
  'html with hexadecimal numbers': (text) =>
    text.replaceAll(/[^A-Za-z0-9]/gu, (character) => `&#x${character.codePointAt(0)!.toString(16).toUpperCase()};`),
  'html with names': (text) =>
    html(text).replaceAll('ü', '&uuml;').replaceAll('/', '&sol;').replaceAll('+', '&plus;').replaceAll('=', '&equals;'),
  'html twice': (text) => html(html(text)),
  'html in json': (text) => json(html(text)).replaceAll('&', '\\u0026'),
  percent: encodeURIComponent,
  'percent in lower case': (text) => encodeURIComponent(text).replaceAll(/%../g, (code) => code.toLowerCase()),
  'percent twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  'every byte in percent': (text) => bytesAs(text, '%'),
  form: (text) => new URLSearchParams({ '': text }).toString().slice(1),
  'percent in Latin-1': (text) => Buffer.from(text, 'latin1').toString('hex').replaceAll(/../g, '%$&'),
  'percent of JavaScript': (text) =>
    text.replaceAll(/[^A-Za-z0-9@*_+\-./]/g, (one) => (one.charCodeAt(0) > 255 ? `%u${hexOf(one, 4)}` : `%${hexOf(one, 2)}`)),
  'base64, first place': (text) => base64(text),
  'base64, second place': (text) => base64(`u:${text}`),
  'base64, third place': (text) => base64(`u${text}b`),
  'base64 for URLs': (text) => urlSafe(base64(`user:${text}:more`)),
  'base64 in JSON of PHP': (text) => base64(`us:${text}`).replaceAll('/', '\\/'),
  'base64 in a URL': (text) => encodeURIComponent(base64(`u:${text}`)),
  'base64 in lines': (text) => lines(base64(`user:${text}`)),
  'base64 of JSON': (text) => base64(`{"p":${JSON.stringify(text)}}`),
  'base64 of a form': (text) => base64(`client:${encodeURIComponent(text)}`),
  'base64 of UTF-16': (text) => Buffer.from(text, 'utf16le').toString('base64'),
  hexadecimal: (text) => Buffer.from(text).toString('hex'),
  'hexadecimal in upper case': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  'a literal of Python': (text) => bytesAs(text, '\\x'),
  'an octal literal': (text) =>
    text.replaceAll(/[^A-Za-z0-9]/g, (one) => (one.charCodeAt(0) > 255 ? one : `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`)),
  'a word of a shell': (text) => text.replaceAll("'", `'\\''`),
  'a word of another shell': (text) => text.replaceAll("'", `'"'"'`),
  'an escaped word of a shell': (text) => text.replaceAll(/[^A-Za-z0-9_ü€/-]/g, '\\$&'),
  'double quotes of a shell': (text) => text.replaceAll(/["\\$`]/g, '\\$&'),
  csv: (text) => text.replaceAll('"', '""'),
  'quoted-printable': (text) =>
    Buffer.from(text)
      .toString('latin1')
      .replaceAll(/[^\x21-\x3c\x3e-\x7e]/g, (one) => `=${hexOf(one, 2).toUpperCase()}`)
      .replace(/(.{4}(?<!=.?))(?=.)/, '$1=\r\n'),
  'another encoding': (text) => Buffer.from(text).toString('latin1'),
  'an encoding that lacks characters': (text) => text.replaceAll(/[^\p{ASCII}]/gu, '\ufffd'),
}

const secrets = [
  'MARKER-BEARER/abc+def/ghi==',
  'MARKER-BASIC-PW"quote\\back<&>',
  "it's a '\"shell\"' of $HOME",
  'C:\\new\\table\\users\\%41',
  'Grüße/zum+€uro',
  'abcd',
  'a/b+',
  '100%25&amp;\\u0041',
  'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln_bmF0-dXJl',
  '----BEGIN KEY----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n----END KEY----',
]
// Latin-1 has no euro, and a shell takes a line break as it is.
const cannot: Record<string, RegExp> = { 'percent in Latin-1': /€/, 'an escaped word of a shell': /\n/, 'quoted-printable': /=$|^a\/b/ }

const cases = Object.keys(forms).flatMap((form) =>
  secrets.filter((secret) => !cannot[form]?.test(secret)).map((secret): [string, string] => [form, secret]),
)

/** Longest part of an encoded secret that may be left: the characters before and behind it that base64 mixes with it. */
const around = ['Was sent: [', '] and refused']

test.each(cases)('a secret is found in the form %s: %j', (form, secret) => {
  const written = forms[form]!(secret)
  const safe = withoutSecrets(`${around[0]}${written}${around[1]}`, [secret])
  expect(safe).toContain('[REDACTED]')
  const rest = safe.slice(around[0]!.length, -around[1]!.length).replace('[REDACTED]', '')
  // What is left of base64 belongs to the user name and whatever else was encoded with the secret.
  expect(rest.length).toBeLessThanOrEqual(form.startsWith('base64') ? 14 : 0)
  expect(safe.startsWith(around[0]!) && safe.endsWith(around[1]!)).toBe(true)
})

test.each(cases)('wherever a text is cut off, no beginning of the secret is left in the form %s: %j', (form, secret) => {
  if (form.startsWith('base64') || form.startsWith('hexadecimal')) return
  const written = forms[form]!(secret)
  // Three characters count as chance. Of another one, the escape may have begun.
  const left = Math.max(...[4, 5, 6].map((length) => forms[form]!(secret.slice(0, length)).length))
  for (let length = written.length; length > 0; length -= 1) {
    const safe = withoutSecrets(`${around[0]}${written.slice(0, length)}`, [secret], { isCut: true })
    expect(safe.slice(0, around[0]!.length)).toBe(around[0])
    const rest = safe.slice(around[0]!.length)
    expect([rest, rest.length <= (form === 'plain' ? 3 : left)]).toEqual([rest, true])
  }
})

test('of base64 that is cut off, no beginning of the secret is left', () => {
  const secret = secrets[0]!
  for (const prefix of ['', 'u:', 'user:', 'us:x']) {
    const written = base64(prefix + secret)
    for (let length = written.length; length > prefix.length + 12; length -= 1) {
      const safe = withoutSecrets(`Basic ${written.slice(0, length)}`, [secret], { isCut: true })
      expect(Buffer.from(safe.replace('Basic ', '').replace('[REDACTED]', ''), 'base64').toString()).not.toContain(secret.slice(0, 4))
    }
  }
})

test('every secret of a text is found, also beside another one, and where they overlap', () => {
  expect(withoutSecrets('one-secret two-secret', ['two-secret', 'one-secret'])).toBe('[REDACTED] [REDACTED]')
  expect(withoutSecrets('aaaabbbbcccc', ['aaaabbbb', 'bbbbcccc'])).toBe('[REDACTED]')
  expect(withoutSecrets('https://h/?sig=key1', ['key1', 'https://h/?sig=key1'])).toBe('[REDACTED]')
})

test('a secret of up to three characters is found where it stands alone', () => {
  const table: [string, string][] = [
    ['user admin, password "abc"', 'user admin, password "[REDACTED]"'],
    ['password=abc&user=x', 'password=[REDACTED]&user=x'],
    ['{"p":"\\u0061bc"}', '{"p":"[REDACTED]"}'],
    ['abc', '[REDACTED]'],
    ['the abcissa of labc', 'the abcissa of labc'],
    ['abc1 2abc', 'abc1 2abc'],
  ]
  for (const [text, safe] of table) expect(withoutSecrets(text, ['abc'])).toBe(safe)
  expect(withoutSecrets('a: "&quot;", b', ['"'])).toContain('[REDACTED]')
  expect(withoutSecrets('nothing  here', ['', ' '])).toBe('nothing  here')
})

test('text without a secret stays as it is, to the last character', () => {
  let state = 7
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state % below
  }
  const parts = ['\\', '"', '%', '%2', '&amp;', '&', ';', '=', '=4', '\\u00', '\\x', 'ü', '😀', '\ud800', ' ', '\n', '+', '-', 'REL', 'x']
  for (let round = 0; round < 2_000; round += 1) {
    const text = Array.from({ length: random(40) }, () => parts[random(parts.length)]).join('')
    expect(withoutSecrets(text, ['a-secret-that-is-not-there', '"""""', 'RELAY-key'])).toBe(text)
    expect(withoutSecrets(`${text}|a-secret-that-is-there|${text}`, ['a-secret-that-is-there'])).toBe(`${text}|[REDACTED]|${text}`)
  }
})

test('a text is redacted before it is cut', () => {
  expect(redactAndCut('the secret-key', ['secret-key'], 10)).toBe('the [REDAC')
})
