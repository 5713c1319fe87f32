import type { Answer, Sent } from './http.ts'
import { Deviation } from './outcome.ts'

export interface SentPart {
  headers: Record<string, string | number>
  body: string | Buffer
}

export interface ReceivedPart {
  /** Names in lower case. A value has one character per byte. */
  headers: Record<string, string>
  body: Buffer
}

/** Returns a part with the headers that a source system sends: no Content-Disposition. */
export const partOf = (compId: string, body: string | Buffer, contentType = 'application/octet-stream'): SentPart => ({
  headers: { 'X-compId': compId, 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) },
  body,
})

/** Returns a part of an mCreate. */
export const partOfDocument = (docId: string, ...component: Parameters<typeof partOf>): SentPart => {
  const { headers, body } = partOf(...component)
  return { headers: { 'X-docId': docId, ...headers }, body }
}

const ownBoundary = 'KoZbnd01'

/** Returns a POST of parts. A body without parts is the boundary twice. */
export const formOf = (parts: readonly SentPart[], contentType = `multipart/form-data; boundary=${ownBoundary}`): Sent => ({
  method: 'POST',
  headers: { 'content-type': contentType },
  body: Buffer.concat(
    [
      ...(parts.length === 0 ? [`--${ownBoundary}\r\n`] : []),
      ...parts.flatMap(({ headers, body }) => {
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
        return [Buffer.from(`--${ownBoundary}\r\n${lines.join('')}\r\n`, 'latin1'), body, '\r\n']
      }),
      `--${ownBoundary}--\r\n`,
    ].map((piece) => Buffer.from(piece as string)),
  ),
})

/** The Content-Type of a form whose boundary is in quotation marks. */
export const quotedForm = `multipart/form-data; boundary="${ownBoundary}"`

const lineEnds = new Set(['\r\n', '\n'])

/**
 * Reads the parts of an answer to info or docGet. A part ends where its Content-Length says, because its bytes may contain the boundary.
 * @throws `Deviation` if the form differs from that of the protocol
 */
export const partsOf = ({ asked, headers, body }: Answer): ReceivedPart[] => {
  const type = headers['content-type'] ?? ''
  const [, quoted, plain] = /^multipart\/form-data\s*;.*?boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw new Deviation(`${asked} has the Content-Type "${type}" instead of multipart/form-data with a boundary`)
  const malformed = (reason: string) => new Deviation(`${asked}: the multipart body is malformed: ${reason}`)

  const parts: ReceivedPart[] = []
  const delimiter = Buffer.from(`--${boundary}`)
  let at = body.indexOf(delimiter)
  if (at < 0) throw malformed('the boundary of the Content-Type does not occur')
  for (;;) {
    at += delimiter.length
    const next = body.toString('latin1', at, at + 2)
    if (next === '--') return parts
    // A check of its own says that lines end with LF alone. The others go on.
    const end = next === '\r\n' ? next : next.slice(0, 1)
    if (!lineEnds.has(end)) throw malformed('no CR LF follows a boundary')
    at += end.length
    // A document without components is a boundary and the last boundary.
    if (body.indexOf(delimiter, at) === at) continue
    const headEnd = body.indexOf(end + end, at)
    if (headEnd < 0) throw malformed('the headers of a part do not end with an empty line (CR LF)')
    const part = headersOf(body.toString('latin1', at, headEnd), end)
    const length = Number(part['content-length'])
    if (!Number.isInteger(length)) throw malformed('a part has no Content-Length')
    const begin = headEnd + 2 * end.length
    const after = begin + length
    // Some servers that write LF leave it out after the empty body of a part of info.
    const isNext = body.indexOf(delimiter, after) === after
    const isEnded = body.indexOf(delimiter, after) === after + end.length && body.toString('latin1', after, after + end.length) === end
    if (!isEnded && !(isNext && end === '\n' && length === 0)) {
      throw malformed(`the part ${part['x-compid'] ?? ''} does not have the ${length} bytes of its Content-Length`)
    }
    parts.push({ headers: part, body: body.subarray(begin, after) })
    at = isEnded ? after + end.length : after
  }
}

/** @throws `Deviation` unless the lines of an answer to info or docGet end with CR LF, as far as they are no content */
export const expectLineEnds = ({ asked, body }: Answer): void => {
  if (/--[^\r\n]*\n|^[\w-]+:[^\r\n]*\n/m.test(body.toString('latin1')))
    throw new Deviation(`a line of ${asked} ends with LF instead of CR LF`)
}

/** Returns the part of an answer about one component. @throws `Deviation` if it does not have exactly one */
export const onlyPartOf = (answer: Answer): ReceivedPart => {
  const [part, ...others] = partsOf(answer)
  if (!part || others.length > 0) throw new Deviation(`${answer.asked} has ${part ? 1 + others.length : 0} parts instead of 1`)
  return part
}

const headersOf = (text: string, lineEnd: string): Record<string, string> =>
  Object.fromEntries(
    text.split(lineEnd).map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
