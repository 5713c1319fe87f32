// Text of others: of a target, of the source system, of a provider, of a person. It enters the relay here, once, so that Temporal, PostgreSQL,
// JSON, logs, mails and terminals get only text that they can carry, and that looks like what it is. This module imports nothing: workflows and
// the command line use it as well.

/** The length of a text of others, in UTF-16 code units, where nothing says another one. Enough for any message. */
export const textMaxCharacters = 1_000

// Characters that people do not see and that change what they see: marks of direction, characters without width, tags. The two joiners stay:
// Persian and the languages of India need them, and so do many emoji. So do marks and letters, such as the variants of a Chinese character, but for two fillers of Hangul, which no
// syllable needs.
const hidden = String.raw`[\p{Default_Ignorable_Code_Point}--[\p{M}\p{L}\u200c\u200d]]|[\u3164\uffa0\ufff9-\ufffb]`
const hiddenCharacters = new RegExp(hidden, 'gv')
// Every control character of ASCII and Latin-1, and whatever ends a line.
const controlCharacters = /[\p{Cc}\p{Zl}\p{Zp}]+/gu
const lineEnds = /\r\n?|[\u0085\p{Zl}\p{Zp}]/gu
const otherControlCharacters = /[^\P{Cc}\n\t]+/gu

/** A run of control characters becomes a blank, unless there is one beside it. */
const blankFor = (run: string, at: number, text: string): string => (text[at - 1] === ' ' || text[at + run.length] === ' ' ? '' : ' ')

const onOneLine = (text: string): string => storable(text).replace(hiddenCharacters, '').replace(controlCharacters, blankFor).trim()

/**
 * Returns a text of others on one line: well-formed, without control characters and hidden marks, and not longer than `maxCharacters` UTF-16
 * code units. Line breaks and control characters become a blank, NUL and lone surrogates U+FFFD. The end of one that is cut is `...`.
 */
export const plainText = (text: string, maxCharacters = textMaxCharacters): string => shortenedText(onOneLine(text), maxCharacters)

/** Returns a value of others, such as a business key, as `plainText` does, without a mark where it is cut. */
export const plainValue = (value: string, maxCharacters: number): string => cutText(onOneLine(value), maxCharacters).trimEnd()

/** Returns a text of others as `plainText` does, with its line breaks, all of them `\n`, and its tabs. */
export const plainLines = (text: string, maxCharacters = Number.POSITIVE_INFINITY): string =>
  shortenedText(storable(text).replace(hiddenCharacters, '').replace(lineEnds, '\n').replace(otherControlCharacters, ' '), maxCharacters)

const ellipsis = '...'

/** Cuts a text that is too long, and says so: it ends with `...`. */
const shortenedText = (text: string, maxCharacters: number): string =>
  text.length <= maxCharacters ? text : `${cutText(text, maxCharacters - ellipsis.length)}${ellipsis}`

// The longest emoji have 35 code units. A letter below a hundred accents is cut like a text.
const characterMaxLength = 64
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Cuts a text to a number of UTF-16 code units. It never ends within what people take for one character: an emoji, a letter with its accents. */
export const cutText = (text: string, maxCharacters: number): string => {
  if (text.length <= maxCharacters) return text
  const end = segmenter.segment(text.slice(0, maxCharacters + characterMaxLength)).containing(maxCharacters)?.index ?? maxCharacters
  if (end > maxCharacters - characterMaxLength) return text.slice(0, end)
  const isPair = (text.codePointAt(maxCharacters - 1) ?? 0) > 0xffff
  return text.slice(0, isPair ? maxCharacters - 1 : maxCharacters)
}

/** Cuts a text to a number of bytes of UTF-8, without splitting a code point. */
export const cutToBytes = (text: string, maxBytes: number): string => {
  const kept = new Uint8Array(Math.max(0, maxBytes))
  return text.slice(0, new TextEncoder().encodeInto(text, kept).read)
}

const unstorable = /\0/g

/** Returns data that have to stay as they are, with NUL and lone surrogates, which PostgreSQL and JSON cannot carry, replaced by U+FFFD. */
export const storable = (text: string): string => text.replace(unstorable, '\ufffd').toWellFormed()

/** Returns whether PostgreSQL can store a text: it must not contain NUL or unpaired surrogates. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Returns JSON for a column of the type jsonb. Every text in it, and every key, is storable. */
export const storableJson = (value: unknown): string => {
  const text = JSON.stringify(value)
  return mayBeUnstorable.test(text) ? JSON.stringify(value, (_, each: unknown) => storableValue(each)) : text
}

// The escapes that JSON.stringify writes for NUL and lone surrogates. An escaped backslash before it is a false alarm.
const mayBeUnstorable = /\\u(?:0000|d[89a-f])/

const storableValue = (value: unknown): unknown => {
  if (typeof value === 'string') return storable(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [storable(key), each]))
}

const unseenInLine = new RegExp(String.raw`[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|${hidden}`, 'gv')
const unseenInLines = new RegExp(String.raw`[[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]--[\n\t]]|${hidden}`, 'gv')

// Joiners, marks and fillers alone look like nothing, and so does the empty pattern of Braille.
const seen = new RegExp(String.raw`[[\p{L}\p{N}\p{P}\p{S}\p{Co}]--[\p{Default_Ignorable_Code_Point}\u2800]]`, 'v')

/** Returns whether a text is one line that looks like what it is, and like something: a name that people choose must be. */
export const isPlainText = (text: string): boolean => text.search(unseenInLine) < 0 && seen.test(text)

const escapeOf = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** Returns a line for a terminal. Control and invisible characters are written as in JSON: `\u001b`. */
export const visibleLine = (text: string): string => text.replace(unseenInLine, escapeOf)

/** Returns lines for a terminal: as `visibleLine`, with their line breaks and tabs. JSON stays the same JSON. */
export const visibleLines = (text: string): string => text.replace(unseenInLines, escapeOf)

// Emphasis, code, links and pictures, an escape of one of them, a tag, and an entity, which may name any character.
const markdown = /[`*[\]]|\\(?=[!-/:-@[-`{-~])|<(?=[a-z/!?])|&(?=#?\w+;)/gi

/** Returns a text for a place that shows Markdown, which the UI of Temporal does with summaries and details: it makes no link and no picture. */
export const markdownText = (text: string): string => text.replace(markdown, String.raw`\$&`)

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t' || character === '\r'

/**
 * Returns a text without the blanks, tabs and CRs around it, in time in proportion to its length. `trim` would also take U+00A0, which may be half a
 * character where each byte of UTF-8 is one.
 */
export const withoutOuterBlanks = (text: string): string => {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start += 1
  while (end > start && isBlank(text[end - 1])) end -= 1
  return text.slice(start, end)
}
