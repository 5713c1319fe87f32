import { cutText, plainText, storable, withoutOuterBlanks } from '../base/text.ts'
import { headersTimeoutMs, maxHeaderBytes } from './limits.ts'

// What a client has sent of the head of a request that Node's parser refuses.

/** A request that did not get past the parser of HTTP, as far as it can be read. */
export interface MalformedHead {
  method: string
  /** Bytes that a request line cannot contain, but for blanks, are percent-encoded. */
  target: string
  /** Names in lower case. */
  headers: Record<string, string>
}

const targetMaxCharacters = 64 * 1_024
const methodAtStart = /^([A-Za-z]{1,20}) +/
const versionAtEnd = /^HTTP\/\d(?:\.\d)?$/
const unreadable = /[^\x20-\x7e]/g

/** Returns the head in which an error stands. @param errorAt offset of the first byte that the parser did not read */
const headAround = (bytes: Buffer, errorAt: number): string => {
  const text = bytes.toString('latin1')
  // Requests of a client that does not wait for answers follow one another.
  const before = [...text.slice(0, errorAt).matchAll(/\n\r?\n/g)].at(-1)
  return text.slice(before ? before.index + before[0].length : 0).replace(/^[\r\n]+/, '')
}

/** Splits a request line, however many blanks it has: without a pattern that reads them again from each of them. */
const splitRequestLine = (line: string): { method: string; target: string } | undefined => {
  const [start, method] = methodAtStart.exec(line) ?? []
  if (start === undefined) return undefined
  const rest = withoutOuterBlanks(line.slice(start.length))
  const lastBlank = rest.lastIndexOf(' ')
  const target = lastBlank >= 0 && versionAtEnd.test(rest.slice(lastBlank + 1)) ? withoutOuterBlanks(rest.slice(0, lastBlank)) : rest
  return { method: method!, target }
}

/** Reads what there is of a head. @returns undefined if it does not begin with a method and a target */
export const readMalformedHead = (bytes: Buffer, errorAt: number): MalformedHead | undefined => {
  const [line = '', ...lines] = headAround(bytes, errorAt).split(/\r?\n/)
  const { method, target } = splitRequestLine(line) ?? {}
  if (method === undefined || !target) return undefined
  const end = lines.indexOf('')
  const headers = lines.slice(0, end < 0 ? lines.length : end).flatMap((header): [string, string][] => {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+)[ \t]*:(.*)$/.exec(header) ?? []
    return name === undefined ? [] : [[name.toLowerCase(), storable(withoutOuterBlanks(value!))]]
  })
  const encode = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  return {
    method: method.toUpperCase(),
    target: cutText(target.replaceAll(unreadable, encode), targetMaxCharacters),
    headers: Object.fromEntries(headers),
  }
}

/** Reasons of refusals, as metrics name them. */
export const malformedReasons = [
  'blank',
  'not_ascii',
  'control_character',
  'line_feed',
  'version',
  'tls',
  'too_large',
  'timeout',
  'incomplete',
  'host',
  'expectation',
  'method',
  'body',
  'syntax',
] as const

type MalformedReason = (typeof malformedReasons)[number]

export interface Explanation {
  reason: MalformedReason
  /** Text for the sender. */
  message: string
}

interface ParserError {
  code?: string | undefined
  /** Words of the parser. */
  reason?: string | undefined
}

const tlsHandshake = 0x16

/** Returns what is wrong with a request, for the person who has to correct the client. */
export const explainMalformed = ({ code = '', reason = '' }: ParserError, bytes: Buffer, errorAt: number): Explanation => {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { reason: 'too_large', message: `the request line and the headers have more than ${maxHeaderBytes} bytes` }
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { reason: 'timeout', message: `the request line and the headers did not arrive within ${headersTimeoutMs / 1_000} seconds` }
  }
  if (bytes[0] === tlsHandshake) return { reason: 'tls', message: 'the client speaks TLS, and this port serves HTTP without TLS' }
  if (/CHUNK|TRANSFER|CONTENT_LENGTH|BODY/.test(code)) {
    return { reason: 'body', message: `the length of the body cannot be read: ${plainText(reason, 200)}` }
  }
  const head = headAround(bytes, errorAt)
  const [line = ''] = head.split('\n', 1)
  return (
    inRequestLine(line.replace(/\r$/, '')) ??
    inHead(code, head) ?? { reason: 'syntax', message: `the request is no HTTP: ${plainText(reason, 200)}` }
  )
}

const inRequestLine = (line: string): Explanation | undefined => {
  const [, , target = '', version] = /^(\S+) (.*?)(?: (HTTP\/\S*))?$/.exec(line) ?? []
  if (/[\x80-\xff]/.test(line)) {
    return { reason: 'not_ascii', message: 'the request line contains characters outside of ASCII: percent-encode their UTF-8 bytes' }
  }
  if (/[^ -~]/.test(line)) {
    return { reason: 'control_character', message: 'the request line contains a control character: percent-encode it' }
  }
  if (target.includes(' ')) return { reason: 'blank', message: 'the request line contains a blank: encode it as %20' }
  if (version !== undefined && !/^HTTP\/1\.[01]$/.test(version)) {
    return { reason: 'version', message: 'the request line names another version than HTTP/1.0 and HTTP/1.1' }
  }
  return undefined
}

const inHead = (code: string, head: string): Explanation | undefined => {
  if (code === 'HPE_INVALID_EOF_STATE') return { reason: 'incomplete', message: 'the request ended before its head was complete' }
  if (/[^\r]\n/.test(head)) {
    return { reason: 'line_feed', message: 'a line of the head ends with LF alone: end each with CR LF' }
  }
  return undefined
}
