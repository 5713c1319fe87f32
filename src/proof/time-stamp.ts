import { randomBytes } from 'node:crypto'
import { Integer, OctetString, Utf8String, type AsnType } from 'asn1js'
import { request } from 'undici'
import { plainText } from '../base/text.ts'
import { bytesOf, childrenOf, octetsOf, parseBer, signedDataFields } from '../security/asn1.ts'
import { boolean, integer, nothing, octets, oid, sequence } from '../security/der.ts'
import type { Outbound } from '../security/outbound.ts'

// A time stamp (RFC 3161) says that a file existed at a time, by the word of an authority. Here only what the answer is about is compared;
// its signature and its certificates are for the auditor who verifies it, with `openssl ts -verify`.

const sha256Algorithm = sequence(oid('2.16.840.1.101.3.4.2.1'), nothing)
const nonceBytes = 8

/** Returns a request for a time stamp. @param nonce not negative */
const timeStampRequest = (sha256: Buffer, nonce: Buffer): Buffer =>
  sequence(integer(Buffer.from([1])), sequence(sha256Algorithm, octets(sha256)), integer(nonce), boolean(true))

// `granted`, and `granted with modifications`.
const granted = new Set(['0', '1'])

/** Checks that an answer grants what was asked for. @throws `Error` that says why it does not */
const checkTimeStamp = (answer: Buffer, sha256: Buffer, nonce: Buffer): void => {
  const [status, token] = childrenOf(parseBer(answer))
  const [code, texts] = childrenOf(status)
  if (!(code instanceof Integer)) throw new Error('the answer is no time stamp')
  if (!granted.has(code.valueBlock.toString())) {
    const said = childrenOf(texts).flatMap((text) => (text instanceof Utf8String ? [text.getValue()] : []))
    throw new Error(plainText(`the authority refuses: status ${code.valueBlock.toString()} ${said.join(' ')}`))
  }
  const fields = infoOf(token)
  const imprint = childrenOf(fields[2]).at(-1)
  const isOfFile = imprint instanceof OctetString && octetsOf(imprint).equals(sha256)
  const wanted = integer(nonce)
  if (!isOfFile || !fields.slice(3).some((field) => bytesOf(field).equals(wanted))) throw new Error('the time stamp is of another request')
}

/** Returns the fields of the TSTInfo in a token. Empty if there is none. */
const infoOf = (token: AsnType | undefined): AsnType[] => {
  const content = childrenOf(childrenOf(signedDataFields(token)[2])[1])[0]
  return content instanceof OctetString ? childrenOf(parseBer(octetsOf(content))) : []
}

const timeoutMs = 30_000
// Answers with a chain of certificates have some 5 KiB.
const answerMaxBytes = 64 * 1024

/**
 * Asks an authority for the time stamp of a file.
 * @returns its answer in DER
 * @throws `Error` that says why there is none
 */
export const requestTimeStamp = async (
  outbound: Pick<Outbound, 'dispatcher'>,
  url: string,
  sha256: Buffer,
  cancelled: AbortSignal,
): Promise<Buffer> => {
  // The first bit is 0, and the first byte is not: the shortest form of the number has all bytes.
  const nonce = randomBytes(nonceBytes)
  nonce[0] = (nonce[0]! & 0x7f) | 0x40
  const { statusCode, body } = await request(url, {
    method: 'POST',
    headers: { 'user-agent': 'document-relay', 'content-type': 'application/timestamp-query', accept: 'application/timestamp-reply' },
    body: timeStampRequest(sha256, nonce),
    signal: AbortSignal.any([cancelled, AbortSignal.timeout(timeoutMs)]),
    dispatcher: outbound.dispatcher({ connectTimeoutMs: timeoutMs }),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > answerMaxBytes) throw new Error(`the answer has more than ${answerMaxBytes} bytes`)
    chunks.push(chunk)
  }
  if (statusCode !== 200) throw new Error(`the authority answered ${statusCode}`)
  const answer = Buffer.concat(chunks)
  checkTimeStamp(answer, sha256, nonce)
  return answer
}
