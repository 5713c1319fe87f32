import { cutText, cutToBytes, storable } from './text.ts'

// A target may repeat a secret in the form that its own program has given it: escaped for JSON, HTML, a URL or a shell, encoded in base64 or in
// hexadecimal digits. So the text is decoded, with the position of each character, and the secret is looked for in what it says.

const redacted = '[REDACTED]'

/** Characters of a secret that is found wherever it stands. A shorter one would be a part of ordinary words: it counts where it stands alone. */
export const secretMinCharacters = 4

/** A text, with the part of the original from which each of its UTF-16 code units was read. */
interface Reading {
  text: string
  from: Uint32Array
  to: Uint32Array
}

/** A part of the original text. */
interface Range {
  from: number
  to: number
}

/** Collects a reading unit by unit. It never has more units than the original. */
const createReading = (maxLength: number) => {
  const [units, from, to] = [new Uint16Array(maxLength), new Uint32Array(maxLength), new Uint32Array(maxLength)]
  let length = 0
  return {
    add: (unit: number, start: number, end: number): void => {
      units[length] = unit
      from[length] = start
      to[length] = end
      length += 1
    },
    end: (): Reading => ({
      text: Buffer.from(units.buffer, 0, length * 2).toString('utf16le'),
      from: from.subarray(0, length),
      to: to.subarray(0, length),
    }),
  }
}

const readingOf = (text: string): Reading => {
  const [from, to] = [new Uint32Array(text.length), new Uint32Array(text.length)]
  for (let at = 0; at < text.length; at += 1) [from[at], to[at]] = [at, at + 1]
  return { text, from, to }
}

const latin1Names =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'
const asciiNames =
  'excl ! quot " num # dollar $ percnt % amp & apos \' lpar ( rpar ) ast * plus + comma , period . sol / colon : semi ; lt < equals = gt > quest ? commat @ lsqb [ lbrack [ bsol \\ rsqb ] rbrack ] Hat ^ lowbar _ grave ` lcub { lbrace { verbar | vert | rcub } rbrace } euro €'
const asciiPairs = asciiNames.split(' ')
/** Entities of HTML 4, and those of HTML 5 for ASCII. */
const entities = new Map<string, string>([
  ...latin1Names.split(' ').map((name, at): [string, string] => [name, String.fromCharCode(0xa0 + at)]),
  ...asciiPairs.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, asciiPairs[at + 1]!]] : [])),
])

const controls: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', v: '\v', 0: '\0' }

const byte = '[0-9a-f]{2}'
const highByte = '[89a-f][0-9a-f]'
// Each may be encoded more than once: \\u002f, %252F, &amp;lt;.
const escapes = new RegExp(
  [
    String.raw`(?<percent>(?:%(?:25)*${highByte})+|%(?:25)*${byte})`,
    String.raw`%(?:25)*u(?<wide>[0-9a-f]{4})`,
    // The first of a run of backslashes, so that a long run is read once.
    String.raw`(?<!\\)\\+(?:u\{(?<code>[0-9a-f]{1,6})\}|u(?<unit>[0-9a-f]{4})|(?<hex>x${highByte}(?:\\+x${highByte})*|x${byte})|(?<octal>[0-3][0-7]{2})|(?<control>[nrtbfv0]))`,
    String.raw`&(?:amp;)*(?:#(?<decimal>\d{1,7})|#x(?<hexadecimal>[0-9a-f]{1,6})|(?<name>[a-z][a-z0-9]{1,7}));`,
  ].join('|'),
  'gi',
)

const ofCode = (code: number): string => (code <= 0x10ffff ? String.fromCodePoint(code) : '')

/** Returns the characters of bytes in UTF-8, or in Latin-1 if they are none. */
const ofBytes = (digits: readonly string[]): string => {
  const bytes = Buffer.from(digits.join(''), 'hex')
  const text = bytes.toString()
  return text.includes('\ufffd') ? bytes.toString('latin1') : text
}

const characterOf = (groups: Record<string, string | undefined>): string | undefined => {
  const { percent, wide, code, unit, hex, octal, control, decimal, hexadecimal, name } = groups
  if (percent !== undefined)
    return ofBytes(
      percent
        .split('%')
        .slice(1)
        .map((digits) => digits.slice(-2)),
    )
  if (hex !== undefined)
    return ofBytes(
      hex
        .split('x')
        .slice(1)
        .map((digits) => digits.slice(0, 2)),
    )
  const utf16 = wide ?? unit
  if (utf16 !== undefined) return String.fromCharCode(Number.parseInt(utf16, 16))
  const point = code ?? hexadecimal
  if (point !== undefined) return ofCode(Number.parseInt(point, 16))
  if (decimal !== undefined) return ofCode(Number(decimal))
  if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
  return control === undefined ? entities.get(name!) : controls[control.toLowerCase()]
}

// What a mail does with everything but ASCII (RFC 2045, 6.7), and with lines that are too long.
const quotedPrintable = /(?<quoted>=[0-9a-f]{2})|=\r?\n/gi

/** Replaces what matches by the character that it stands for. @returns the same reading if nothing matches */
const replaced = (
  { text, from, to }: Reading,
  pattern: RegExp,
  standsFor: (groups: Record<string, string | undefined>) => string | undefined,
): Reading => {
  let result: ReturnType<typeof createReading> | undefined
  let end = 0
  const copy = (until: number) => {
    for (; end < until; end += 1) result!.add(text.charCodeAt(end), from[end]!, to[end]!)
  }
  for (const match of text.matchAll(pattern)) {
    const characters = standsFor(match.groups!)
    if (characters === undefined) continue
    result ??= createReading(text.length)
    copy(match.index)
    end = match.index + match[0].length
    for (let at = 0; at < characters.length; at += 1) result.add(characters.charCodeAt(at), from[match.index]!, to[end - 1]!)
  }
  if (!result) return { text, from, to }
  copy(text.length)
  return result.end()
}

// At the end of a text that was cut off: a character of which a part is missing.
const brokenEnd =
  /(?:(?:(?:\\+x|%(?:25)*|=)[c-f][0-9a-f](?:(?:\\+x|%(?:25)*|=)[89ab][0-9a-f]){0,2})?(?:\\+(?:u(?:[0-9a-f]{0,3}|\{[0-9a-f]{0,6})|x[0-9a-f]?|[0-3][0-7]?)?|%(?:25)*(?:2|[0-9a-f]|u[0-9a-f]{0,3})?|=(?:[0-9a-f]|\r)?)?|&(?:amp;)*#?[0-9a-z]{0,7}|\ufffd)$/i
const brokenEndMaxLength = 64

const withoutBrokenEnd = ({ text, from, to }: Reading): Reading => {
  const length = text.length - (brokenEnd.exec(text.slice(-brokenEndMaxLength))?.[0].length ?? 0)
  return { text: text.slice(0, length), from: from.subarray(0, length), to: to.subarray(0, length) }
}

// JSON in a form in JSON, for example.
const layersMax = 4

/** Decodes a reading as often as it was encoded. @param isCut a character at its end may be incomplete, in each of the layers */
const decoded = (reading: Reading, isCut = false): Reading => {
  let current = reading
  for (let layer = 0; layer < layersMax; layer += 1) {
    const whole = isCut ? withoutBrokenEnd(current) : current
    const next = replaced(whole, escapes, characterOf)
    if (next.text === whole.text) break
    current = next
  }
  return current
}

/** Collects the reading of a text in which runs of characters that one program or another adds are one character, or none. */
const folded = ({ text, from, to }: Reading, runs: RegExp, standsFor: (run: string) => string): Reading => {
  const result = createReading(text.length)
  let end = 0
  for (const { index, 0: run } of text.matchAll(runs)) {
    for (; end < index; end += 1) result.add(text.charCodeAt(end), from[end]!, to[end]!)
    end = index + run.length
    const character = standsFor(run)
    if (character !== '') result.add(character.charCodeAt(0), from[index]!, to[end - 1]!)
  }
  for (; end < text.length; end += 1) result.add(text.charCodeAt(end), from[end]!, to[end]!)
  return result.end()
}

// \/ of PHP, \" of JSON, '\'' of a shell, "" of CSV, + of a form, lines that were broken.
const plainRuns = /[\\'"]+|[\s+]+/g
const asPlain = (reading: Reading) => folded(reading, plainRuns, (run) => (/[\s+]/.test(run) ? ' ' : /['"]/.test(run) ? '"' : ''))

const base64Runs = /[\s\\'"]+|[-_]/g
const asBase64 = (reading: Reading) => folded(reading, base64Runs, (run) => (run === '-' ? '+' : run === '_' ? '/' : ''))

/** Returns what base64 of a text that contains these bytes contains, in each of the three places in which they may begin. */
const base64Of = (bytes: Buffer): string[] =>
  [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    // Without the characters that have bits of what stands before or behind.
    return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
  })

/** Returns a text as a program wrote it that took its bytes for another encoding. */
const spellingsOf = (secret: string): string[] => [
  secret,
  Buffer.from(secret).toString('latin1'),
  secret.replaceAll(/[^\p{ASCII}]/gu, '\ufffd'),
]

const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

interface Needles {
  exact: string[]
  /** Short secrets. */
  alone: string[]
  plain: string[]
  base64: string[]
  hexadecimal: string[]
}

const isLong = (text: string): boolean =>
  text.length >= secretMinCharacters && text.replaceAll(/[ "]/g, '').length >= secretMinCharacters - 1

const needlesOf = (secrets: readonly string[]): Needles => {
  const long = secrets.filter((secret) => secret.length >= secretMinCharacters)
  const unique = (texts: string[]) => [...new Set(texts)]
  const encoded = long.flatMap((secret) => [
    ...[secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(storable(secret)), formEncoded(secret)].map((text) =>
      Buffer.from(text),
    ),
    Buffer.from(secret, 'latin1'),
    Buffer.from(secret, 'utf16le'),
  ])
  return {
    exact: long,
    alone: unique(secrets.filter((secret) => secret.trim() !== '' && secret.length < secretMinCharacters)),
    plain: unique(
      long
        .flatMap((secret) => spellingsOf(secret.trim()))
        .flatMap((text) => [readingOf(text), decoded(readingOf(text))].map((reading) => asPlain(reading).text)),
    ).filter(isLong),
    base64: unique(encoded.flatMap(base64Of)).filter((text) => text.length >= secretMinCharacters),
    hexadecimal: unique(encoded.map((bytes) => bytes.toString('hex'))),
  }
}

function* placesOf(text: string, needle: string): Generator<number, void, undefined> {
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) yield at
}

const alphanumeric = /[\p{L}\p{N}]/u
const standsAlone = (text: string, from: number, to: number): boolean =>
  !alphanumeric.test(text[from - 1] ?? '') && !alphanumeric.test(text[to] ?? '')

const base64Character = /[A-Za-z0-9+/]/

/** Returns how many units at the end of a text are also the beginning of a secret. */
const overlapOf = (text: string, needle: string, min: number): number => {
  for (let length = Math.min(text.length, needle.length - 1); length >= min; length -= 1) {
    if (text.endsWith(needle.slice(0, length))) return length
  }
  return 0
}

const rangesIn = (original: string, needles: Needles, isCut: boolean): Range[] => {
  const ranges: Range[] = []
  const add = ({ from, to }: Pick<Reading, 'from' | 'to'>, start: number, length: number) =>
    ranges.push({ from: from[start]!, to: to[start + length - 1]! })
  const whole = readingOf(original)
  const seek = (reading: Reading, needle: string, min: number, partial = false) => {
    for (const at of placesOf(reading.text, needle)) {
      // The characters around have bits of the first and the last byte.
      const [before, behind] = [at - 1, at + needle.length].map((place) =>
        Number(partial && base64Character.test(reading.text[place] ?? '')),
      )
      add(reading, at - before!, needle.length + before! + behind!)
    }
    const overlap = isCut ? overlapOf(reading.text, needle, min) : 0
    if (overlap > 0) ranges.push({ from: reading.from[reading.text.length - overlap]!, to: original.length })
  }
  const read = (reading: Reading) => {
    for (const needle of needles.alone) {
      for (const at of placesOf(reading.text, needle))
        if (standsAlone(reading.text, at, at + needle.length)) add(reading, at, needle.length)
    }
    for (const needle of needles.exact) seek(reading, needle, secretMinCharacters)
    if (needles.exact.length === 0) return
    const plain = asPlain(reading)
    for (const needle of needles.plain) seek(plain, needle, secretMinCharacters)
    const base64 = asBase64(reading)
    for (const needle of needles.base64) seek(base64, needle, secretMinCharacters, true)
    const lowerCase = { ...plain, text: plain.text.toLowerCase() }
    if (lowerCase.text.length === plain.text.length)
      for (const needle of needles.hexadecimal) seek(lowerCase, needle, 2 * secretMinCharacters)
  }
  const readAll = (reading: Reading) => {
    read(reading)
    const plain = decoded(reading, isCut)
    if (plain.text !== reading.text) read(plain)
    if (isCut) read(withoutBrokenEnd(plain))
  }
  readAll(whole)
  const unquoted = replaced(isCut ? withoutBrokenEnd(whole) : whole, quotedPrintable, ({ quoted }) =>
    quoted === undefined ? '' : ofBytes([quoted.slice(1)]),
  )
  if (unquoted.text !== original) readAll(unquoted)
  return ranges
}

/**
 * Returns the text with every secret replaced by `[REDACTED]`, in whatever form a program has written it.
 * @param options.isCut the text was cut off: the beginning of a secret at its end is left out
 */
export const withoutSecrets = (text: string, secrets: readonly string[], { isCut = false } = {}): string => {
  if (text === '' || secrets.length === 0) return text
  const ranges = rangesIn(text, needlesOf(secrets), isCut).toSorted((one, other) => one.from - other.from || other.to - one.to)
  let [result, end] = ['', 0]
  for (const { from, to } of ranges) {
    if (from >= end) result += text.slice(end, from) + (isCut && to === text.length ? '' : redacted)
    end = Math.max(end, to)
  }
  return result + text.slice(end)
}

/**
 * Redacts a text, then cuts it to `maxBytes`. In the other order, a secret that was cut in two would not be found. Of a long text, only the beginning
 * is read: four times as much as is kept, in which secrets may have been written longer.
 */
export const redactAndCut = (text: string, secrets: readonly string[], maxBytes: number): string => {
  const head = cutText(text, 4 * maxBytes)
  return cutToBytes(withoutSecrets(head, secrets, { isCut: head.length < text.length }), maxBytes)
}
