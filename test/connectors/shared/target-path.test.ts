import { array, assert, property, string } from 'fast-check'
import { partFileName, targetSegments } from '../../../src/connectors/shared/target-path.ts'

test.each([
  ['a/b.pdf', 'a/b.pdf'],
  ['100%.pdf', '100%.pdf'],
  ['100%25.pdf', '100%2525.pdf'],
  ['a\\b', 'a%5Cb'],
  ['a%5Cb', 'a%255Cb'],
  ['a\u202Eb', 'a%E2%80%AEb'],
  ['a\uD800b', 'a\uFFFDb'],
  ['.hidden/~/ x ', '.hidden/~/ x '],
])('%j is stored as %j', (path, stored) => {
  expect(targetSegments(path).join('/')).toBe(stored)
})

test('a name that is too long is cut, keeps its extension, and stays distinct from similar names', () => {
  const [first] = targetSegments(`${'ä'.repeat(300)}1.pdf`)
  const [second] = targetSegments(`${'ä'.repeat(300)}2.pdf`)
  expect(first).toMatch(/^ä+~[0-9a-f]{16}\.pdf$/)
  expect(first).not.toBe(second)
  expect(Buffer.byteLength(first!)).toBeLessThanOrEqual(255)
})

test('no path leaves its folder, and different paths stay different', () => {
  const path = array(string({ unit: 'grapheme', minLength: 1, maxLength: 300 }), { minLength: 1, maxLength: 4 }).map((parts) =>
    parts.join('/'),
  )
  const stored = (text: string) => {
    try {
      return targetSegments(text)
    } catch {
      return undefined
    }
  }
  assert(
    property(path, path, (one, other) => {
      const segments = stored(one)
      if (segments === undefined) return
      for (const segment of segments) {
        expect(segment).not.toMatch(/^\.{0,2}$|[/\\\p{Cc}]/u)
        expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(255)
        expect(Buffer.byteLength(partFileName(segment, 'x'.repeat(53)))).toBeLessThanOrEqual(255)
      }
      if (one !== other) expect(stored(other)?.join('/')).not.toBe(segments.join('/'))
    }),
  )
})
