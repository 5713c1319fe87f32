import type { TlsOptions } from 'node:tls'
import type { Connector, DeliveryResult, Payload, Target } from '../../src/connectors/connector.ts'
import { connectorTypes } from '../../src/connectors/index.ts'
import type { Receipt } from '../../src/domain/receipt.ts'
import type { Busy, Load } from '../support/busy-server.ts'
import type { Answered, Pages } from '../support/pages.ts'

interface StoredDocument {
  sha256: string
  sizeBytes: number
  /** Absent if the target has no field for it. */
  contentType?: string | undefined
}

/** The parts of a running target that only a kind with a network connection has. */
interface NetworkTarget {
  port: number
  /** Returns the connector for another port, if the product and not the destination names the hosts. */
  connectorAt?(port: number): Connector
  /** Returns a target that is too busy, and says until when if its protocol can. */
  busy(load: Load, retryAfter: string): Promise<Busy>
  /** `true` if the protocol cannot say until when: the relay's own backoff decides. */
  hasNoRetryAfter?: boolean
  /** Puts something before the target that answers requests with a page. Absent if the target does not speak HTTP, or accepts any answer. */
  pages?(status: number, which: Answered): Promise<Pages>
  wrongCredentials: Target<unknown, unknown>
  /** The strings that no message may contain. */
  secrets: string[]
}

/** A step of a delivery that a target may refuse. */
export interface Step {
  /** How the error of a delivery begins that meets the refusal: with the operation and its place. */
  operation: RegExp
  /** What a test of the destination says that succeeds there, because it cannot try the step. Absent if it fails. */
  untried?: RegExp
}

/** A running target, with the means to look into it. */
export interface RunningTarget {
  connector: Connector
  /** Passed to `Rig.connectorIn`, through JSON. */
  processSettings?: unknown
  /** Returns a destination that works. With a port, the connection goes to that port, where a proxy listens. */
  target(port?: number): Target<unknown, unknown>
  network?: NetworkTarget
  /** A destination whose folder, bucket, path or recipient does not exist. */
  missingLocation: { target: Target<unknown, unknown>; code: string }
  /** Starts a target that refuses one step of a delivery. */
  refusing: {
    /** What deliveries of a small document and of one in parts ask of the target. */
    steps: Record<string, Step>
    start(step: string): Promise<{ target: Target<unknown, unknown>; stop(): Promise<void> }>
  }
  keepsContentType: boolean
  /** `true` if no client can delete the parts of an unfinished upload: the target deletes them after a time. */
  partsExpire?: boolean
  /** Absent if documents at this kind of target have no properties. */
  properties?: {
    /** Names that the target accepts. */
    names: [string, string]
    read(payload: Payload, result: DeliveryResult): Promise<Record<string, string>>
    /** The property that another program sets. Absent if the file of properties is the relay's own. */
    foreign?: string
    add?(payload: Payload, result: DeliveryResult, properties: Record<string, string>): Promise<void>
  }
  read(payload: Payload, result: DeliveryResult): Promise<StoredDocument | undefined>
  /** Finds a document by what its receipt names at the target. Absent if the path is its only name there. */
  readByNames?(names: Receipt['target'], result: DeliveryResult): Promise<StoredDocument | undefined>
  /** Returns the names of the complete documents at the target. */
  documents(): Promise<string[]>
  /** Returns the names of everything else: parts, temporary files, unfinished uploads. */
  leftovers(): Promise<string[]>
  reset(): Promise<void>
  stop(): Promise<void>
}

/** A destination before its schemas have parsed it. */
export interface Destination {
  connector: Connector
  config: Record<string, unknown>
  credentials: Record<string, unknown>
}

/** A running target, for the tests that try destinations with typical mistakes. */
interface ProbeTarget extends Destination {
  /** Each mistake changes the working destination. The message of the test must match. */
  mistakes: [name: string, config: Record<string, unknown>, credentials: Record<string, unknown>, message: RegExp][]
  stop(): Promise<void>
}

/** A running target whose uploads another worker can resume. */
export interface ResumableTarget {
  connector: Connector
  target: Target<unknown, unknown>
  /** Returns what the target knows about the one document that it stores. */
  stored(result: DeliveryResult): Promise<unknown>
  expected(payload: Payload): unknown
  documentCount(): Promise<number>
  /** Returns the number of unfinished uploads, or `undefined` if they cannot be aborted. */
  unfinished(): number | undefined
  /** Makes the target forget every unfinished upload. */
  forget(): Promise<void>
  stop(): Promise<void>
}

/** A way to reach a TLS server with this kind. */
export interface TlsCase {
  name: string
  destination(port: number): Destination
  /** Starts a server that speaks TLS, and the parts of the protocol of the kind that the tests need. */
  listen(tls: TlsOptions): Promise<{ port: number; stop(): Promise<void> }>
  /** `true` if the protocol is HTTP, which has redirects. */
  isHttp: boolean
}

/**
 * The test rig of one kind of connector: what the kind can do, and how the tests that all kinds share run against it.
 * Every registered kind has one in `test/connectors/<kind>/rig.ts`.
 */
export interface Rig {
  kind: string
  /** `true` if the tests run against a contract double, since no server of the kind can be run. */
  isDouble?: boolean
  /** Which target it is, if the kind is tested against several: `a second relay`. */
  against?: string
  /** `false` if the connector opens no connection. */
  usesNetwork: boolean
  /** `true` if an upload of a large document holds several of its parts in memory. */
  holdsSeveralParts?: boolean
  /**
   * `true` if the connector speaks HTTP and demands that an answer identifies what is stored. `NetworkTarget.pages` is needed then. A webhook
   * takes any 2xx, by contract.
   */
  demandsEvidence?: boolean
  start(): Promise<RunningTarget>
  /** Returns the connector in a process that has not started the target. */
  connectorIn(processSettings: unknown): Connector
  /** Every setting with which a member of a workspace can name a host. */
  hostSettings: { name: string; destination(host: string, port: number): Destination }[]
  /** A config field that is a URL or a host, with the other fields that the config needs. */
  addressField?: { key: string; form: 'url' | 'host'; config: object; connector: Connector }
  tlsCases: TlsCase[]
  startProbeTarget(): Promise<ProbeTarget>
  startResumable?(): Promise<ResumableTarget>
  /** Valid credentials, and the strings in them that are secret. */
  secretSamples: [credentials: object, secrets: string[]][]
}

/**
 * Loads the rig of every registered kind, one after another: on Node 22, jest cannot load modules at the same time that import the same one.
 * @throws Error if a kind has none
 */
export const loadRigs = async (): Promise<Rig[]> => {
  const rigs: Rig[] = []
  for (const kind of connectorTypes) rigs.push(((await import(`./${kind}/rig.ts`)) as { rig: Rig }).rig)
  return rigs
}
