import type { Readable } from 'node:stream'
import { request } from 'undici'
import { DeliveryError, type AttemptContext, type TargetAnswer } from './connector.ts'
import { counted } from './counted.ts'
import { readAnswer } from './http-answer.ts'

/** What bounds the calls of one attempt. */
export interface CallContext extends Pick<AttemptContext, 'signal' | 'outbound' | 'connectTimeoutMs' | 'idleTimeoutMs'> {
  /** PEM, trusted in place of the public authorities. */
  caCertificate?: string | undefined
}

export interface CloudCall {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  /** A stream must have exactly the length announced by `content-length`. */
  body?: string | Readable
}

export interface CloudAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

// beyond any answer these services give to what we ask: a page of a list has some hundred entries of 300 bytes
const answerMaxBytes = 1024 * 1024

/** One HTTP request and its answer, whatever its status. Redirects are not followed. */
export const cloudCall = async (url: string, { method, headers, body }: CloudCall, context: CallContext): Promise<CloudAnswer> => {
  const sent = typeof body === 'object' ? counted(body, Number(headers?.['content-length'])) : undefined
  const response = await request(url, {
    method,
    headers: { 'user-agent': userAgent, accept: 'application/json', ...headers },
    body: sent?.body ?? body ?? null,
    signal: context.signal,
    dispatcher: context.outbound.dispatcher({ connectTimeoutMs: context.connectTimeoutMs, caCertificate: context.caCertificate }),
    headersTimeout: context.idleTimeoutMs,
    bodyTimeout: context.idleTimeoutMs,
  })
  const answeredEarly = sent !== undefined && !sent.isTaken()
  const text = await readAnswer(response.body, { maxBytes: answerMaxBytes, timeoutMs: context.idleTimeoutMs, secrets: [] })
  if (answeredEarly && response.statusCode < 400) {
    throw new DeliveryError('answered_early', 'the service answered before it had taken all that was announced')
  }
  return { status: response.statusCode, headers: response.headers, text }
}

// the form Microsoft asks for, so that it can tell who is calling; to Google it is a name like any other
const userAgent = 'ISV|DocumentRelay|DocumentRelay/1.0'

/** The answer as an object; an empty one where it is none. */
export const objectOf = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** The answer as it is kept with an attempt; `reporting` cuts it to size. */
export const targetAnswer = ({ status, text }: CloudAnswer): TargetAnswer => ({ status, body: text })
