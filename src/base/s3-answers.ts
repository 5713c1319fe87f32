import type { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { namesVersion } from './etag.ts'

/**
 * An answer with a status of success that no S3 store sends: that of a proxy, a portal or a web server, or one that does not identify what
 * was stored. Nothing shows that the store has got the request.
 */
export class ForeignAnswerError extends Error {
  readonly status: number
  /** The beginning of the answer, if it has a body. */
  readonly body: string | undefined

  constructor(status: number, message: string, body?: string) {
    super(message)
    this.name = 'ForeignAnswerError'
    this.status = status
    this.body = body
  }
}

// What a store says about what it has stored, and about an upload that it has begun. Every store sends these: without them, an upload in
// parts could not be completed.
const evidence: Record<string, 'ETag' | 'UploadId' | 'TagSet'> = {
  HeadObjectCommand: 'ETag',
  GetObjectTaggingCommand: 'TagSet',
  PutObjectCommand: 'ETag',
  CreateMultipartUploadCommand: 'UploadId',
  UploadPartCommand: 'ETag',
  CompleteMultipartUploadCommand: 'ETag',
}

// Longest part of a page that is kept with an error.
const keptMaxBytes = 16 * 1_024
const doctypeMaxCharacters = 1_024
const rootName = /^(?:\s|<\?[^>]*>|<![^>]*>)*<([\w:.-]+)/
// Portals send no more than a script or a line of text at times. A store sends an error with a status of success if it has sent the status before.
const foreignRoots =
  /^(?:html|head|title|base|meta|link|script|noscript|style|body|frameset|div|span|p|h[1-6]|br|hr|a|b|center|form|table|pre|error)$/i

/**
 * Returns true for text that is neither empty nor an XML document that a store sends with success: text, a web page, an error. The content
 * type does not tell: stores declare `text/html` for an empty body.
 */
const isForeign = (body: string): boolean => {
  const text = body.replace(/^\uFEFF/, '').trimStart()
  if (text === '') return false
  const root = rootName.exec(text)?.[1]
  return root === undefined || foreignRoots.test(root) || /<!doctype\s+html/i.test(text.slice(0, doctypeMaxCharacters))
}

interface HttpResponse {
  statusCode: number
  body?: Readable | Uint8Array
}

/**
 * Makes a client of S3 fail with `ForeignAnswerError` instead of taking a status for success: if the body is that of no store, or if the
 * answer does not identify what was stored.
 */
export const requireStoreAnswers = (client: S3Client): void => {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args)
      const response = result.response as HttpResponse
      const isSuccess = response.statusCode >= 200 && response.statusCode < 300
      // The caller reads the body of an object.
      if (!isSuccess || context.commandName === 'GetObjectCommand' || response.body === undefined) return result
      const bytes = response.body instanceof Uint8Array ? response.body : await client.config.streamCollector(response.body)
      response.body = bytes
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).subarray(0, keptMaxBytes).toString('utf8')
      if (isForeign(text)) throw new ForeignAnswerError(response.statusCode, `${response.statusCode} with a body that no store sends`, text)
      return result
    },
    // Before the answer is parsed.
    { name: 'requireStoreAnswers', step: 'deserialize', priority: 'low' },
  )
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args)
      const name = evidence[String(context.commandName)]
      const output = result.output as { $metadata: { httpStatusCode?: number }; ETag?: string; UploadId?: string; TagSet?: object[] }
      if (name === undefined) return result
      if (name === 'ETag' ? !namesVersion(output.ETag) : !output[name]) {
        throw new ForeignAnswerError(output.$metadata.httpStatusCode ?? 0, `${output.$metadata.httpStatusCode} without ${name}`)
      }
      return result
    },
    { name: 'requireEvidence', step: 'initialize' },
  )
}
