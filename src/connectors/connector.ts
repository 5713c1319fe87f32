import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { ConnectorType } from '../domain/connector-type.ts'
import type { OutboundGuard } from '../security/outbound.ts'

/** One document on its way to one destination. */
export interface Parcel {
  /** The same for every attempt of this delivery: what a target may use to recognise a repetition. */
  deliveryId: string
  documentId: string
  repoId: string
  docId: string
  compId: string
  /** What kind of document the source system takes it for, where it has said so by now. */
  arObject: string | null
  /** Relative, slash-separated, free of `..` and control characters; the same for every attempt. */
  path: string
  /** As the source system sent it, parameters included. */
  contentType: string
  sizeBytes: number
  /** Lower-case hex. */
  sha256: string
  receivedAt: Date
  /** The bytes, from `start` on. May be called again; each stream must be read to its end or destroyed. */
  open(start?: number): Readable
  /** Where anybody can fetch the bytes for a time without a key; undefined where nobody knows how we are reached. */
  downloadUrl(): string | undefined
}

/** What an attempt may use, and what bounds it. */
export interface AttemptContext {
  /** Aborted when the attempt is cancelled, out of time or interrupted. Every call to the target ends with it. */
  signal: AbortSignal
  /** Tells that the delivery is alive, and how far it is. Cheap: call it for every chunk. */
  onProgress(bytesSent: number): void
  /** The only way out: every socket a connector opens is judged by it. */
  outbound: OutboundGuard
  connectTimeoutMs: number
  idleTimeoutMs: number
  /** How much of the target's answer is worth keeping. */
  answerMaxBytes: number
  /** What the run before this one saved, if its worker was lost or stopped in mid-delivery. */
  saved: unknown
  /**
   * Keeps what the next run needs to go on with an upload: a small JSON value, sealed before it leaves the process, so it may hold
   * an address that is itself a secret. It is on its way at once, and may be lost all the same.
   */
  save(state: unknown): void
}

/** Why `signal` is aborted where another run will go on with the delivery: what was saved is to be left at the target. */
export class Interruption extends Error {
  constructor() {
    super('the worker stops, another one goes on')
    this.name = 'Interruption'
  }
}

export interface Target<Config, Credentials> {
  config: Config
  credentials: Credentials
}

/** What the target said, kept with the attempt. Never holds a secret. */
export interface TargetAnswer {
  /** HTTP status or the protocol's own code. */
  status?: number | string
  /** The beginning of its text. */
  body?: string
  /** What names the stored object there: an ETag, a version id, a request id. */
  [evidence: string]: string | number | undefined
}

export interface Receipt {
  /** Where the document lies now, as an operator would look for it. */
  path: string
  bytesSent: number
  answer?: TargetAnswer
}

export interface Connector<Config = unknown, Credentials = unknown> {
  kind: ConnectorType
  /** Each delivery is a message of its own (a call, a mail). Elsewhere a path holds one document, and a later one takes its place. */
  isMessage?: boolean
  /** Strict: unknown keys are refused. Defaults are filled in by parsing. */
  config: z.ZodType<Config>
  /** Strict; every secret field carries `.meta({ secret: true })`. */
  credentials: z.ZodType<Credentials>
  /**
   * Delivers the parcel whole or not at all; a second run of the same delivery has no second effect.
   * @throws DeliveryError; anything else counts as a failure worth another try.
   */
  deliver(parcel: Parcel, target: Target<Config, Credentials>, context: AttemptContext): Promise<Receipt>
  /**
   * Proves that we can authenticate and write, and leaves nothing behind.
   * @throws DeliveryError whose message tells what to mend.
   */
  probe(target: Target<Config, Credentials>, context: AttemptContext): Promise<void>
}

/** A delivery that did not happen, in words for the operator. */
export class DeliveryError extends Error {
  /** Stable, for filters: `connection_refused`, `credentials_refused`, `bucket_missing`, `http_503`, ... */
  readonly code: string
  /** No further try can mend it: the operator must. */
  readonly permanent: boolean
  /** What the target asked us to wait. */
  readonly retryAfterMs: number | undefined
  readonly answer: TargetAnswer | undefined

  constructor(
    code: string,
    message: string,
    options: { permanent?: boolean; retryAfterMs?: number | undefined; answer?: TargetAnswer | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'DeliveryError'
    this.code = code
    this.permanent = options.permanent ?? false
    this.retryAfterMs = options.retryAfterMs
    this.answer = options.answer
  }
}
