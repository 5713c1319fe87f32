import * as fc from 'fast-check'
import {
  cutText,
  cutToBytes,
  isPlainText,
  isStorable,
  markdownText,
  plainLines,
  plainText,
  plainValue,
  storable,
  storableJson,
  visibleLine,
  visibleLines,
} from '../../src/base/text.ts'
import { anyText, hostileTexts, wrongIn } from '../support/hostile-text.ts'

const hostile = Object.entries(hostileTexts)
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
const boundaries = (text: string) => new Set([...graphemes.segment(text)].map(({ index }) => index).concat(text.length))

test.each(hostile)('%s becomes one line of 1,000 characters at most', (_, text) => {
  const plain = plainText(text)
  expect(wrongIn(plain)).toEqual([])
  expect(plain.length).toBeLessThanOrEqual(1_000)
})

test.each(hostile)('%s becomes lines that a terminal only shows', (_, text) => {
  const plain = plainLines(text, 2_000)
  expect(wrongIn(plain, { lines: true })).toEqual([])
  expect(plain.length).toBeLessThanOrEqual(2_000)
})

test('any text becomes one line, and stays the same the second time', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 10, max: 100 }), (text, maxCharacters) => {
      const plain = plainText(text, maxCharacters)
      expect(wrongIn(plain)).toEqual([])
      expect(plain.length).toBeLessThanOrEqual(maxCharacters)
      expect(plainText(plain, maxCharacters)).toBe(plain)
      const value = plainValue(text, maxCharacters)
      expect(wrongIn(value)).toEqual([])
      expect(value.length).toBeLessThanOrEqual(maxCharacters)
    }),
  )
})

test('a text of people stays as it is: joiners of Persian and of emoji, accents, writing from right to left', () => {
  for (const text of ['می‌خواهم', 'क्‍ष', '👩‍👩‍👧‍👦 ❤️ 🇩🇪', 'Ångström, naïve', 'שלום', '葛󠄀城', 'a  b']) {
    expect(plainText(text)).toBe(text)
    expect(isPlainText(text)).toBe(true)
  }
})

test('a text is cut at the end of what people take for a character', () => {
  const texts = ['👩‍👩‍👧‍👦'.repeat(20), '🇩🇪🇫🇷'.repeat(20), 'e\u0301'.repeat(40), '🏽👍🏽'.repeat(20), 'क्षि'.repeat(20), 'x😀'.repeat(30)]
  for (const text of texts) {
    const whole = boundaries(text)
    for (let maxCharacters = 0; maxCharacters <= text.length; maxCharacters += 1) {
      const cut = cutText(text, maxCharacters)
      expect(cut.length).toBeLessThanOrEqual(maxCharacters)
      expect(text.startsWith(cut)).toBe(true)
      expect(whole).toContain(cut.length)
    }
  }
})

test('a letter with more accents than any language has is cut within them, and never within a surrogate pair', () => {
  expect(cutText(`e${'\u0301'.repeat(10_000)}`, 500)).toHaveLength(500)
  const wide = `e${'\u{1d165}'.repeat(10_000)}`
  for (const maxCharacters of [500, 501]) expect(cutText(wide, maxCharacters).isWellFormed()).toBe(true)
})

test('a text is cut to bytes between two code points', () => {
  expect(['a', 'aé', 'aé', 'aé', 'aé', 'aé😀'].map((_, at) => cutToBytes('aé😀', at + 2))).toEqual(['a', 'aé', 'aé', 'aé', 'aé', 'aé😀'])
  expect(cutToBytes('aé😀', -1)).toBe('')
})

test('data that stay exact become storable, and JSON of them with every key', () => {
  fc.assert(
    fc.property(anyText, anyText, (key, text) => {
      expect(isStorable(storable(text))).toBe(true)
      const json = storableJson({ [key]: [text, { inner: text }], at: new Date(0), none: undefined })
      expect(JSON.parse(json)).toEqual({ [storable(key)]: [storable(text), { inner: storable(text) }], at: '1970-01-01T00:00:00.000Z' })
    }),
  )
})

test('JSON of text that is storable stays as it is, with an escaped backslash as well', () => {
  const value = { text: '\\u0000 \\ud83d', '😀': [null, 1, true] }
  expect(storableJson(value)).toBe(JSON.stringify(value))
})

test('a terminal gets nothing that it obeys, and JSON stays the same JSON', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(wrongIn(visibleLine(text))).toEqual([])
      expect(wrongIn(visibleLines(text), { lines: true })).toEqual([])
      const json = JSON.stringify({ text }, null, 2)
      expect(JSON.parse(visibleLines(json))).toEqual({ text })
    }),
  )
  expect(visibleLine('a\u001b[2J\n\u009b\ud83d!\u{e0041}')).toBe('a\\u001b[2J\\u000a\\u009b\\ud83d!\\udb40\\udc41')
})

test.each(hostile.filter(([name]) => !/megabyte|where texts are cut/.test(name)))('%s is no name', (_, text) => {
  expect(isPlainText(text)).toBe(false)
})

test('a text is shown by Markdown as it is, and most texts need no escape for that', () => {
  for (const text of ['http_403: no_such_bucket', String.raw`C:\data`, 'R&D < 3', 'a > b', '50 % (x) #1 ~ 2 | 3'])
    expect(markdownText(text)).toBe(text)
  expect(markdownText('[Sign in](https://evil.example)')).toBe(String.raw`\[Sign in\](https://evil.example)`)
  expect(markdownText('<b>&lt;&#x202e;*a*')).toBe(String.raw`\<b>\&lt;\&#x202e;\*a\*`)
  // A backslash of the text must not take away the escape that follows it.
  expect(markdownText(String.raw`\[a](b)`)).toBe(String.raw`\\\[a\](b)`)
})
