import type { Context } from 'koa'
import { Readable } from 'node:stream'
import { printableAscii } from './bytes.ts'
import { refusalStatus, type Refusal } from './refusal.ts'

/** What a command answers. */
export interface Answer {
  status: number
  /** The reason phrase, where the protocol has one of its own. */
  reason?: string
  headers: Record<string, string | number>
  body: string | Buffer | Readable
}

export const plainText = 'text/plain; charset=us-ascii'

const descriptionMaxCharacters = 500
const retryAfterSeconds = 5

export const refusalAnswer = ({ code, message }: Refusal): Answer => {
  const description = printableAscii(`${code}: ${message}`).slice(0, descriptionMaxCharacters)
  return {
    status: refusalStatus[code],
    headers: {
      'X-ErrorDescription': description,
      'Content-Type': plainText,
      ...(code === 'unavailable' ? { 'Retry-After': retryAfterSeconds } : {}),
    },
    body: `${description}\r\n`,
  }
}

/** All headers that go out with an answer. */
export const headersOf = ({ headers, body }: Answer, requestId: string): Record<string, string> => {
  const own = Object.entries(headers).map(([name, value]) => [name, String(value)])
  const length = body instanceof Readable ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  return { 'Cache-Control': 'no-store', 'x-relay-request-id': requestId, ...length, ...Object.fromEntries(own) }
}

/** Hands an answer to Koa, and takes back what Koa adds of its own. */
export const send = (ctx: Context, answer: Answer, requestId: string): void => {
  ctx.status = answer.status
  if (answer.reason) ctx.message = answer.reason
  ctx.body = answer.body
  ctx.remove('Content-Type')
  // after the body: Koa forgets the length that was set before
  ctx.set(headersOf(answer, requestId))
}
