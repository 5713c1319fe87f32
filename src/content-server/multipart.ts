import { setImmediate as nextTurn } from 'node:timers/promises'
import { withoutOuterBlanks } from '../base/text.ts'

/** A multipart body that cannot be read. The message says why, in words for the sender. */
export class MultipartError extends Error {
  readonly code: 'malformed' | 'too_many_parts'

  constructor(code: MultipartError['code'], message: string) {
    super(message)
    this.name = 'MultipartError'
    this.code = code
  }
}

export interface Part {
  /** Returns the first value of a header, without blanks around it, with one character per byte. @param name in lower case */
  header(name: string): string | undefined
  /** Returns all values of a header. */
  values(name: string): string[]
  /** What is left of it is skipped when the next part is asked for. */
  body: AsyncIterable<Buffer>
}

const maxHeaderPairs = 100
const headersMaxBytes = 64 * 1024
// Blanks that may follow a boundary in its line (RFC 2046). Any more are text.
const paddingMaxBytes = 64
// Reading and storing take 0.1 ms per small part.
const partsPerTurn = 20
const usableBoundary = /^[\x20-\x7e]{1,200}$/

const [lineFeed, carriageReturn, hyphen] = [0x0a, 0x0d, 0x2d]

/** @throws `MultipartError` if the content type is not multipart or has no boundary */
export const boundaryOf = (contentType: string | undefined): string => {
  if (!/^multipart\//i.test(contentType ?? '')) throw new MultipartError('malformed', 'the body must be multipart/form-data')
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]*)"|([^;\s]+))/i.exec(contentType!) ?? []
  const boundary = quoted ?? plain ?? ''
  if (!usableBoundary.test(boundary)) throw new MultipartError('malformed', 'the Content-Type has no valid boundary')
  return boundary
}

const malformed = (reason: string) => new MultipartError('malformed', `malformed multipart body: ${reason}`)
const unexpectedEnd = () => malformed('Unexpected end of multipart data')

/** The bytes of a body that have arrived and were not taken. They begin with the line feed that ended the line before. */
interface Input {
  bytes: Buffer
  /** Waits for more. @throws `MultipartError` at the end */
  more(): Promise<void>
  /** Skips the rest. */
  skip(): Promise<void>
  /** Reads no further. The body stays as it is. */
  leave(): void
}

const inputOf = (body: AsyncIterable<Buffer>): Input => {
  const chunks = body[Symbol.asyncIterator]()
  const input: Input = {
    // The first boundary may stand at the very beginning.
    bytes: Buffer.of(lineFeed),
    more: async () => {
      const { done, value } = await chunks.next()
      if (done) throw unexpectedEnd()
      input.bytes = Buffer.concat([input.bytes, value])
    },
    skip: async () => {
      while (!(await chunks.next()).done) continue
    },
    leave: () => void chunks.return?.()?.then(undefined, () => {}),
  }
  return input
}

interface BoundaryLine {
  /** Where the line feed before it stands. */
  start: number
  /** Where the line feed at its end stands. For the last one, where the epilogue begins. */
  end: number
  isLast: boolean
  /** True if its line ends with CR LF, false if with LF alone, undefined if nothing follows it. */
  hasReturn: boolean | undefined
}

/**
 * Reads the parts of a multipart body one after another. Bytes that have not been read stay in the connection. Lines may end with LF alone,
 * as several servers and clients write them.
 * @throws `MultipartError` if the body is malformed or has too many parts, and errors of the body
 */
export async function* readParts(
  body: AsyncIterable<Buffer>,
  { boundary, maxParts }: { boundary: string; maxParts: number },
): AsyncGenerator<Part, void, undefined> {
  const input = inputOf(body)
  const delimiter = Buffer.from(`\n--${boundary}`, 'latin1')
  try {
    const first = await skipTo(input, delimiter)
    // Line ends of one kind are expected everywhere. If it is LF, a CR before it belongs to the content.
    const usesReturn = first.hasReturn !== false
    let { isLast } = first
    for (let count = 1; !isLast; count += 1) {
      const headers = await readHeaders(input, delimiter)
      if (!headers) {
        // A document without components: `--B CRLF --B--`.
        if (count === 1 && (await lineAt(input, delimiter, 0))?.isLast) break
        throw malformed('a part has no header')
      }
      if (count > maxParts) throw new MultipartError('too_many_parts', `a request may contain at most ${maxParts} components`)
      const values: Part['values'] = (name) => headers.get(name) ?? []
      const announced = values('content-length').map(Number)
      let line = undefined as BoundaryLine | undefined
      const content = contentOf(input, delimiter, { usesReturn, announced }, (found) => {
        line = found
      })
      yield { header: (name) => values(name)[0], values, body: contentFor(content) }
      for await (const _ of contentFor(content)) continue
      if (!line) throw unexpectedEnd()
      ;({ isLast } = line)
      // A body can contain thousands of parts. Other requests have their turn between them.
      if (count % partsPerTurn === 0) await nextTurn()
    }
    // The bytes after the last boundary belong to the request as well.
    await input.skip()
  } finally {
    input.leave()
  }
}

/** Lets a reader stop early: the generator goes on where it is. */
const contentFor = (content: AsyncGenerator<Buffer, void, undefined>): AsyncIterable<Buffer> => ({
  [Symbol.asyncIterator]: () => ({ next: () => content.next() }),
})

/** Skips the preamble. */
const skipTo = async (input: Input, delimiter: Buffer): Promise<BoundaryLine> => {
  let line: BoundaryLine | undefined
  const preamble = contentOf(input, delimiter, { usesReturn: true, announced: [] }, (found) => {
    line = found
  })
  for await (const _ of preamble) continue
  return line!
}

/**
 * Yields the bytes up to the next boundary line, and takes it from the input, but for the line feed at its end.
 * @param found is called with the line at the end
 */
async function* contentOf(
  input: Input,
  delimiter: Buffer,
  { usesReturn, announced }: { usesReturn: boolean; announced: number[] },
  found: (line: BoundaryLine) => void,
): AsyncGenerator<Buffer, void, undefined> {
  // The line feed at the front ended the line before, and is no content.
  let begin = 1
  let sent = 0
  let from = 0
  for (;;) {
    const at = input.bytes.indexOf(delimiter, from)
    if (at < 0) {
      // The end may be the begin of a boundary, after a CR.
      const safe = input.bytes.length - delimiter.length
      if (safe > begin) {
        const piece = input.bytes.subarray(begin, safe)
        input.bytes = input.bytes.subarray(safe)
        begin = 0
        sent += piece.length
        yield piece
      }
      from = 0
      await input.more()
      continue
    }
    const line = await lineAt(input, delimiter, at)
    const whole = sent + Math.max(at - begin, 0)
    const follows = at > begin && input.bytes[at - 1] === carriageReturn
    // A document may contain the boundary after a bare line feed: then its announced size tells that it goes on.
    const goesOn = usesReturn && !follows && at >= begin && announced.some((size) => size > whole)
    if (!line || goesOn) {
      from = at + 1
      continue
    }
    const isLineEnd = follows && (usesReturn || announced.includes(whole - 1))
    const end = isLineEnd ? at - 1 : at
    const piece = input.bytes.subarray(begin, Math.max(end, begin))
    input.bytes = input.bytes.subarray(line.end)
    found(line)
    if (piece.length > 0) yield piece
    return
  }
}

/** Reads what follows a delimiter. @returns undefined if that is no boundary line, but a line of text that begins like one */
const lineAt = async (input: Input, delimiter: Buffer, start: number): Promise<BoundaryLine | undefined> => {
  const after = start + delimiter.length
  // Nothing needs to follow the last boundary.
  while (input.bytes.length < after + 2) await input.more()
  if (input.bytes[after] === hyphen && input.bytes[after + 1] === hyphen)
    return { start, end: after + 2, isLast: true, hasReturn: undefined }
  for (let at = after; at - after <= paddingMaxBytes; at += 1) {
    while (input.bytes.length <= at) await input.more()
    const byte = input.bytes[at]
    if (byte === lineFeed) return { start, end: at, isLast: false, hasReturn: input.bytes[at - 1] === carriageReturn }
    if (byte !== 0x20 && byte !== 0x09 && byte !== carriageReturn) return undefined
  }
  return undefined
}

/** Reads the headers of a part, and takes them and the blank line from the input, but for its line feed. @returns undefined if there is a boundary instead */
const readHeaders = async (input: Input, delimiter: Buffer): Promise<Map<string, string[]> | undefined> => {
  for (;;) {
    const blank = blankLineIn(input.bytes)
    const boundary = input.bytes.indexOf(delimiter)
    if (boundary >= 0 && (!blank || boundary < blank.start)) return undefined
    if (blank) {
      const text = input.bytes.toString('latin1', 1, blank.start)
      input.bytes = input.bytes.subarray(blank.end)
      return headersIn(text)
    }
    if (input.bytes.length > headersMaxBytes) throw malformed('the header of a part is too long')
    await input.more()
  }
}

/** Finds a blank line: the line feed before it, and its own. */
const blankLineIn = (bytes: Buffer): { start: number; end: number } | undefined => {
  for (let start = bytes.indexOf(lineFeed); start >= 0; start = bytes.indexOf(lineFeed, start + 1)) {
    const end = bytes[start + 1] === carriageReturn ? start + 2 : start + 1
    if (bytes[end] === lineFeed) return { start, end }
  }
  return undefined
}

const headersIn = (text: string): Map<string, string[]> => {
  const headers = new Map<string, string[]>()
  // A value goes on in a line that begins with a blank.
  const lines = text.replaceAll(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)
  for (const line of lines.slice(0, maxHeaderPairs)) {
    const colon = line.indexOf(':')
    // A name may have spaces before its colon, as mails may.
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    if (name !== '') headers.set(name, [...(headers.get(name) ?? []), withoutOuterBlanks(line.slice(colon + 1))])
  }
  return headers
}
