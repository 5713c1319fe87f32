import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expectStatus } from './expect.ts'
import { createHttp, type Answer, type HttpOptions, type Sent } from './http.ts'
import { formOf, partOf } from './multipart.ts'
import { NotChecked } from './outcome.ts'

/** Signs as a source system does. `RequestSigner` of `src/content-server/` is one. */
interface Signer {
  /** Not encoded. */
  authId: string
  /** @returns the secKey over the concatenated values of a URL, in base64 */
  secKeyOf(message: string, at: Date): string
}

interface Activated {
  signer: Signer
  /** Resolves when the certificate may be active. @throws `Deviation` if it will not be */
  activated(isAccepted: () => Promise<boolean>): Promise<void>
}

/** A key and its certificate that were made for one run. */
export interface ThrowAway extends Activated {
  certificate: { der: Buffer; pem: string }
  /** Makes another key, whose certificate an authority has issued. The PKCS#7 message contains that of the authority, and then its own. */
  chain(): Promise<Activated & { message: Buffer }>
}

/** The content repository that is tested, and how. */
export interface Target {
  /** Address that an administrator enters as server, port and HTTP script. */
  url: URL
  contRep: string
  pVersion: string
  /** Undefined in an unsigned run. */
  signer?: Signer | undefined
  /** Set if the signer is one. */
  throwAway?: ThrowAway | undefined
  /** Makes a signer whose certificate the server does not know. */
  stranger: () => Promise<Signer>
}

/** Parameters of a request, percent-encoded as they stand in the URL. */
export interface Request extends Sent {
  docId?: string
  contRep?: string
  compId?: string
  pVersion?: string
  /** Further parameters, which precede those of the signature. */
  more?: Record<string, string>
}

/** Deliberate mistakes in a signed URL. */
export interface Mistakes {
  accessMode?: string
  expiration?: string
  signer?: Signer
}

const accessModes: Record<string, string> = { create: 'c', mCreate: 'c', update: 'u', append: 'u', delete: 'd' }
const alwaysSigned = ['contRep', 'docId', 'accessMode', 'authId', 'expiration']
const alsoSigned: Record<string, string[]> = {
  create: ['compId', 'docProt'],
  mCreate: ['docProt'],
  update: ['compId'],
  append: ['compId'],
  delete: ['compId'],
}
const neverSigned = new Set(['serverInfo', 'putCert', 'getCert'])

/** Lifetime of the URLs of a source system. */
const lifetimeMs = 2 * 3_600_000

/** Returns a time in the format of the interface, `YYYYMMDDHHMMSS` in UTC. */
export const expirationIn = (ms: number): string => new Date(Date.now() + ms).toISOString().replaceAll(/\D/g, '').slice(0, 14)

// A source system leaves commas as they are.
const encode = (value: string) => encodeURIComponent(value).replaceAll('%2C', ',')

/** Returns a docId as source systems generate them. */
const unusedDocId = (): string => randomBytes(16).toString('hex').toUpperCase()

export const alphabet = 'abcdefghijklmnopqrstuvwxyz'
export const alphabetType = 'text/plain; charset=ISO-8859-1'

// Every byte value, line ends and what looks like a boundary: what a server that handles bytes as text loses.
export const allBytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), Buffer.from('\r\n--KoZbnd0\r\n\r\n')])

/** The index of a print list with two entries: offset and length of each in `data`, and the customer that it is about. */
const index = [
  `0 46 DKEY${'Customer'.padEnd(40)}${'0'.padStart(3)}${'10'.padStart(3)}`,
  '73 138 DAINLH        ',
  '211 120 DAINLH-400    ',
  '',
].join('\n')

export const compoundParts = [
  partOf('data', allBytes, 'application/pdf; version=1.7'),
  partOf('descr', index, 'application/x-alf-descr; charset=ISO-8859-1'),
  partOf('note', 'a hit, a Hit, a miss', 'application/x-note'),
]

export type Source = ReturnType<typeof createSource>

/** Creates a source system that uses one content repository, and knows every document that it may have created. */
export const createSource = (target: Target, options: HttpOptions, onDocument?: (docId: string) => void) => {
  const { signer, contRep } = target
  const http = createHttp(target.url, options)
  const documents = new Set<string>()

  const parametersOf = (request: Request): [name: string, raw: string][] => [
    ['pVersion', request.pVersion ?? target.pVersion],
    ['contRep', request.contRep ?? encode(contRep)],
    ...(request.docId === undefined ? [] : ([['docId', request.docId]] as [string, string][])),
    ...(request.compId === undefined ? [] : ([['compId', request.compId]] as [string, string][])),
    ...Object.entries(request.more ?? {}),
  ]

  /** Returns the query of a request, signed in a signed run. */
  const queryOf = (command: string, request: Request = {}, { accessMode, expiration, signer: by = signer }: Mistakes = {}): string => {
    const parameters = parametersOf(request)
    const isSigned = by !== undefined && !neverSigned.has(command)
    if (isSigned) {
      parameters.push(
        ['accessMode', accessMode ?? accessModes[command] ?? 'r'],
        ['authId', encode(by.authId)],
        ['expiration', expiration ?? expirationIn(lifetimeMs)],
      )
      const signed = new Set([...alwaysSigned, ...(alsoSigned[command] ?? [])])
      // The values as they stand in the URL, in its order, without separators.
      const message = parameters.flatMap(([name, raw]) => (signed.has(name) ? [raw] : [])).join('')
      parameters.push(['secKey', encodeURIComponent(by.secKeyOf(message, new Date()))])
    }
    return [command, ...parameters.map(([name, raw]) => `${name}=${raw}`)].join('&')
  }

  /** Sends a query as it stands. */
  const call = (query: string, sent?: Sent): Promise<Answer> => http.send(query, sent)
  const ask = (command: string, request: Request = {}, mistakes?: Mistakes): Promise<Answer> =>
    call(queryOf(command, request, mistakes), request)

  /** Returns a docId that the run deletes at its end. @param more characters at its end */
  const newDocId = (more = ''): string => {
    const docId = unusedDocId() + more
    documents.add(docId)
    onDocument?.(docId)
    return docId
  }

  /** Creates a document of one component. @returns its docId */
  const created = async (body: string | Buffer, contentType = 'text/plain', compId = 'data'): Promise<string> => {
    const docId = newDocId()
    expectStatus(await ask('create', { docId, compId, ...put(body, contentType) }), 201)
    return docId
  }

  const shared = new Map<string, Promise<string>>()
  /** Returns a document that several checks read and none changes. It is created when the first check asks for it. */
  const once = (name: string, create: () => Promise<string>) => async (): Promise<string> => {
    const creation = shared.get(name) ?? create()
    shared.set(name, creation)
    return creation.catch(() => {
      throw new NotChecked(`a document with ${name} could not be created`)
    })
  }

  return {
    target,
    isSigned: signer !== undefined,
    contRep,
    queryOf,
    call,
    ask,
    newDocId,
    /** Returns the docId of a document that is never created. */
    unusedDocId,
    created,
    /** A document with the component `data`: the alphabet. */
    alphabet: once('one component', () => created(alphabet, alphabetType)),
    /** A document with the components `data`, `descr` and `note`. */
    compound: once('three components', async () => {
      const docId = newDocId()
      expectStatus(await ask('create', { docId, ...formOf(compoundParts) }), 201)
      return docId
    }),
    wait: (ms: number) => sleep(ms, undefined, { signal: options.signal }),
    /** Deletes every document of the run. @returns the docIds of those that the server may still have */
    deleteDocuments: async (until: AbortSignal): Promise<string[]> => {
      const left: string[] = []
      for (const docId of documents) {
        const isGone = async (command: string, ...statuses: number[]) => {
          const { status } = await http.send(queryOf(command, { docId }), {}, until)
          return statuses.includes(status)
        }
        // A server may answer a read of an unknown document with 200, or a delete of it, but hardly both.
        const gone = async () => (await isGone('delete', 200, 404)) && ((await isGone('info', 404)) || isGone('delete', 404))
        if (!(await gone().catch(() => false))) left.push(docId)
      }
      return left
    },
    close: () => http.close(),
  }
}

export const put = (body: string | Buffer, contentType = 'text/plain'): Sent => ({
  method: 'PUT',
  headers: { 'content-type': contentType },
  body,
})
