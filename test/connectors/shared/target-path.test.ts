import { array, assert, property, string } from 'fast-check'
import { partFileName, targetSegments } from '../../../src/connectors/shared/target-path.ts'
import { names } from '../names.ts'

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

test.each(names)('%j is stored as %j, and as %j for Windows', (path, any, windows) => {
  const matching = (expected: string | RegExp) => (typeof expected === 'string' ? expected : expect.stringMatching(expected))
  expect(targetSegments(path).join('/')).toEqual(matching(any))
  expect(targetSegments(path, { names: 'windows' }).join('/')).toEqual(matching(windows))
})

test('a name that is too long is cut, keeps its extension, and stays distinct from similar names', () => {
  const [first] = targetSegments(`${'ä'.repeat(300)}1.pdf`)
  const [second] = targetSegments(`${'ä'.repeat(300)}2.pdf`)
  expect(first).toMatch(/^ä+~[0-9a-f]{16}\.pdf$/)
  expect(first).not.toBe(second)
  expect(Buffer.byteLength(first!)).toBeLessThanOrEqual(255)
})

test.each(['any', 'windows'] as const)('no path leaves its folder, and different paths stay different, for %s', (fileNames) => {
  const path = array(string({ unit: 'grapheme', minLength: 1, maxLength: 300 }), { minLength: 1, maxLength: 4 }).map((parts) =>
    parts.join('/'),
  )
  const stored = (text: string) => {
    try {
      return targetSegments(text, { names: fileNames })
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
        if (fileNames === 'windows') {
          expect(segment).not.toMatch(/[<>:"|?*]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d) *(\.|$)/i)
          expect(segment).toBe(segment.normalize('NFC'))
        }
        expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(255)
        expect(Buffer.byteLength(partFileName(segment, 'x'.repeat(53)))).toBeLessThanOrEqual(255)
      }
      if (one !== other) expect(stored(other)?.join('/')).not.toBe(segments.join('/'))
    }),
  )
})
