import type { Readable } from 'node:stream'
import type { z } from 'zod'
import { plainLines, plainText, textMaxCharacters } from '../base/text.ts'
import type { Outbound } from '../security/outbound.ts'
import { isPermanent, type DeliveryErrorCode, type FixedErrorCode, type OpenErrorCode } from './error-codes.ts'

/** One document to be delivered to one destination. */
export interface Payload {
  /** Identical in every attempt of this delivery, so that a target can recognise a repetition. */
  deliveryId: string
  /**
   * Names the delivery and its content: identical in every attempt to send this content, and another one after an append or an overwrite,
   * and when it is delivered again on request. A target drops ids that it has seen, and must not drop a content that it lacks.
   */
  messageId: string
  /** Counts the attempts of the delivery, this one included: 1 for the first. */
  attempt: number
  /** Number of requests to deliver the document again after it had been delivered. */
  again: number
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** The connection that planned the delivery. It may have been deleted since. */
  connectionId: string
  documentId: string
  repoId: string
  docId: string
  compId: string
  /** Type and number of the business object that the source system has named, if it is known by now. */
  erpObjectType: string | null
  erpObjectId: string | null
  /** The object type (`AR_OBJECT`) that the source system has assigned, if it is known by now. */
  arObject: string | null
  /** The name of the file that was brought in for the document, without folders, if there is one by now. */
  fileName: string | null
  description: string | null
  /** The business data of the document that is known by now, by the names of the fields. */
  fields: Readonly<Record<string, string>>
  /** What the connection wants to be written beside the document, in the form that the kind accepts. */
  properties: Readonly<Record<string, string>>
  /** Relative, slash-separated, without `..` or control characters. Identical in every attempt. */
  path: string
  /** Where an earlier attempt of this delivery has stored the document, as it reported it. Null before the first one that did. */
  location: string | null
  /** The content type that the source system sent, parameters included. */
  contentType: string
  sizeBytes: number
  /** Lower-case hex. */
  sha256: string
  receivedAt: Date
  /** Opens the content at byte `start`. May be called again; each stream must be read to its end or destroyed. */
  open(start?: number): Readable
  /**
   * Returns an address that serves the content without a key for a limited time, or `undefined` if RELAY_BASE_URL is
   * not set.
   */
  downloadUrl(): string | undefined
}

/** A document that was delivered, with what has become known of it since. */
export interface DeliveredCopy extends Pick<
  Payload,
  | 'deliveryId'
  | 'workspace'
  | 'connectionId'
  | 'documentId'
  | 'repoId'
  | 'docId'
  | 'compId'
  | 'erpObjectType'
  | 'erpObjectId'
  | 'arObject'
  | 'fileName'
  | 'description'
  | 'fields'
  | 'properties'
  | 'path'
  | 'receivedAt'
> {
  /** Names the delivery and its data: identical in every attempt to bring these. */
  messageId: string
  /** When the data were found. */
  foundAt: Date
  /** Where the document was stored, as the delivery reported it. */
  location: string
}

/** A document as it lies at a target. */
export interface StoredCopy extends Pick<Payload, 'documentId' | 'docId' | 'compId' | 'path'> {
  /** Where the document was stored, as the delivery reported it. */
  location: string
  /** The version that the delivery made, if the target keeps it by a lock: it is there although its name may not be. */
  versionId?: string | null
}

/** Bytes of a document, from the first to the last one, which is included. */
export interface ByteSpan {
  start: number
  end: number
}

/** Where the documents of a destination lie. */
export interface Place {
  /** What holds them, with the address of the target: a bucket, a drive. */
  container: string
  /** The beginning of their names in it: a prefix, or a folder that ends with a slash. Empty: they may be anywhere in it. */
  prefix: string
}

/** What properties are at a kind of target, and which it accepts. */
export interface PropertyRules {
  /** Returns why the target does not accept a name, or undefined. */
  nameIssue(name: string): string | undefined
  /** Returns a value in the form that the target accepts. An empty one is left out. */
  clean(value: string, name: string): string
}

/** The resources and the limits of one attempt. */
export interface AttemptContext {
  /** Aborted when the attempt is cancelled, times out or is interrupted. Every call to the target must end with it. */
  signal: AbortSignal
  /** Reports how many bytes of the document have been sent. Cheap enough to call for every chunk. */
  onProgress(bytesSent: number): void
  /** Opens every socket of the connector, after it has checked the address. */
  outbound: Outbound
  connectTimeoutMs: number
  idleTimeoutMs: number
  /** The number of bytes of the target's answer that are kept with the attempt. */
  answerMaxBytes: number
  /** The name of the workspace for which the target is called, `{userSlug}/{workspaceSlug}`: what the operator allows depends on it. */
  workspace: string
  /** Identifies this installation of the relay: a receiver of the same installation refuses a request that carries it. */
  installationId: string
  /** The state that the previous run saved, if its worker was lost or stopped during the delivery. */
  saved: unknown
  /**
   * Saves what the next run needs to resume an upload: a small JSON value. It is sealed before it leaves the process,
   * so it may contain an address that is itself a secret. It is sent at once and may still be lost.
   */
  save(state: unknown): void
  /** `true` if no attempt follows by itself when this one fails: an upload that fails is given up, and must not stay at the target. */
  isLast?: boolean
  /**
   * Adds values to the destination's config if the attempt succeeds: what the relay trusts in later attempts, such as the host key that the
   * server presented. Only keys that are not set.
   */
  pin(values: Record<string, string>): void
}

/**
 * The reason of `signal` if another run will resume the delivery: a connector must leave a resumable upload at the
 * target.
 */
export class Interruption extends Error {
  constructor() {
    super('the worker is stopping; another worker resumes the delivery')
    this.name = 'Interruption'
  }
}

export interface Target<Config, Credentials> {
  config: Config
  credentials: Credentials
}

export interface TargetIssue {
  /** The path of the setting, such as `config.bucket`. */
  path: string
  message: string
}

/** The target's answer, kept with the attempt. Must not contain a secret. */
export interface TargetAnswer {
  /** HTTP status or the protocol's own code. */
  status?: number | string
  /** The beginning of the answer's text. */
  body?: string
  /** Identifies the stored object at the target: an ETag, a version id, a request id. */
  [evidence: string]: string | number | undefined
}

export interface DeliveryResult {
  /** Location of the document, in the form in which an operator would look for it. */
  path: string
  bytesSent: number
  answer?: TargetAnswer
  /** Why the document was stored without its properties, which need a request of their own. */
  propertiesError?: string
}

/** A message about an incident, for people and for programs. */
export interface NoticeMessage {
  /** Identical in every attempt, so that a target can recognise a repetition. */
  id: string
  /** `{userSlug}/{workspaceSlug}`, unless the notice is about the installation. */
  workspace?: string
  /** One line, for people. */
  subject: string
  /** Plain text, for people. */
  text: string
  /** A small JSON object for programs (Standard Webhooks). */
  event: { type: string; timestamp: string; data: unknown }
}

export interface Connector<Config = unknown, Credentials = unknown> {
  kind: string
  /** `false` if this installation allows no destination of this kind. If absent: it allows them. */
  isAvailable?: boolean
  /**
   * `true` if each delivery is a message of its own (a call, a mail). Otherwise a later document at the same path
   * replaces an earlier one.
   */
  isMessage?: boolean
  /** Strict: refuses unknown keys and fills in defaults. */
  config: z.ZodType<Config>
  /** Strict. Every secret field carries `.meta({ secret: true })`. */
  credentials: z.ZodType<Credentials>
  /** A plausible destination of this kind, for the API description and the documentation. Its values are fictitious. */
  example: { config: Record<string, unknown>; credentials: Record<string, unknown> }
  /**
   * The keys of `config` that decide where the credentials are sent, which server is trusted there, and in whose name they are used. The
   * credentials are sealed together with their values, and a change of one of them needs the credentials again.
   */
  boundKeys: readonly string[]
  /** The keys of `config` that an attempt can pin, see `AttemptContext`. */
  pinnedKeys?: readonly string[]
  /** Returns true if the target gets the credentials, false if they only sign. If absent: the target gets them. */
  sendsCredentials?(credentials: Credentials): boolean
  /** Returns when valid credentials expire, if they state it themselves, as a certificate does. */
  credentialsExpireAt?(credentials: Credentials): Date | undefined
  /**
   * Returns what of valid config and credentials the operator does not allow to a workspace, such as a folder of another one. Asked before a
   * destination is saved or tested. An attempt refuses it as well. If absent: nothing is reserved.
   */
  notAllowed?(target: { config?: unknown; credentials?: unknown }, workspace: string): TargetIssue[]
  /**
   * Delivers the payload whole or not at all. A second run of the same delivery has no second effect.
   * @throws DeliveryError; any other error counts as a failure that is retried
   */
  deliver(payload: Payload, target: Target<Config, Credentials>, context: AttemptContext): Promise<DeliveryResult>
  /**
   * Has the target drop the upload that an earlier attempt has saved, and that no attempt continues. Absent if the target drops it by itself, or
   * the next upload replaces it.
   * @param saved see `AttemptContext`
   */
  giveUp?(saved: unknown, target: Target<Config, Credentials>, context: AttemptContext): Promise<void>
  /** Absent if documents at this kind of target have no properties. */
  properties?: PropertyRules
  /**
   * Brings what has become known of a delivered document: its properties, or a message. A second run has no second effect. Absent if that is
   * not possible at this kind of target.
   * @throws DeliveryError; any other error counts as a failure that is retried
   */
  updateMetadata?(copy: DeliveredCopy, target: Target<Config, Credentials>, context: AttemptContext): Promise<void>
  /** True if the target may change the bytes of a document when its properties are set. */
  updateRewrites?: boolean
  /**
   * Reads bytes of a delivered document and passes them to `take`: fewer, if the target has fewer. Absent if documents at this kind of target
   * cannot be read.
   * @returns false if the target says that it does not have the document
   * @throws DeliveryError; any other error counts as a failure that passes
   */
  read?(
    copy: StoredCopy,
    span: ByteSpan,
    target: Target<Config, Credentials>,
    context: AttemptContext,
    take: (bytes: AsyncIterable<Buffer>) => Promise<void>,
  ): Promise<boolean>
  /** The keys of `config` that decide where documents lie at the target, of a kind that can be read. Its address is none of them. */
  placeKeys?: readonly string[]
  /** Returns where documents lie, of a kind that can be read: two destinations may name one place. */
  placeOf?(config: Config): Place
  /**
   * Proves that the relay can authenticate and write, and leaves nothing behind.
   * @returns a sentence that says what was tried and what it proves
   * @throws DeliveryError whose message says what to correct
   */
  probe(target: Target<Config, Credentials>, context: AttemptContext): Promise<string>
  /**
   * Sends a notice. Absent if destinations of this kind are for documents only.
   * @throws DeliveryError; any other error counts as a failure that is retried
   */
  sendNotice?(notice: NoticeMessage, target: Target<Config, Credentials>, context: AttemptContext): Promise<void>
}

/** Returns the connector of a kind, or undefined if this process does not have it. */
export type FindConnector = (kind: string) => Connector | undefined

interface ErrorDetails {
  /** The time that the target asked the relay to wait. */
  retryAfterMs?: number | undefined
  answer?: TargetAnswer | undefined
  cause?: unknown
}

// The body of an answer is cut to a number of bytes that operators choose, once secrets are removed.
const bodyMaxCharacters = 1_000_000

/** Returns an answer of a target, whose texts may be anything, as it is stored and shown. The body keeps its lines. */
export const plainAnswer = (answer: TargetAnswer): TargetAnswer =>
  Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [
      plainText(name),
      typeof value !== 'string' ? value : name === 'body' ? plainLines(value, bodyMaxCharacters) : plainText(value),
    ]),
  )

/**
 * A failed delivery, with a message for the operator: one line of at most `textMaxCharacters`. What a target has said, in the message and in
 * the answer, becomes plain text here, so that a connector may pass it on as it came.
 */
export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode
  /**
   * `true` if no retry can succeed before an operator acts. Decided by the table of codes, or by the thrower if the
   * table leaves it open.
   */
  readonly permanent: boolean
  readonly retryAfterMs: number | undefined
  readonly answer: TargetAnswer | undefined
  /** The texts of the connector: secrets are looked for before the text is cut, and before its line breaks are removed. */
  readonly #original: { message: string; answer: TargetAnswer | undefined }

  constructor(code: FixedErrorCode, message: string, details?: ErrorDetails)
  constructor(code: OpenErrorCode, message: string, details: ErrorDetails & { permanent: boolean })
  constructor(code: DeliveryErrorCode, message: string, details: ErrorDetails & { permanent?: boolean } = {}) {
    super(plainText(message, textMaxCharacters), { cause: details.cause })
    this.name = 'DeliveryError'
    this.code = code
    this.permanent = isPermanent(code) ?? details.permanent ?? false
    this.retryAfterMs = details.retryAfterMs
    this.answer = details.answer && plainAnswer(details.answer)
    this.#original = { message, answer: details.answer }
  }

  /** Returns the same error with another message and answer, which are made from the original ones. */
  reworded(
    cause: unknown,
    messageFrom: (message: string) => string,
    answerFrom: (answer: TargetAnswer) => TargetAnswer = (answer) => answer,
  ): DeliveryError {
    const { permanent, retryAfterMs } = this
    const { message, answer } = this.#original
    const details = { permanent, retryAfterMs, answer: answer && answerFrom(answer), cause }
    return new DeliveryError(this.code as OpenErrorCode, messageFrom(message), details)
  }
}
