import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import type { OpenApi } from '../../src/api/open-api/document.ts'
import { errorStatus } from '../../src/base/errors.ts'
import { refusals } from '../../src/domain/refusal-codes.ts'
import { maxHeaderBytes } from '../../src/http/limits.ts'
import { isReceiverTarget } from '../../src/receiver/exchange.ts'
import { createContract } from '../support/contract.ts'
import type { RawAnswer } from './connection.ts'
import { serialize, type FuzzRequest } from './request.ts'

/** Answers of the HTTP parser of Node.js, before any code of the relay. They have no body. */
const parserStatuses = new Set([400, 408, 413, 417, 431])

/** Returns true if the request was refused before a surface could serve it: only Node's own answers have a date. */
const isOfParser = ({ status, headers }: RawAnswer) => parserStatuses.has(status) && headers['date'] === undefined

const checkParserAnswer = ({ headers, body }: RawAnswer, isHead: boolean) => {
  if (isHead) {
    if (body.length > 0) throw new Error('an answer to a HEAD has a body')
    if (!headers['x-errordescription']) throw new Error('a refusal of the parser without its reason')
    return
  }
  const { message, request_id: id } = (JSON.parse(body.toString()) as { error: Record<string, string> }).error
  if (id === undefined || id !== headers['x-relay-request-id']) throw new Error('a refusal of the parser without its request id')
  if (!message || !headers['x-errordescription']?.endsWith(message)) throw new Error('a refusal of the parser without its reason')
}

const apiStatus: Record<string, number> = errorStatus
const receiverStatus: Record<string, number> = Object.fromEntries(Object.entries(refusals).map(([code, { status }]) => [code, status]))

/** Messages of the answers with status 503 that a healthy relay gives under load, or while Temporal is unavailable. */
const declaredUnavailable = [
  'too many searches are running',
  'the search took longer than',
  'This process has too many',
  'Too many remote function calls are running',
  'conflicted with a concurrent change',
  'temporarily unavailable, try again later',
  'Temporal',
  'Too many requests of your address are running',
]

const declaredServerErrors: Record<string, readonly string[]> = {
  unavailable: declaredUnavailable,
  rate_limited: [''],
  too_many_certificates: [''],
  rfc_failed: [''],
  rfc_timeout: [''],
  quota_exceeded: [''],
  loop_detected: [''],
}

const decodedBody = ({ headers, body }: RawAnswer): string => {
  const decode = { gzip: gunzipSync, br: brotliDecompressSync, deflate: inflateSync }[headers['content-encoding'] ?? '']
  return (decode && body.length > 0 ? decode(body) : body).toString('utf8')
}

const checkErrorAnswer = (answer: RawAnswer, isHead: boolean) => {
  const { status, headers } = answer
  if (isOfParser(answer)) return checkParserAnswer(answer, isHead)
  if (headers['x-relay-request-id'] === undefined) throw new Error(`${status} lacks x-relay-request-id`)
  if (isHead && answer.body.length === 0) return
  const { code, message, request_id: id } = (JSON.parse(decodedBody(answer)) as { error: Record<string, string> }).error
  if (typeof code !== 'string' || typeof message !== 'string') throw new Error('not the form of an error')
  if (id !== headers['x-relay-request-id']) throw new Error('another request id in the body than in the header')
  if (status >= 500 && !(declaredServerErrors[code] ?? []).some((part) => message.includes(part))) {
    throw new Error(`undeclared server error ${status} ${code}: ${message}`)
  }
  const description = headers['x-errordescription']
  const expected = description === undefined ? apiStatus[code] : receiverStatus[code]
  if (expected !== status) throw new Error(`the code ${code} has the status ${expected}, not ${status}`)
  if (description !== undefined && !description.startsWith(`${code}: `)) throw new Error(`X-ErrorDescription is ${description}`)
}

const hasLongHead = (request: FuzzRequest) => serialize(request).indexOf('\r\n\r\n') > maxHeaderBytes

/** The target of a request consists of printable ASCII characters (RFC 9112). */
const isParsable = (target: string) => /^[\x21-\x7e]*$/.test(target)

/** Requests of one connection that the relay runs at the same time. */
const maxRunning = 16

const receiverSuccess = new Set([200, 201, 250])

/** Creates the check of answers. It throws an Error that says what is wrong with an answer. */
export const createJudge = (document: OpenApi) => {
  const contract = createContract(document)

  const checkAnswer = (answer: RawAnswer, isHead: boolean) => {
    const { status, headers } = answer
    // /readyz answers 503 with the states of its dependencies.
    if (status === 503 && decodedBody(answer).startsWith('{"status":"not ready"')) return
    if (status >= 400) checkErrorAnswer(answer, isHead)
    // The address of the relay alone.
    if (status === 302 && headers['location'] === '/console') return
    if (status >= 300 && status < 400 && status !== 304) throw new Error(`redirects to ${headers['location']}`)
    if (headers['x-injected'] !== undefined) throw new Error('a header was injected')
  }

  const check = (request: FuzzRequest, answers: RawAnswer[]): void => {
    const [answer, ...more] = answers
    if (!answer) throw new Error('not answered')
    if (more.length > 0) throw new Error(`answered ${answers.length} times`)
    const { method, surface, target } = request
    checkAnswer(answer, method === 'HEAD')
    if (isOfParser(answer)) {
      if (isParsable(target) && !(answer.status === 431 && hasLongHead(request))) throw new Error('refused by the parser')
      return
    }
    if (surface === 'receiver') {
      if (answer.status < 400 && !receiverSuccess.has(answer.status)) throw new Error(`unknown success ${answer.status}`)
      if (answer.status >= 400 && answer.headers['x-errordescription'] === undefined && isReceiverTarget(target))
        throw new Error('lacks X-ErrorDescription')
    }
    // openapi.json says nothing about preflight requests of browsers.
    if (surface !== 'api' || method === 'OPTIONS' || !target.startsWith('/api/')) return
    contract.check({
      method,
      path: target,
      // The relay also ignores a byte order mark.
      body: request.body && new TextDecoder().decode(request.body),
      status: answer.status,
      headers: new Headers(answer.headers),
      text: decodedBody(answer),
    })
  }

  return {
    /** Checks the answer to a well-formed request. */
    check,

    /**
     * Checks the answers to well-formed requests that were sent without waiting. A connection with more than `maxRunning` running requests
     * may be closed, and so is one after an answer that says so.
     */
    checkPipelined: (requests: readonly FuzzRequest[], answers: readonly RawAnswer[]): void => {
      for (const [index, answer] of answers.entries()) {
        // The parser is ahead of the answers: it ends the connection for a request that comes later.
        if (isOfParser(answer) && requests.some(({ target }) => !isParsable(target))) return
        const request = requests[index]
        if (!request) throw new Error(`answered ${answers.length} times`)
        check(request, [answer])
      }
      const isClosed = answers.at(-1)?.headers['connection'] === 'close'
      if (answers.length < requests.length && requests.length <= maxRunning && !isClosed) {
        throw new Error(`${requests.length - answers.length} of ${requests.length} requests were not answered`)
      }
    },

    /** Checks the answers to damaged bytes. There may be none, or several. */
    checkDamaged: (answers: RawAnswer[]): void => {
      for (const answer of answers) checkAnswer(answer, answer.body.length === 0)
    },
  }
}
