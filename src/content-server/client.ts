import { Readable } from 'node:stream'
import { contentHead, readAsciiLines, readDocumentFacts, type ComponentFacts, type ContentDigest, type DocumentFacts } from './answers.ts'
import type { Outcome } from './failure.ts'
import { asOutcome, createSend, failureOf, textOf, unencoded, type HttpAnswer, type HttpContext, type HttpRequest } from './http.ts'
import type { CommandName } from './parameters.ts'
import { requestQuery, type Parameters, type RequestSigner } from './sign.ts'

/** The `pVersion` of every request. Every server knows it. */
export const protocolVersion = '0045'

/** A content server, and the repository there. */
export interface ContentServer {
  /** The address without a query, as the source system has it: scheme, host, port and HTTP script. */
  url: string
  contRep: string
  /** Encoding of names and messages that are not UTF-8. By default Windows-1252. */
  codePage?: string | undefined
  /** Signs every request that can be signed. */
  signer?: RequestSigner | undefined
  /** PEM. The only trusted authority: it replaces the public ones. */
  caCertificate?: string | undefined
}

export interface CallOptions {
  signal?: AbortSignal | undefined
}

/** Bytes of a component. `sizeBytes` is that of the component, undefined if the answer does not tell it. */
export interface ReceivedContent extends Partial<Pick<ComponentFacts, 'compId'>>, Omit<ComponentFacts, 'compId'> {
  /** Bytes of this answer, if the server announces them. Reading fails if there are fewer. */
  contentLength: number | undefined
  /** The digest of these bytes, if the server sends one. The caller compares it. */
  digest: ContentDigest | undefined
  /** Must be read to its end or destroyed. Throws `ContentServerFailure` if the answer breaks off. */
  body: Readable
}

/** A component as a client sends it. */
interface SentComponent {
  compId: string
  /** The content type with its parameters, one character per byte. Null sends none. */
  contentType: string | null
  sizeBytes: number
  /** A stream must have exactly `sizeBytes`. */
  body: Buffer | Readable
}

// Limit for the whole answer to a question without bytes. Source systems also give up after about a minute.
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
  const { contRep, signer, codePage } = server
  const send = createSend(server.url, server.caCertificate, context)

  interface Call extends Omit<HttpRequest, 'method' | 'query'> {
    method?: 'GET' | 'PUT'
    parameters?: Parameters
  }

  /** Sends a command and reads its answer. @param read is called if the status is 200, or 201 for a create */
  const call = <T>(
    command: CommandName,
    { method = 'GET', parameters, ...request }: Call,
    read: (answer: HttpAnswer) => T | Promise<T>,
  ): Promise<Outcome<T>> =>
    asOutcome(async () => {
      const query = requestQuery(command, method, { pVersion: protocolVersion, contRep, ...parameters }, signer && { signer })
      const answer = await send({ method, query, ...request })
      if (answer.status === 200 || (command === 'create' && answer.status === 201)) return read(answer)
      throw await failureOf(answer, codePage)
    })

  const ended = async (answer: HttpAnswer): Promise<void> => void (await textOf(answer))

  const sendComponent = (
    command: 'create' | 'update',
    docId: string,
    { compId, contentType, sizeBytes, body }: SentComponent,
    { signal }: CallOptions,
  ): Promise<Outcome<void>> =>
    call(
      command,
      {
        method: 'PUT',
        parameters: { docId, compId },
        headers: { ...(contentType !== null && { 'content-type': contentType }), 'content-length': String(sizeBytes) },
        body,
        signal,
      },
      ended,
    )

  return {
    /** Returns the line of the server, if there is one, and that of the repository. Unsigned. */
    serverInfo: ({ signal }: CallOptions = {}): Promise<Outcome<{ server: InfoLine | undefined; repository: InfoLine | undefined }>> =>
      call('serverInfo', { signal, maxMs: questionMaxMs }, async (answer) => {
        const lines = readAsciiLines(await textOf(unencoded(answer), serverInfoMaxBytes))
        return {
          server: lines.find((line) => 'serverStatus' in line),
          repository: lines.find((line) => line['contRep'] === contRep),
        }
      }),

    /** Describes a document, or one component of it. */
    info: (docId: string, { compId, signal }: CallOptions & { compId?: string } = {}): Promise<Outcome<DocumentFacts>> =>
      call('info', { parameters: { docId, compId }, signal, maxMs: questionMaxMs }, (answer) =>
        readDocumentFacts(unencoded(answer), docId, { isWhole: compId === undefined, codePage }),
      ),

    /** Reads a component. @param named by default the one that the server chooses: `data`, else `data1` */
    get: (
      docId: string,
      { compId, sentName, signal }: CallOptions & Partial<Pick<ComponentFacts, 'compId' | 'sentName'>> = {},
    ): Promise<Outcome<ReceivedContent>> =>
      call('get', { parameters: { docId, compId, compIdBytes: sentName }, signal }, (answer) => {
        const { header, body } = unencoded(answer)
        const announced = header('content-length')
        return { ...contentHead(answer, codePage), contentLength: announced === undefined ? undefined : Number(announced), body }
      }),

    /** Creates a document of one component. The bytes must be as many as `sizeBytes` says. @returns 403 `forbidden` if the document exists */
    create: (docId: string, component: SentComponent, options: CallOptions = {}) => sendComponent('create', docId, component, options),

    /** Creates or replaces one component of an existing document. */
    update: (docId: string, component: SentComponent, options: CallOptions = {}) => sendComponent('update', docId, component, options),

    /** Deletes a document, or one component of it. */
    delete: (docId: string, { compId, signal }: CallOptions & { compId?: string } = {}): Promise<Outcome<void>> =>
      call('delete', { parameters: { docId, compId }, signal }, ended),
  }
}

export type ContentServerClient = ReturnType<typeof createContentServerClient>
