import { createCipheriv, createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { expirationIn, signedQuery, type RawParameter } from '../test/support/signed-query.ts'
import type { Signer } from '../test/support/signer.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** Returns numbers from 0 to 1 that depend on the seed only (mulberry32). */
const createRandom = (seed: string) => {
  let state = createHash('sha256').update(seed).digest().readUInt32LE()
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns bytes that depend on the name only. */
export const bytesOf = (name: string, sizeBytes: number): Buffer => {
  const key = createHash('sha256').update(name).digest()
  return createCipheriv('aes-128-ctr', key.subarray(0, 16), key.subarray(16)).update(Buffer.alloc(sizeBytes))
}

/** A create, as its sender saw it. */
export interface Sent {
  docId: string
  sha256: string
  sizeBytes: number
  /**
   * `acknowledged`: answered 2xx. `refused`: answered otherwise, or the connection was refused. `unknown`: the answer did not come, so the
   * document may or may not be stored.
   */
  outcome: 'acknowledged' | 'refused' | 'unknown'
  /** Status, or code of the error. */
  answer: string
  durationMs: number
  /** Milliseconds since 1970. */
  answeredAt: number
}

export interface Workspace {
  id: string
  /** Path of the management API. */
  apiPath: string
  /** API key of level `admin`. */
  key: string
  /** Path of the receiver, after the address of an API process. */
  path: string
  /** The second repository accepts signed requests only. */
  repositories: { open: string; signed: string }
}

export interface Load {
  sent: Sent[]
  /** Creates documents until `stop`, in turn at each API process. */
  start(): void
  stop(): Promise<void>
  /**
   * Creates one document.
   * @param options.body replaces the generated content
   * @param options.apiIndex chooses the API process
   * @param options.slowMs sends the body in parts over this time
   */
  create(options?: {
    docId?: string
    sizeBytes?: number
    body?: Buffer
    signed?: boolean
    apiIndex?: number
    slowMs?: number
  }): Promise<Sent>
  newDocId(): string
  close(): Promise<void>
}

export interface LoadOptions {
  seed: string
  baseUrls: string[]
  workspace: Workspace
  signer: Signer
  /** Size of the largest document. The load sends one of this size; the others are smaller. */
  largestBytes: number
  clients: number
  /** Mean time between the creates of one client. */
  intervalMs: number
}

const authId = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE'
const answerTimeoutMs = 60_000
// The connection was not opened, so the request was not sent.
const unsentCodes = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'])

const slowParts = 20

async function* inParts(body: Buffer, durationMs: number) {
  for (let part = 0; part < slowParts; part += 1) {
    yield body.subarray((part * body.length) / slowParts, ((part + 1) * body.length) / slowParts)
    await pause(durationMs / slowParts)
  }
}

/** Creates a source system that sends the same documents for the same seed, and records what it was answered. */
export const createLoad = ({ seed, baseUrls, workspace, signer, largestBytes, clients, intervalMs }: LoadOptions): Load => {
  const random = createRandom(seed)
  const agent = new Agent({ connections: 64, headersTimeout: answerTimeoutMs, bodyTimeout: answerTimeoutMs })
  const sent: Sent[] = []
  let count = 0
  let stopped = new AbortController()
  let running: Promise<void>[] = []

  const newDocId = () => {
    count += 1
    return createHash('sha256').update(`${seed} ${count}`).digest('hex').slice(0, 32).toUpperCase()
  }

  // Most documents are small, as in practice: the logarithm of the size is evenly distributed from 1 KiB to 256 KiB. Every twentieth has
  // 1 to 4 MiB, and the twelfth is the largest.
  const nextSize = () => {
    if (count === 12) return largestBytes
    const size = count % 20 === 0 ? Math.round(MiB * (1 + 3 * random())) : Math.round(KiB * 256 ** random())
    return Math.min(size, largestBytes)
  }

  const queryOf = async (docId: string, isSigned: boolean): Promise<string> => {
    const repository = isSigned ? workspace.repositories.signed : workspace.repositories.open
    const head: RawParameter[] = [
      ['pVersion', '0045'],
      ['contRep', repository],
      ['docId', docId],
      ['compId', 'data'],
    ]
    if (!isSigned) return ['create', ...head.map(([name, value]) => `${name}=${value}`)].join('&')
    const tail: RawParameter[] = [
      ['accessMode', 'c'],
      ['authId', authId],
      ['expiration', expirationIn(7_200)],
    ]
    const signed = ['contRep', 'docId', 'compId', 'accessMode', 'authId', 'expiration']
    return signedQuery(signer, 'create', [...head, ...tail], { signed, digest: 'sha256' })
  }

  const create: Load['create'] = async (options = {}) => {
    const docId = options.docId ?? newDocId()
    const body = options.body ?? bytesOf(docId, options.sizeBytes ?? nextSize())
    const isSigned = options.signed ?? random() < 1 / 3
    const query = await queryOf(docId, isSigned)
    const startedAt = performance.now()
    const send = (index: number) =>
      request(`${baseUrls[index % baseUrls.length]}${workspace.path}?${query}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream' },
        body: options.slowMs === undefined ? body : Readable.from(inParts(body, options.slowMs)),
        dispatcher: agent,
      })
    const first = options.apiIndex ?? sent.length
    // A load balancer asks the next process if one does not accept the connection.
    const answered = await send(first)
      .catch((thrown: Error & { code?: string }) => {
        if (!unsentCodes.has(thrown.code ?? '')) throw thrown
        return send(first + 1)
      })
      .then(
        async ({ statusCode, headers, body: text }) => {
          await text.dump().catch(() => {})
          const isAcknowledged = statusCode >= 200 && statusCode < 300
          const reason = String(headers['x-errordescription'] ?? '').split(':')[0]!
          return { outcome: isAcknowledged ? ('acknowledged' as const) : ('refused' as const), answer: `${statusCode} ${reason}`.trim() }
        },
        (thrown: Error & { code?: string }) => {
          const code = thrown.code ?? thrown.name
          return { outcome: unsentCodes.has(code) ? ('refused' as const) : ('unknown' as const), answer: code }
        },
      )
    const record: Sent = {
      docId,
      sha256: createHash('sha256').update(body).digest('hex'),
      sizeBytes: body.length,
      ...answered,
      durationMs: performance.now() - startedAt,
      answeredAt: Date.now(),
    }
    sent.push(record)
    return record
  }

  const runClient = async () => {
    while (!stopped.signal.aborted) {
      await pause(intervalMs * (0.5 + random()))
      if (!stopped.signal.aborted) await create()
    }
  }

  return {
    sent,
    create,
    newDocId,
    start: () => {
      stopped = new AbortController()
      running = Array.from({ length: clients }, runClient)
    },
    stop: async () => {
      stopped.abort()
      await Promise.all(running)
    },
    close: () => agent.destroy(),
  }
}
