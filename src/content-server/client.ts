import { Readable } from 'node:stream'
import {
  contentHead,
  documentHead,
  readAsciiLines,
  readComponents,
  readDocumentFacts,
  readNumbers,
  type ComponentFacts,
  type ContentDigest,
  type DocumentFacts,
  type DocumentHead,
  type ReceivedPart,
} from './answers.ts'
import type { Outcome } from './failure.ts'
import { asOutcome, createSend, failureOf, textOf, type HttpAnswer, type HttpContext, type HttpRequest } from './http.ts'
import { multipartOf, type SentComponent } from './multipart-body.ts'
import type { CommandName } from './parameters.ts'
import { requestQuery, type Parameters, type RequestSigner } from './sign.ts'

/** A content server, and the repository there. */
export interface ContentServer {
  /** The address without a query, as the source system has it: scheme, host, port and HTTP script. */
  url: string
  contRep: string
  /** By default 0045, which every server knows. */
  pVersion?: '0045' | '0046' | '0047' | undefined
  /** Signs every request that can be signed. */
  signer?: RequestSigner | undefined
  /** PEM. The only trusted authority: it replaces the public ones. */
  caCertificate?: string | undefined
}

export interface CallOptions {
  signal?: AbortSignal | undefined
}

/** Bytes of a component. */
export interface ReceivedContent
  extends Partial<Pick<ComponentFacts, 'compId' | 'sizeBytes'>>, Omit<ComponentFacts, 'compId' | 'sizeBytes'> {
  /** Bytes of this answer, if the server announces them. Reading fails if there are fewer. */
  contentLength: number | undefined
  /** Of these bytes, if the server sends one. The caller compares it. */
  digest: ContentDigest | undefined
  /** Must be read to its end or destroyed. Throws `ContentServerFailure` if the answer breaks off. */
  body: Readable
}

/** Range of bytes, both ends inclusive. */
export interface OffsetRange {
  fromOffset?: number | undefined
  toOffset?: number | undefined
}

export interface SearchOptions extends OffsetRange {
  isCaseSensitive?: boolean | undefined
  /** The largest number of results. The server's default is 1. */
  numResults?: number | undefined
}

// For the whole answer to a question without bytes. Source systems give up after about a minute, too.
const questionMaxMs = 60_000
// The line of a repository has about 150 bytes. A server may name all of its repositories.
const serverInfoMaxBytes = 64 * 1024

/** One line of serverInfo, by the keys of the protocol: `serverStatus`, `contRep`, `contRepStatus`, ... */
export type InfoLine = Record<string, string>

/**
 * Creates a client of the content-server protocol. A refusal of the server, or no answer, is a value with a code and a message. A call that
 * is aborted throws the reason of its signal.
 */
export const createContentServerClient = (server: ContentServer, context: HttpContext) => {
  const { contRep, pVersion = '0045', signer } = server
  const send = createSend(server.url, server.caCertificate, context)

  interface Call extends Omit<HttpRequest, 'method' | 'query'> {
    method?: 'GET' | 'PUT' | 'POST'
    parameters?: Parameters
  }

  const sendCommand = (command: CommandName, { method = 'GET', parameters, ...request }: Call): Promise<HttpAnswer> => {
    const query = requestQuery(command, method, { pVersion, contRep, ...parameters }, signer && { signer })
    return send({ method, query, ...request })
  }

  /** Sends a command and reads its answer. @param read is called if the status is 200, or 201 for a create */
  const call = <T>(command: CommandName, request: Call, read: (answer: HttpAnswer) => T | Promise<T>): Promise<Outcome<T>> =>
    asOutcome(async () => {
      const answer = await sendCommand(command, request)
      if (answer.status === 200 || (command === 'create' && answer.status === 201)) return read(answer)
      throw await failureOf(answer)
    })

  const ended = async (answer: HttpAnswer): Promise<void> => void (await textOf(answer))

  const sendComponent = (
    command: 'create' | 'update' | 'append',
    docId: string,
    { compId, contentType, sizeBytes, body }: SentComponent,
    parameters: Parameters,
    { signal }: CallOptions,
  ) =>
    call(
      command,
      {
        method: 'PUT',
        parameters: { docId, compId, ...parameters },
        headers: { ...(contentType !== null && { 'content-type': contentType }), 'content-length': String(sizeBytes) },
        body,
        signal,
      },
      ended,
    )

  const sendComponents = (
    command: 'create' | 'update',
    docId: string,
    components: readonly SentComponent[],
    parameters: Parameters,
    { signal }: CallOptions,
  ) => {
    const { contentType, sizeBytes, body } = multipartOf(components)
    const headers = { 'content-type': contentType, 'content-length': String(sizeBytes) }
    return call(command, { method: 'POST', parameters: { docId, ...parameters }, headers, body, signal }, ended)
  }

  return {
    /** Sends a request as it is given, such as one that a server must refuse. Any status is an answer. */
    send: (request: HttpRequest): Promise<Outcome<HttpAnswer>> => asOutcome(() => send(request)),

    /** Returns the line of the server, if there is one, and that of the repository. Unsigned. */
    serverInfo: ({ signal }: CallOptions = {}): Promise<Outcome<{ server: InfoLine | undefined; repository: InfoLine | undefined }>> =>
      call('serverInfo', { signal, maxMs: questionMaxMs }, async (answer) => {
        const lines = readAsciiLines(await textOf(answer, serverInfoMaxBytes))
        return {
          server: lines.find((line) => 'serverStatus' in line),
          repository: lines.find((line) => line['contRep'] === contRep),
        }
      }),

    /** Sends a certificate, which has no effect until somebody activates it there. Unsigned. @param certificate as DER */
    putCert: (certificate: Buffer, authId: string, { signal }: CallOptions = {}): Promise<Outcome<void>> =>
      call('putCert', { method: 'PUT', parameters: { authId }, body: certificate, signal }, ended),

    /** Describes a document, or one component of it. */
    info: (docId: string, { compId, signal }: CallOptions & { compId?: string } = {}): Promise<Outcome<DocumentFacts>> =>
      call('info', { parameters: { docId, compId }, signal, maxMs: questionMaxMs }, (answer) =>
        readDocumentFacts(answer, docId, compId === undefined),
      ),

    /** Reads a component, or a range of its bytes. @param compId by default the one that the server chooses: `data`, else `data1` */
    get: (
      docId: string,
      { compId, fromOffset, toOffset, signal }: CallOptions & OffsetRange & { compId?: string } = {},
    ): Promise<Outcome<ReceivedContent>> =>
      call('get', { parameters: { docId, compId, ...offsets({ fromOffset, toOffset }) }, signal }, ({ header, body }) => {
        const announced = header('content-length')
        return { ...contentHead(header), contentLength: announced === undefined ? undefined : Number(announced), body }
      }),

    /** Reads a whole document. The components must be read in their order, each to its end, or their iterator be closed. */
    docGet: (
      docId: string,
      { signal }: CallOptions = {},
    ): Promise<Outcome<{ document: DocumentHead; components: AsyncGenerator<ReceivedPart, void, undefined> }>> =>
      call('docGet', { parameters: { docId }, signal }, (answer) => ({
        document: documentHead(answer.header, docId),
        components: readComponents(answer),
      })),

    /** Creates a document of one component. The bytes must be as many as `sizeBytes` says. @returns 403 `forbidden` if the document exists */
    create: (
      docId: string,
      component: SentComponent,
      { docProt, ...options }: CallOptions & { docProt?: string } = {},
    ): Promise<Outcome<void>> => sendComponent('create', docId, component, { docProt }, options),

    /** Creates a document of any number of components, whole or not at all. */
    createAll: (
      docId: string,
      components: readonly SentComponent[],
      { docProt, ...options }: CallOptions & { docProt?: string } = {},
    ): Promise<Outcome<void>> => sendComponents('create', docId, components, { docProt }, options),

    /** Creates or replaces one component of an existing document. */
    update: (docId: string, component: SentComponent, options: CallOptions = {}): Promise<Outcome<void>> =>
      sendComponent('update', docId, component, {}, options),

    /** Replaces all components of an existing document. */
    updateAll: (docId: string, components: readonly SentComponent[], options: CallOptions = {}): Promise<Outcome<void>> =>
      sendComponents('update', docId, components, {}, options),

    /** Adds bytes to the end of a component. A second call adds them again. */
    append: (docId: string, component: SentComponent, options: CallOptions = {}): Promise<Outcome<void>> =>
      sendComponent('append', docId, component, {}, options),

    /** Deletes a document, or one component of it. */
    delete: (docId: string, { compId, signal }: CallOptions & { compId?: string } = {}): Promise<Outcome<void>> =>
      call('delete', { parameters: { docId, compId }, signal }, ended),

    /** Searches a component. @returns byte offsets of the matches */
    search: (
      docId: string,
      compId: string,
      pattern: string,
      { signal, ...options }: CallOptions & SearchOptions = {},
    ): Promise<Outcome<number[]>> =>
      call('search', { parameters: { docId, compId, pattern, ...searchParameters(options) }, signal }, async (answer) =>
        readNumbers(await textOf(answer), 1),
      ),

    /** Searches the index of a print list. @returns offset and length in `data` of each match */
    attrSearch: (
      docId: string,
      conditions: readonly { offset: number; length: number; value: string }[],
      { signal, ...options }: CallOptions & SearchOptions = {},
    ): Promise<Outcome<{ offset: number; length: number }[]>> => {
      const pattern = conditions.map(({ offset, length, value }) => `${offset}+${length}+${encodeURIComponent(value)}`).join('%23')
      const parameters: Parameters = { docId, pattern: { raw: pattern }, ...searchParameters(options) }
      return call('attrSearch', { parameters, signal }, async (answer) => {
        const numbers = readNumbers(await textOf(answer), 2)
        return Array.from({ length: numbers.length / 2 }, (_, index) => ({ offset: numbers[2 * index]!, length: numbers[2 * index + 1]! }))
      })
    },
  }
}

const textOrNone = (value: number | undefined) => (value === undefined ? undefined : String(value))

const offsets = ({ fromOffset, toOffset }: OffsetRange): Parameters => ({
  fromOffset: textOrNone(fromOffset),
  toOffset: textOrNone(toOffset),
})

export type ContentServerClient = ReturnType<typeof createContentServerClient>

const searchParameters = ({ isCaseSensitive, numResults, ...range }: SearchOptions): Parameters => ({
  caseSensitive: isCaseSensitive === undefined ? undefined : isCaseSensitive ? 'y' : 'n',
  numResults: textOrNone(numResults),
  ...offsets(range),
})
