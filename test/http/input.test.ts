import { parseJson } from '../../src/http/input.ts'

describe('a JSON body', () => {
  const parse = (text: string | Buffer) => () => parseJson(Buffer.from(text))

  test.each<[name: string, body: string | Buffer]>([
    ['text', 'hello'],
    ['half an object', '{"name": '],
    ['not UTF-8', Buffer.from('{"name": "Grüße"}', 'latin1')],
  ])('that is %s is not valid', (_name, body) => {
    expect(parse(body)).toThrow('The body is not valid JSON in UTF-8.')
  })

  test('that is nested too deeply is valid JSON, and the refusal says what is wrong', () => {
    const depth = 100_000
    expect(parse('['.repeat(depth) + ']'.repeat(depth))).toThrow('The body is nested too deeply.')
  })

  test('with text that cannot be stored is refused', () => {
    expect(parse('{"name": "\\u0000"}')).toThrow('NUL')
  })
})
