import { array, assert, property, string } from 'fast-check'
import { partFileName, targetSegments } from '../../../src/connectors/shared/target-path.ts'
import { isCompId } from '../../../src/content-server/parameters.ts'
import { pathSegment } from '../../../src/domain/fan-out.ts'
import { fileNameOf } from '../../../src/domain/file-name.ts'
import { parseQuery } from '../../../src/receiver/command.ts'
import { names, realNames } from '../names.ts'

test.each([
  ['a/b.pdf', 'a/b.pdf'],
  ['100%.pdf', '100%.pdf'],
  ['100%25.pdf', '100%25.pdf'],
  ['a\\b', 'a%5Cb'],
  ['a%255Cb', 'a%255Cb'],
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

test.each([
  ['Z1/D1/data.meta.json', 'Z1/D1/data.meta%2Ejson'],
  ['Z1/D1/DATA.META.JSON', 'Z1/D1/DATA.META%2EJSON'],
  ['Z1/D1/data.meta.json.meta.json', 'Z1/D1/data.meta.json.meta%2Ejson'],
  ['Z1/D1/data.meta%2Ejson', 'Z1/D1/data.meta%2Ejson'],
  ['Z1/D1/data.json', 'Z1/D1/data.json'],
  ['Z1/D1/meta.json', 'Z1/D1/meta.json'],
])('%j is stored as %j where a file of properties stands beside a document', (path, stored) => {
  for (const each of ['any', 'windows'] as const)
    expect(targetSegments(path, { names: each, hasPropertyFiles: true }).join('/')).toBe(stored)
  expect(targetSegments(path).join('/')).toBe(path)
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
    parts.map(pathSegment).join('/'),
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

test.each(realNames)('the component %s is kept as %s, and its file is called %s', (sent, key, fileName) => {
  const compId = parseQuery(`get&compId=${sent}`).parameters[0]!.value
  expect(compId).toBe(key)
  expect(isCompId(compId)).toBe(true)
  expect(targetSegments(pathSegment(fileNameOf({ compId, contentType: 'application/pdf', fileName: null, fields: {} })))).toEqual([
    fileName,
  ])
})

test.each([
  ['ä'.repeat(255), true],
  ['%EC%9A%B4'.repeat(255), true],
  ['\u0081', true],
  ['ä'.repeat(256), false],
  ['%EC%9A%B4'.repeat(256), false],
  ['a\u007f', false],
  ['', false],
])('a name has 1 to 255 characters and no control character of ASCII: %#', (name, accepted) => {
  expect(isCompId(name)).toBe(accepted)
})
