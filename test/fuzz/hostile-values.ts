import type { Random } from './random.ts'

/** Texts on which parsers and databases stumble. */
export const hostileTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'a\udfffb',
  '\u202egnp.exe',
  '\ufeff',
  'ä€😀',
  '../../../etc/passwd',
  '..',
  '.',
  '/',
  '\\',
  "' or 1=1 --",
  '%s%n',
  '{doc_id}',
  '${jndi:ldap://127.0.0.1/a}',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  'toString',
  '=cmd|calc',
  'a\r\nX-Injected: 1',
  'NaN',
  '-1',
  '1e309',
  '99999999999999999999',
  '0x10',
  '2026-02-30',
  '2026-11-22T00:00:00+99:99',
  '9999-99-99',
  '294276-12-31T23:59:59Z',
  '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  'ZZZZZZZZZZZZZZZZZZZZZZZZZZ',
  'a'.repeat(300),
  'ü'.repeat(2_000),
]

const hostileScalars: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  -0,
  0.5,
  1e308,
  2 ** 31,
  2 ** 53 + 2,
  2 ** 63,
  [],
  {},
  [[]],
  [null],
  { a: { b: { c: {} } } },
]

export const hostileValue = (random: Random): unknown => (random.chance(0.5) ? random.pick(hostileTexts) : random.pick(hostileScalars))

/** Changes a JSON value in a few places: other types, unknown and missing keys. */
export const distort = (random: Random, value: unknown, depth = 0): unknown => {
  if (random.chance(0.12) || depth > 6) return hostileValue(random)
  if (Array.isArray(value)) {
    const items = value.map((item) => (random.chance(0.4) ? distort(random, item, depth + 1) : item))
    return random.chance(0.15) ? [...items, ...items, hostileValue(random)] : items
  }
  if (typeof value !== 'object' || value === null) return random.chance(0.3) ? hostileValue(random) : value
  const entries = Object.entries(value)
    .filter(() => !random.chance(0.08))
    .map(([key, inner]) => [key, random.chance(0.5) ? distort(random, inner, depth + 1) : inner])
  if (random.chance(0.15)) entries.push([random.pick(hostileTexts), hostileValue(random)])
  return Object.fromEntries(entries)
}

/** Changes the text of a JSON body. */
export const distortJson = (random: Random, json: string): Buffer =>
  random.pick([
    () => Buffer.from(json.slice(0, random.below(json.length + 1))),
    () => Buffer.from(`\ufeff${json}`),
    () => Buffer.from(`${json}${random.pick(['x', '\0', ',', '}', json])}`),
    () => Buffer.from(json.replace('{', `{"name":"\\ud800",`)),
    () => Buffer.from(json.replace('{', `{"na\\u0000me":1,`)),
    () => Buffer.from(json.replace('{', '{"__proto__":{"level":"admin"},"constructor":1,')),
    () => Buffer.concat([Buffer.from(json.slice(0, -1)), Buffer.from([0xff, 0xfe, 0xc3])]),
    () => Buffer.from(json, 'utf16le'),
    () => Buffer.from(`${' '.repeat(random.below(70_000))}${json}`),
    () => Buffer.from('['.repeat(random.below(60_000))),
    () => Buffer.from(`${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`),
    () => Buffer.from(`[${'0,'.repeat(6_000)}0]`),
    () => Buffer.from(JSON.stringify('x'.repeat(random.pick([10, 70_000, 1_100_000])))),
    () => Buffer.alloc(0),
    () => Buffer.from(random.pick(['null', 'true', '0', '""', '[]', '{}', '-', 'NaN', '\u2028'])),
  ])()
