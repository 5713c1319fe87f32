import { readFields } from '../../src/enrichment/answer.ts'
import { jsonPathIssue } from '../../src/enrichment/json-path.ts'

const field = (path: string) => ({ name: 'found', path, type: 'string' as const, optional: false })
const find = (path: string, answer: unknown) => readFields({ text: JSON.stringify(answer), fields: [field(path)] }).values['found']

describe('a regular expression of a path', () => {
  test.each([
    ['match', 'RE-[0-9]{4}', 'RE-4711', true],
    ['match', 'RE-[0-9]{4}', 'x RE-4711', false],
    ['search', 'RE-[0-9]{4}', 'x RE-4711 y', true],
    ['match', 'a.c', 'a\u{1f4c4}c', true],
    ['match', 'a.c', 'a\nc', false],
    ['match', 'a[.]c', 'abc', false],
    ['match', String.raw`a\\.c`, 'a.c', true],
    ['match', String.raw`\\p{Lu}\\p{Ll}+`, 'Ärger', true],
    ['match', '[^a-c]+', 'xyz', true],
    ['match', String.raw`[\\]a]+`, ']a', true],
    ['match', '(ab|cd)*', 'abcdab', true],
    ['search', 'b{2,3}', 'abbc', true],
  ])('of %s: %s on %j is %j', (name, expression, text, isFound) => {
    expect(find(`$[?${name}(@, '${expression}')]`, [text])).toBe(isFound ? text.replace(/\s+/g, ' ') : undefined)
  })

  test('that comes from the answer and is none matches nothing', () => {
    const answer = {
      list: [
        { text: 'a', expression: '(' },
        { text: 'b', expression: 'b' },
      ],
    }
    expect(find('$.list[?match(@.text, @.expression)].text', answer)).toBe('b')
    expect(find('$.list[?match(@.text, @.none)].text', answer)).toBeUndefined()
  })

  // Each has more ways to match than can be tried. One look at each character decides.
  test.each(['(a|a|aa)*(a|a|aa)*b', '(a*)*b', '(a+)+b', '(.*a){20}b', '(a?){30}a{30}b', '([a-z]+)*1', '(a|b|ab)*c', '.*.*.*.*.*b'])(
    'takes time in proportion to the text: %s',
    (expression) => {
      expect(jsonPathIssue(`$[?match(@, '${expression}')]`)).toBeUndefined()
      const answer = ['a'.repeat(30_000), 'x']
      for (const name of ['match', 'search']) expect(find(`$[?${name}(@, '${expression}')]`, answer)).toBeUndefined()
    },
  )

  test.each([
    ['looks ahead', '(?=a)b'],
    ['looks behind', '(?<=a)b'],
    ['refers back', String.raw`(a)\\1`],
    ['is atomic', '(?>a)'],
    ['is too large', '(a{1000}){1000}'],
    ['is too large by its groups', '((a?b?){100}){20}'],
    ['is not closed', '(a'],
    ['repeats nothing', '*a'],
  ])('that %s is refused', (_, expression) => {
    for (const name of ['match', 'search']) {
      expect(jsonPathIssue(`$[?${name}(@, '${expression}')]`)).toMatch('regular expression')
      expect(jsonPathIssue(`$.a[?@.b == 1 && !(${name}(@.c, "${expression}") || @.d)]`)).toMatch('regular expression')
    }
  })

  test('is not asked for in a path that is none', () => {
    expect(jsonPathIssue('$.[')).toBe('must be a JSONPath (RFC 9535), for example $.exports.LIFNR')
    expect(jsonPathIssue('$.exports.LIFNR')).toBeUndefined()
  })
})
