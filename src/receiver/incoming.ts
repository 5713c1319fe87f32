import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { PassingBody } from '../capture/body.ts'

/** A request as the receiver takes it: as it comes in by HTTP, or as it was captured. */
export interface Incoming {
  id: string
  method: string
  /** The request target, untouched. */
  target: string
  /** Names in lower case. */
  headers: Record<string, string | undefined>
  sourceIp: string
  /** Read by `readBody` and `readRest` only, which let it pass by `passing`. */
  body: Readable
  passing: PassingBody
  receivedAt: Date
  /** The moment that a signature is judged by: of a replay, the one at which the request was captured. */
  judgedAt: Date
  replayOf: string | null
  /** Nobody waits for the answer any more. */
  isGone(): boolean
}

export const flatHeaders = (headers: IncomingHttpHeaders): Incoming['headers'] =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]))

/** Node takes a request that announces no body for one without. */
export const announcesBody = ({ headers }: Pick<Incoming, 'headers'>): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

// shorter than this, reading the body is cheaper than asking the database first whether it is wanted
const longBytes = 256 * 1024

/** One that comes in chunks may be of any length. */
export const mayBeLong = ({ headers }: Pick<Incoming, 'headers'>): boolean => !(Number(headers['content-length']) <= longBytes)
