import type { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'

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
const evidence: Record<string, 'ETag' | 'UploadId'> = {
  PutObjectCommand: 'ETag',
  CreateMultipartUploadCommand: 'UploadId',
  UploadPartCommand: 'ETag',
  CompleteMultipartUploadCommand: 'ETag',
}

// Of a page that is kept with an error.
const keptMaxBytes = 16 * 1_024
const rootMaxCharacters = 1_024

/**
 * Returns true for text that is neither empty nor an XML document other than a web page. The content type does not tell: stores declare
 * `text/html` for an empty body.
 */
const isPage = (body: string): boolean => {
  const text = body.replace(/^\uFEFF/, '').trimStart()
  return text !== '' && (!text.startsWith('<') || /<(?:!doctype\s+)?html[\s>]/i.test(text.slice(0, rootMaxCharacters)))
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
      // The body of an object is read by whoever asks for it.
      if (!isSuccess || context.commandName === 'GetObjectCommand' || response.body === undefined) return result
      const bytes = response.body instanceof Uint8Array ? response.body : await client.config.streamCollector(response.body)
      response.body = bytes
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).subarray(0, keptMaxBytes).toString('utf8')
      if (isPage(text)) throw new ForeignAnswerError(response.statusCode, `${response.statusCode} with a body that no store sends`, text)
      return result
    },
    // Before the answer is parsed.
    { name: 'requireStoreAnswers', step: 'deserialize', priority: 'low' },
  )
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args)
      const name = evidence[String(context.commandName)]
      const output = result.output as { $metadata: { httpStatusCode?: number }; ETag?: string; UploadId?: string }
      if (name !== undefined && !output[name]) {
        throw new ForeignAnswerError(output.$metadata.httpStatusCode ?? 0, `${output.$metadata.httpStatusCode} without ${name}`)
      }
      return result
    },
    { name: 'requireEvidence', step: 'initialize' },
  )
}
