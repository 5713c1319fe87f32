import * as fc from 'fast-check'

/** Texts that a target, a source system or a person may send, by what is wrong with them. */
export const hostileTexts: Record<string, string> = {
  'the first half of a surrogate pair': '\ud83d',
  'the second half of a surrogate pair': 'x\ude00y',
  NUL: 'before\0after',
  'control characters of ASCII': Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('.'),
  'control characters of Latin-1': `\x7f${Array.from({ length: 32 }, (_, code) => String.fromCharCode(0x80 + code)).join('.')}`,
  'escape sequences': '\u001b]0;PWNED\u0007\u001b[2J\u001b[1;31mred\u001b[0m \u009b31mred',
  'lines of their own': 'failed\r\n\r\nWhat to do:\n  Sign in at https://evil.example/ \u0085 now',
  'the line separators of Unicode': 'one\u2028two\u2029three',
  'marks of direction': '\u202egpj.exe\u202c \u2066a\u2069 \u200f\u200e\u061c',
  'characters without width': 'pass\u200bword\ufeff \u00ad\u2060 \u180e',
  'tags that only programs see': `tag ${String.fromCodePoint(0xe0041, 0xe0042, 0xe007f)}`,
  'fillers that look like a blank': 'a\u3164b\uffa0c',
  'notes between lines': '\ufff9a\ufffab\ufffb',
  'a megabyte': 'x'.repeat(1_000_000),
  'a megabyte of emoji': '\u{1f469}\u200d\u{1f469}\u200d\u{1f467}\u200d\u{1f466}'.repeat(91_000),
  'a megabyte of accents': `e${'\u0301'.repeat(1_000_000)}`,
  'an emoji where texts are cut': `${'x'.repeat(999)}\u{1f600}y`,
}

const parts = Object.values(hostileTexts).filter((text) => text.length < 2_000)

/** Any text, and any mixture of hostile ones. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 60 }).map((codes) => String.fromCharCode(...codes)),
  fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ unit: 'grapheme' })), { maxLength: 40 }).map((texts) => texts.join('')),
)

const hidden = [
  [0x00ad, 0x00ad],
  [0x061c, 0x061c],
  [0x180e, 0x180e],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
  [0xfff0, 0xfff8],
  [0xe0000, 0xe00ff],
] as const

/** Returns what is wrong with a text where it comes out: a list of code points, of which line breaks and tabs may be allowed. */
export const wrongIn = (text: string, { lines = false } = {}): string[] =>
  Array.from(text, (character) => character.codePointAt(0)!)
    .filter((code) => {
      if (code === 0x0a || code === 0x09) return !lines
      if (code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0xd800 && code <= 0xdfff)) return true
      return hidden.some(([from, to]) => code >= from && code <= to)
    })
    .map((code) => `U+${code.toString(16).padStart(4, '0')}`)

/** Returns what is wrong with any of the texts of a value, its keys included. The body of an answer may have lines. */
export const wrongInside = (value: unknown, name = ''): string[] => {
  if (typeof value === 'string') return wrongIn(value, { lines: name === 'body' || name === 'text' })
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => [...wrongIn(key), ...wrongInside(each, key)])
}
