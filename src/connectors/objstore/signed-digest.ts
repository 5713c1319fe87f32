import { createHash } from 'node:crypto'
import type { S3Client } from '@aws-sdk/client-s3'

interface HttpRequest {
  headers: Record<string, string>
  body?: unknown
}

const withMd5 = new Set(['UploadPartCommand', 'PutObjectTaggingCommand', 'PutObjectLegalHoldCommand'])

const isChecksumHeader = (name: string) => /^x-amz-(?:checksum-|sdk-checksum-algorithm)/i.test(name)

/**
 * Makes a client protect what it sends in the ways that every store knows: the SHA-256 of a document is signed with the request
 * (`x-amz-content-sha256`), and a part, tags or a legal hold have a `Content-MD5`, which an Object Lock demands. The headers of the newer checksums are left
 * out unless a request asks for one, because some stores refuse them.
 */
export const signDigests = (client: S3Client): void => {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const { ChecksumSHA256, Metadata } = args.input as { ChecksumSHA256?: string; Metadata?: { sha256?: string } }
        const { body, headers } = args.request as HttpRequest
        if (ChecksumSHA256 === undefined) for (const name of Object.keys(headers).filter(isChecksumHeader)) delete headers[name]
        if (commandName === 'PutObjectCommand' && Metadata?.sha256 !== undefined) headers['x-amz-content-sha256'] = Metadata.sha256
        if (commandName !== undefined && withMd5.has(commandName)) {
          headers['content-md5'] = createHash('md5')
            .update(body as Buffer | string)
            .digest('base64')
        }
        return next(args)
      },
    // After the SDK has added its own, and before the request is signed.
    { name: 'signDigests', step: 'build', priority: 'low' },
  )
}
