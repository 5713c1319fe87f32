import { isNamedBeside, isSensitive, mention, namesAnother, redacted, pauseAfterSteps, type Steps } from './redact.ts'

// Everything but the sensitive values stays the same, byte for byte: a number of twenty digits, or an object with a repeated key, would
// change if it were parsed and serialized. JSON.parse is also not used to check the text: it needs 0.2 s for a megabyte of brackets, and
// its errors are slow if there are thousands of them.

const opening = /^[\uFEFF \t\r\n]*["[{]/
const blanks = /[ \t\r\n]*/y
const scalar = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y

/** Returns the end of the match at a position, or undefined if there is none. */
const matchAt = (pattern: RegExp, text: string, at: number): number | undefined => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}

/** Returns the position after the closing quote of the string that begins at `start`, or undefined if it does not end. */
const endOfString = (text: string, start: number): number | undefined => {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
  return undefined
}

const controls: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** Returns the content of a string literal. */
const unescape = (literal: string): string =>
  literal
    .slice(1, -1)
    .replaceAll(/\\(?:u([0-9a-f]{4})|([^]))/gi, (_, hex: string | undefined, character: string) =>
      hex === undefined ? (controls[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
    )

const longCharacters = 10_000
// Longer than names are.
const nameMaxCharacters = 100

/** Replaces parts of a text, each by another text. Of parts within one another, the outer one counts. */
const replaced = (text: string, replacements: { from: number; to: number; by: string }[]): string => {
  const output: string[] = []
  let kept = 0
  for (const { from, to, by } of replacements.toSorted((one, other) => one.from - other.from || other.to - one.to)) {
    if (from < kept) continue
    output.push(text.slice(kept, from), by)
    kept = to
  }
  return output.join('') + text.slice(kept)
}

/** Redacts JSON inside a JSON string. @returns undefined if the string stays as it is */
function* redactString(literal: string): Steps<string | undefined> {
  if (!literal.includes('{') && !literal.includes('\\u007')) return undefined
  const isLong = literal.length > longCharacters
  const inner = unescape(literal)
  if (isLong) yield
  const safe = opening.test(inner) ? yield* redactJson(inner) : undefined
  if (isLong) yield
  return safe === undefined || safe === inner ? undefined : JSON.stringify(safe)
}

/**
 * Redacts JSON, in one pass from token to token. The content of strings and keys is not checked.
 * @returns undefined if the text is not JSON
 */
export function* redactJson(text: string): Steps<string | undefined> {
  // An escape sequence may spell a letter of a key.
  const mayHaveSecrets = mention.test(text) || text.includes('\\u')
  const isPauseDue = pauseAfterSteps()
  const replacements: { from: number; to: number; by: string }[] = []
  const replace = (from: number, to: number, by: string) => replacements.push({ from, to, by })

  /** Open objects and arrays, as a stack of their closing brackets. */
  const open: string[] = []
  /** What is known of each of them that is an object: its last key, and whether another member names its value. */
  const members: ({ key?: string; from: number; isNamed?: boolean; value?: { from: number; to: number } } | undefined)[] = []
  /** The sensitive value that is being read, and the number of containers around it. */
  let secret: { from: number; depth: number } | undefined
  let expected: 'value' | 'value or end' | 'key or end' | 'separator' = 'value'

  let at = matchAt(blanks, text, text.startsWith('\uFEFF') ? 1 : 0)!
  while (at < text.length) {
    if (isPauseDue()) yield
    const character = text[at]!
    const isKey = expected === 'key or end'
    let end: number | undefined
    if (expected === 'separator' && character === ',' && open.length > 0) {
      end = at + 1
      // Another one may be missing: people write commas at the end.
      expected = open.at(-1) === '}' ? 'key or end' : 'value or end'
    } else if ((expected === 'separator' || expected === 'value or end' || expected === 'key or end') && character === open.at(-1)) {
      end = at + 1
      open.pop()
      const { isNamed, value } = members.pop() ?? {}
      if (isNamed && value) replace(value.from, value.to, `"${redacted}"`)
      expected = 'separator'
    } else if (expected === 'separator') {
      return undefined
    } else if (character === '"') {
      end = endOfString(text, at)
      if (end === undefined) return undefined
      if (isKey) {
        const colon = matchAt(blanks, text, end)!
        if (text[colon] !== ':') return undefined
        const key = text.slice(at + 1, end - 1)
        end = matchAt(blanks, text, colon + 1)!
        if (mayHaveSecrets && !secret && isSensitive(key.includes('\\') ? unescape(`"${key}"`) : key)) {
          secret = { from: end, depth: open.length }
        }
        const object = members.at(-1)
        if (mayHaveSecrets && object) [object.key, object.from] = [key, end]
        expected = 'value'
      } else {
        const safe: string | undefined = mayHaveSecrets && !secret ? yield* redactString(text.slice(at, end)) : undefined
        if (safe !== undefined) replace(at, end, safe)
        expected = 'separator'
      }
    } else if (isKey) {
      return undefined
    } else if (character === '{' || character === '[') {
      end = at + 1
      open.push(character === '{' ? '}' : ']')
      members.push(character === '{' ? { from: 0 } : undefined)
      expected = character === '{' ? 'key or end' : 'value or end'
    } else {
      end = matchAt(scalar, text, at)
      expected = 'separator'
    }
    if (end === undefined) return undefined
    if (secret && expected === 'separator' && open.length === secret.depth) {
      replace(secret.from, end, `"${redacted}"`)
      secret = undefined
    }
    const object = expected === 'separator' ? members.at(-1) : undefined
    if (object?.key !== undefined) {
      const { key, from } = object
      if (namesAnother(key))
        object.isNamed ||= text[from] === '"' && end - from <= nameMaxCharacters && isSensitive(unescape(text.slice(from, end)))
      else if (isNamedBeside(key)) object.value = { from, to: end }
      delete object.key
    }
    at = matchAt(blanks, text, end)!
  }
  return expected === 'separator' && open.length === 0 ? replaced(text, replacements) : undefined
}
