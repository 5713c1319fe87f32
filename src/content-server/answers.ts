import { isUtf8 } from 'node:buffer'
import { decodeHeader } from './encoding.ts'
import { malformed } from './failure.ts'
import { bounded, type HttpAnswer } from './http.ts'
import { boundaryOf, MultipartError, readParts, type Part } from './multipart.ts'
import { isCompId, isContentType } from './parameters.ts'

/** What a server says about a component. */
export interface ComponentFacts {
  compId: string
  /** The name as the server sends it, with one character per byte, if that is not UTF-8. It is asked for by these bytes. */
  sentName?: string
  /**
   * The content type as the server sends it, with its parameters and one character per byte. Null if it sends none, or one that HTTP cannot
   * pass on.
   */
  contentType: string | null
  /** Undefined if the server does not tell it, or tells several, or no number. */
  sizeBytes: number | undefined
  /** Undefined if the server says nothing readable, as below. */
  createdAt: Date | undefined
  modifiedAt: Date | undefined
  /** `online` or `offline`. Some servers have other words. */
  status: string | undefined
}

/** Returns how a component is asked for. */
export const nameOf = ({ compId, sentName }: Pick<ComponentFacts, 'compId' | 'sentName'>) => ({
  compId,
  ...(sentName !== undefined && { sentName }),
})

/** What a server says about a document. */
export interface DocumentFacts {
  docId: string
  createdAt: Date | undefined
  modifiedAt: Date | undefined
  status: string | undefined
  /** Letters of the accesses that require a signature, if the server tells them. */
  docProt: string | undefined
  components: ComponentFacts[]
}

/** A component whose size is known. */
export type MeasuredComponent = ComponentFacts & { sizeBytes: number }

/** A document whose components have a known size. */
export interface MeasuredDocument extends DocumentFacts {
  components: MeasuredComponent[]
}

/** The headers of an answer or of a part. */
type Head = Pick<Part, 'header' | 'values'>
type FindHeader = Head['header']

/** Reads a date and a time of day in UTC. A year that has not four digits, or is 0, cannot be stored, and no header can tell it. */
const timeOf = (date: string | undefined, time: string | undefined): Date | undefined => {
  const read = new Date(`${date?.trim()}T${time?.trim() || '00:00:00'}Z`)
  const year = date === undefined ? Number.NaN : read.getUTCFullYear()
  return year >= 1 && year <= 9_999 ? read : undefined
}

const contentTypeOf = (header: FindHeader): string | null => {
  const contentType = header('content-type')?.trim() ?? ''
  return isContentType(contentType) ? contentType : null
}

const numberOf = (text: string | undefined): number | undefined => (/^\d{1,15}$/.test(text?.trim() ?? '') ? Number(text) : undefined)

/** Returns the size that the headers state. The size of a part of info is in no other header: its Content-Length counts its empty body. */
const sizeOf = ({ values }: Head): number | undefined => {
  const sizes = new Set(values('x-content-length').map(numberOf))
  return sizes.size === 1 ? [...sizes][0] : undefined
}

/** Returns what the headers of an answer say about a document. @throws `ContentServerFailure` if they are about another one */
const documentHead = (header: FindHeader, docId: string) => {
  const named = header('x-docid')?.trim()
  if (named !== undefined && decodeHeader(named) !== docId) throw malformed('it is about another document')
  return {
    docId,
    createdAt: timeOf(header('x-datec'), header('x-timec')),
    modifiedAt: timeOf(header('x-datem'), header('x-timem')),
    status: header('x-docstatus')?.trim(),
    docProt: header('x-docprot')?.trim(),
    // The number of components that the server announces.
    announced: numberOf(header('x-numbercomps') ?? header('x-numcomps')),
  }
}

/** Returns what the headers of an answer or of a part say about a component. */
const componentFacts = (head: Head, codePage?: string): Omit<ComponentFacts, 'compId'> & { compId?: string } => {
  const { header } = head
  const compId = header('x-compid')?.trim()
  return {
    ...(compId && { compId: decodeHeader(compId, codePage) }),
    ...(compId && !isUtf8(Buffer.from(compId, 'latin1')) && { sentName: compId }),
    sizeBytes: sizeOf(head),
    contentType: contentTypeOf(header),
    createdAt: timeOf(header('x-compdatec'), header('x-comptimec')),
    modifiedAt: timeOf(header('x-compdatem'), header('x-comptimem')),
    status: header('x-compstatus')?.trim(),
  }
}

/** Returns what the headers of a `get` say about the component. */
export const contentHead = (head: Head, codePage?: string) => ({ ...componentFacts(head, codePage), digest: digestOf(head.header) })

/** Digest of the bytes of an answer, if the server sends one. */
export interface ContentDigest {
  algorithm: 'sha256' | 'md5'
  value: Buffer
}

const digestOf = (header: FindHeader): ContentDigest | undefined => {
  // RFC 9530, and the older RFC 3230 and RFC 1864.
  const [, sha256] = /(?:^|,)\s*sha-256=:?([A-Za-z0-9+/]{43}=):?/i.exec(header('content-digest') ?? header('digest') ?? '') ?? []
  if (sha256 !== undefined) return { algorithm: 'sha256', value: Buffer.from(sha256, 'base64') }
  const md5 = /^\s*([A-Za-z0-9+/]{22}==)\s*$/.exec(header('content-md5') ?? '')?.[1]
  return md5 === undefined ? undefined : { algorithm: 'md5', value: Buffer.from(md5, 'base64') }
}

// A scanned book of a page per component.
const maxParts = 10_000

/** Reads the parts of the answer to info. @throws `ContentServerFailure` if it is malformed or breaks off */
const readComponents = async ({ header, body }: HttpAnswer, codePage?: string): Promise<ComponentFacts[]> => {
  const components: ComponentFacts[] = []
  const names = new Set<string>()
  try {
    for await (const part of readParts(body as AsyncIterable<Buffer>, { boundary: boundaryOf(header('content-type')), maxParts })) {
      const component = componentOf(part, codePage)
      if (names.has(component.compId)) throw malformed('two parts are about the same component')
      names.add(component.compId)
      components.push(component)
      for await (const _ of part.body) continue
    }
    return components
  } catch (thrown) {
    throw thrown instanceof MultipartError ? malformed(thrown.message) : thrown
  } finally {
    body.destroy()
  }
}

const componentOf = (part: Part, codePage?: string): ComponentFacts => {
  const { compId, ...facts } = componentFacts(part, codePage)
  if (!compId) throw malformed('a part has no X-compId')
  if (!isCompId(compId)) throw malformed('an X-compId is longer than 255 characters, or has control characters')
  return { compId, ...facts }
}

/**
 * Reads the answer to info. @throws `ContentServerFailure` if it is malformed, has fewer components than it announces, or is longer than 4 MiB
 */
export const readDocumentFacts = async (
  answer: HttpAnswer,
  docId: string,
  { isWhole, codePage }: { isWhole: boolean; codePage?: string | undefined },
): Promise<DocumentFacts> => {
  const { announced, ...head } = documentHead(answer.header, docId)
  const components = await readComponents({ ...answer, body: bounded(answer) }, codePage)
  if (isWhole && announced !== undefined && announced !== components.length) {
    throw malformed(`it announces ${announced} components and has ${components.length}`)
  }
  return { ...head, components }
}

// A key begins where its letters begin: without this, a long line of letters takes time by its square.
const pair = /(?<![A-Za-z])([A-Za-z]+)="((?:[^"]|"")*)";?/g

/** Reads lines of `key="value";` pairs, in which quotation marks of a value are doubled. Lines without a pair are left out. */
export const readAsciiLines = (text: string): Record<string, string>[] =>
  text
    .split(/\r?\n/)
    .map((line) => Object.fromEntries(Array.from(line.matchAll(pair), ([, key, value]) => [key!, value!.replaceAll('""', '"')])))
    .filter((values) => Object.keys(values).length > 0)
