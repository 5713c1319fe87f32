import * as fc from 'fast-check'
import { bytesOf } from '../support/properties.ts'
import { multipartBody } from '../support/source-system.ts'

// Generators of multipart bodies, and of ways to split them into chunks, for property tests.

export const boundary = 'B-1'
const delimiter = `\n--${boundary}`

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

const small = bytesOf(bodyTokens, 12).filter((bytes) => !`\n${bytes.toString('latin1')}`.includes(delimiter))

/** Bytes about as long as the 64 KiB buffer of a part, which end like the beginning of a boundary. */
const bufferFilling = fc
  .tuple(fc.integer({ min: -3, max: 3 }), fc.constantFrom('', '\r', '\r\n', '\r\n--'))
  .map(([more, end]) => Buffer.concat([Buffer.alloc(65_536 + more - end.length, 'x'), Buffer.from(end)]))

const header = fc.string({ unit: fc.constantFrom('a', ' ', ':', ';', '=', '"', '-', '\t', '\xe4'), maxLength: 8 })
const partOf = fc.record({
  compId: header,
  contentType: header,
  body: fc.oneof({ weight: 12, arbitrary: small }, { weight: 1, arbitrary: bufferFilling }),
})

// How a sender ends its lines. `mixed`: the lines of boundaries and headers with CR LF, and the bodies with LF.
const lineEnds = fc.constantFrom({ line: '\r\n', afterBody: '\r\n' }, { line: '\n', afterBody: '\n' }, { line: '\r\n', afterBody: '\n' })

const mayBeCut = (body: Buffer) => body.at(-1) === 0x0d

/** Parts, and the bytes of a body that contains them. */
export const multipartBodies = fc
  .record({ parts: fc.array(partOf, { maxLength: 4 }), preamble: small, epilogue: bytesOf(bodyTokens, 6), lineEnds })
  // With lines of both kinds, a CR at the end of a body and the LF behind it are taken for one line end.
  .filter((body) => body.lineEnds.line === body.lineEnds.afterBody || !body.parts.some((each) => mayBeCut(each.body)))
  .map(({ parts, preamble, epilogue, lineEnds: { line, afterBody } }) => {
    const toSend = parts.map(({ compId, contentType, body }) => ({ headers: { 'X-compId': compId, 'Content-Type': contentType }, body }))
    const bytes = multipartBody(boundary, toSend, { line, afterBody })
    const start = preamble.length > 0 ? [preamble, Buffer.from(line)] : []
    // A body without parts is accepted only without preamble and epilogue.
    return { parts, bytes: parts.length > 0 ? Buffer.concat([...start, bytes, epilogue]) : bytes }
  })

interface Cuts {
  anywhere: number[]
  /** Offsets relative to each boundary. */
  around: number[]
  /** Length of each chunk, or 0 for no regular cuts. */
  everyBytes: number
}

const none = fc.constant<number[]>([])

/** Positions at which a network splits a body: anywhere, at and around its boundaries, or every few bytes. */
export const cuts: fc.Arbitrary<Cuts> = fc.oneof(
  fc.record({ anywhere: fc.array(fc.nat(), { maxLength: 12 }), around: none, everyBytes: fc.constant(0) }),
  fc.record({
    anywhere: fc.array(fc.nat(), { maxLength: 2 }),
    around: fc.uniqueArray(fc.integer({ min: -6, max: 8 }), { minLength: 1, maxLength: 3 }),
    everyBytes: fc.constant(0),
  }),
  fc.record({ anywhere: none, around: none, everyBytes: fc.integer({ min: 1, max: 9 }) }),
)

// Larger bodies are not split every few bytes: that takes long and finds nothing new.
const regularCutsMaxBytes = 5_000

export async function* split(bytes: Buffer, { anywhere, around, everyBytes }: Cuts): AsyncGenerator<Buffer, void, undefined> {
  const boundaries = [...bytes.toString('latin1').matchAll(new RegExp(delimiter, 'g'))].map(({ index }) => index)
  const steps = everyBytes > 0 && bytes.length <= regularCutsMaxBytes ? Math.floor(bytes.length / everyBytes) : 0
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
