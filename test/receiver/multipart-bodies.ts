import * as fc from 'fast-check'
import { bytesOf } from '../support/properties.ts'
import { multipartBody } from '../support/source-system.ts'

// Multipart bodies, and ways to cut them, for property tests.

export const boundary = 'B-1'
const delimiter = `\r\n--${boundary}`

export const bodyTokens = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '-',
  '--',
  'B-1',
  '\r\n--B-',
  '\r\n--B-1',
  '--B-1\r\n',
  '--B-1--',
  'X-compId: a\r\n',
  ':',
  '\0',
  'x',
]

const small = bytesOf(bodyTokens, 12).filter((bytes) => !`\r\n${bytes.toString('latin1')}`.includes(delimiter))

/** Just about fills the stream that a part is read from, and ends like the beginning of a boundary. */
const filling = fc
  .tuple(fc.integer({ min: -3, max: 3 }), fc.constantFrom('', '\r', '\r\n', '\r\n--'))
  .map(([more, end]) => Buffer.concat([Buffer.alloc(65_536 + more - end.length, 'x'), Buffer.from(end)]))

const header = fc.string({ unit: fc.constantFrom('a', ' ', ':', ';', '=', '"', '-', '\t', '\xe4'), maxLength: 8 })
const partOf = fc.record({
  compId: header,
  contentType: header,
  body: fc.oneof({ weight: 12, arbitrary: small }, { weight: 1, arbitrary: filling }),
})

/** Parts, and the bytes they make. */
export const multipartBodies = fc
  .record({ parts: fc.array(partOf, { maxLength: 4 }), preamble: small, epilogue: bytesOf(bodyTokens, 6) })
  .map(({ parts, preamble, epilogue }) => {
    const toSend = parts.map(({ compId, contentType, body }) => ({ headers: { 'X-compId': compId, 'Content-Type': contentType }, body }))
    const bytes = multipartBody(boundary, toSend)
    const before = preamble.length > 0 ? [preamble, Buffer.from('\r\n')] : []
    // an empty document is taken only as the interface writes it
    return { parts, bytes: parts.length > 0 ? Buffer.concat([...before, bytes, epilogue]) : bytes }
  })

interface Cuts {
  anywhere: number[]
  /** Relative to every boundary. */
  around: number[]
  /** 0 for nowhere in particular. */
  everyBytes: number
}

const none = fc.constant<number[]>([])

/** Where a network cuts a body: anywhere, at and around its boundaries, or every few bytes. */
export const cuts: fc.Arbitrary<Cuts> = fc.oneof(
  fc.record({ anywhere: fc.array(fc.nat(), { maxLength: 12 }), around: none, everyBytes: fc.constant(0) }),
  fc.record({
    anywhere: fc.array(fc.nat(), { maxLength: 2 }),
    around: fc.uniqueArray(fc.integer({ min: -6, max: 8 }), { minLength: 1, maxLength: 3 }),
    everyBytes: fc.constant(0),
  }),
  fc.record({ anywhere: none, around: none, everyBytes: fc.integer({ min: 1, max: 9 }) }),
)

// a large body byte by byte takes longer than it tells
const steppedMaxBytes = 5_000

export async function* split(bytes: Buffer, { anywhere, around, everyBytes }: Cuts): AsyncGenerator<Buffer, void, undefined> {
  const boundaries = [...bytes.toString('latin1').matchAll(new RegExp(delimiter, 'g'))].map(({ index }) => index)
  const steps = everyBytes > 0 && bytes.length <= steppedMaxBytes ? Math.floor(bytes.length / everyBytes) : 0
  const ends = [
    ...anywhere.map((at) => at % (bytes.length + 1)),
    ...boundaries.flatMap((at) => around.map((by) => at + by)),
    ...Array.from({ length: steps }, (_, index) => index * everyBytes),
  ].toSorted((one, other) => one - other)
  let start = 0
  for (const end of [...ends, bytes.length]) {
    if (end <= start || end > bytes.length) continue
    yield bytes.subarray(start, end)
    start = end
  }
}
