import { array, assert, constantFrom, oneof, property, string } from 'fast-check'
import { isSharePointFolder, requirePathFits, sharePointSegments } from '../../../src/connectors/teamsite/library.ts'
import { pathSegment } from '../../../src/domain/fan-out.ts'

test.each([
  ['R1/4F2A/data.pdf', 'R1/4F2A/data.pdf'],
  ['what? *"<a>|:b', 'what%3F %2A%22%3Ca%3E%7C%3Ab'],
  ['100%.pdf', '100%.pdf'],
  ['100%253A.pdf', '100%253A.pdf'],
  [' a . .', '%20a%20%2E%20%2E'],
  ['a.b..c', 'a.b..c'],
  ['.hidden', '.hidden'],
  ['~$lock.docx', '%7E$lock.docx'],
  ['x_VTI_y', 'x%5FVTI_y'],
  ['CON/con.txt/console', '%43ON/%63on.txt/console'],
  ['com1/LPT9.pdf/com', '%63om1/%4CPT9.pdf/com'],
  ['Desktop.ini/.lock/.lockfile', '%44esktop.ini/%2Elock/.lockfile'],
  ['Forms/forms.pdf', '%46orms/forms.pdf'],
  ['a#b&c+d', 'a#b&c+d'],
])('%j is stored as %j', (path, stored) => {
  expect(sharePointSegments(path).join('/')).toBe(stored)
})

test('every name is one that SharePoint accepts, and different paths stay different', () => {
  const odd = constantFrom('*', '~', '.', ' ', '%', '%2', '%2A', '_vti_', 'con', 'COM1', '.lock', ':', '2A', '\u00a0', 'Forms', 'a')
  const name = array(oneof(odd, string({ unit: 'grapheme', maxLength: 3 })), { minLength: 1, maxLength: 5 }).map((parts) =>
    pathSegment(parts.join('')),
  )
  const stored = (text: string) => {
    try {
      return sharePointSegments(text)
    } catch {
      return undefined
    }
  }
  assert(
    property(name, name, (one, other) => {
      const segments = stored(one)
      if (segments === undefined) return
      for (const segment of segments) {
        expect(segment).not.toMatch(/["*:<>?|\\/]|^[\s~]|[\s.]$|_vti_|^(con|com1|\.lock|forms)$/i)
      }
      if (one !== other) expect(stored(other)?.join('/')).not.toBe(segments.join('/'))
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['Incoming/From SAP', true],
  ['a/../b', false],
  ['/a', false],
  ['a/', false],
  ['a*b', false],
  ['Forms', false],
  ['a.', false],
])('the folder %j is accepted unchanged: %s', (folder, fits) => {
  expect(isSharePointFolder(folder)).toBe(fits)
})

test('a path of more than 400 characters is refused with its length', () => {
  const library = 'https://contoso.sharepoint.com/sites/Finance/Shared%20Documents'
  const segments = ['a'.repeat(200), 'b'.repeat(168)]
  expect(() => requirePathFits(library, segments)).not.toThrow()
  expect(() => requirePathFits(library, ['a', ...segments])).toThrow(/402 characters/)
})
