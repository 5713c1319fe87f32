import { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Piece } from '../capture/stored-body.ts'
import { printableAscii } from '../content-server/encoding.ts'
import { isPdf } from '../domain/content-type.ts'
import { refusals } from '../domain/refusal-codes.ts'
import type { Refusal } from './refusal.ts'

export interface Answer {
  status: number
  /** Reason phrase, if the protocol defines its own. */
  reason?: string
  headers: Record<string, string | number>
  body: string | Buffer | Readable
  /** Set if the request is refused. */
  refusal?: Refusal
  /** The contents that the body is read from, if it consists of them. The capture refers to them. */
  pieces?: Piece[]
  /** The contents that the body is kept as. They are known after the answer has been sent, and undefined if it is not kept. */
  keptAs?: Promise<Piece[] | undefined>
}

export const plainText = 'text/plain; charset=us-ascii'

const descriptionMaxCharacters = 500

/** Returns the answer to a refused request. Its body has the same form as the errors of the management API. */
export const refusalAnswer = (refusal: Refusal, requestId: string): Answer & { body: string } => {
  const { code, message, retryAfterSeconds } = refusal
  return {
    status: refusals[code].status,
    headers: {
      'X-ErrorDescription': printableAscii(`${code}: ${message}`).slice(0, descriptionMaxCharacters),
      'Content-Type': 'application/json',
      ...(retryAfterSeconds !== undefined && { 'Retry-After': retryAfterSeconds }),
    },
    body: JSON.stringify({ error: { code, message, request_id: requestId } }),
    refusal,
  }
}

// A browser that opens a stored document runs no script of it and gives it no access to the origin of the relay.
const sandbox = { 'Content-Security-Policy': "sandbox; default-src 'none'" }

export const headersOf = ({ headers, body }: Answer, requestId: string): Record<string, string> => {
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
  const length: Record<string, string> = body instanceof Readable ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  // Browsers show no PDF in a sandbox. With nosniff, they show nothing else than a PDF.
  const policy: Record<string, string> = isPdf(own['Content-Type'] ?? '') ? {} : sandbox
  return { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', ...policy, 'x-relay-request-id': requestId, ...length, ...own }
}

/** Sends an answer through Koa, and removes the headers that Koa and the HTTP server add. */
export const sendAnswer = (ctx: Context, answer: Answer, requestId: string): void => {
  ctx.status = answer.status
  if (answer.reason) ctx.message = answer.reason
  ctx.body = answer.body
  ctx.remove('Content-Type')
  ctx.remove('Content-Security-Policy')
  // Set after the body, because setting a body in Koa removes the length.
  ctx.set(headersOf(answer, requestId))
}

/** Formats one line of an ASCII answer: `key="value";` pairs, with quotation marks in a value doubled. */
export const asciiLine = (values: Record<string, string>): string => {
  const pairs = Object.entries(values).map(([key, value]) => `${key}="${printableAscii(value).replaceAll('"', '""')}";`)
  return `${pairs.join('')}\r\n`
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character]!)

/** Formats the page of an answer with resultAs=html. @param content HTML */
export const htmlPage = (title: string, content: string): string =>
  `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>\n<body><h1>${escapeHtml(title)}</h1>${content}</body></html>\n`
