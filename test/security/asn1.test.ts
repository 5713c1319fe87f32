import { childrenOf, parseBer } from '../../src/security/asn1.ts'

const repeat = (element: string, times: number) => element.repeat(times)
const asIndefinite = (content: string) => Buffer.from(`3080${content}0000`, 'hex')
const asDefinite = (content: string) => Buffer.from(`3084${(content.length / 2).toString(16).padStart(8, '0')}${content}`, 'hex')

describe('parseBer', () => {
  test.each([
    ['with a length', asDefinite],
    ['that ends with an end-of-contents element', asIndefinite],
  ])('reads a SEQUENCE %s', (_, sequence) => {
    expect(childrenOf(parseBer(sequence(repeat('020101', 900))))).toHaveLength(900)
    expect(childrenOf(parseBer(sequence(repeat('0481020000', 900))))).toHaveLength(900)
  })

  test.each([
    ['integers', repeat('020101', 1_000)],
    ['empty elements with a long tag', repeat('1f8a0100', 1_000)],
    ['elements inside each other', repeat('3003020101', 500)],
    ['sequences without a length inside each other', repeat('3080', 1_000)],
    ['elements after the first one', repeat('3000', 1_000)],
  ])('returns undefined if there are more than 1,000 %s', (_, content) => {
    expect(parseBer(asDefinite(content))).toBeUndefined()
    expect(parseBer(asIndefinite(content))).toBeUndefined()
  })

  test.each(['', '30', '3084', '30840000', '3085ffffffffff', '1f', '1fff', '0485', '040a00'])(
    'returns undefined for the cut encoding %j',
    (hex) => {
      expect(parseBer(Buffer.from(hex, 'hex'))).toBeUndefined()
    },
  )
})
