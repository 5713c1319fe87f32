import type { Readable } from 'node:stream'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { requireStoreAnswers } from '../../base/s3-answers.ts'
import { DeliveryError, type AttemptContext, type Target } from '../connector.ts'
import { noteOperation } from '../shared/operation.ts'
import type { ObjstoreConfig } from './schema.ts'
import { signDigests } from './signed-digest.ts'

const ignore = () => {}

/** Returns how clients of AWS send their requests: through the guard of outgoing connections, once, and with bounded answers. */
export const requestOptions = (
  { outbound, connectTimeoutMs, idleTimeoutMs }: Pick<AttemptContext, 'outbound' | 'connectTimeoutMs' | 'idleTimeoutMs'>,
  caCertificate?: string,
) => {
  const agents = outbound.agents({ connectTimeoutMs, caCertificate })
  return {
    // The SDK would log to the console. Whatever it logs is also thrown.
    logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    streamCollector: readResponseBody,
    // Only the workflow retries.
    maxAttempts: 1,
    requestHandler: {
      httpAgent: agents.http,
      httpsAgent: agents.https,
      connectionTimeout: connectTimeoutMs,
      socketTimeout: idleTimeoutMs,
    },
  }
}

/** Creates an SDK client for one attempt. */
export const createClient = (
  { config, credentials }: Target<ObjstoreConfig, S3ClientConfig['credentials']>,
  context: Pick<AttemptContext, 'outbound' | 'connectTimeoutMs' | 'idleTimeoutMs'>,
): S3Client => {
  const client = new S3Client({
    region: config.region,
    credentials,
    ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
    forcePathStyle: config.path_style,
    // Endpoints in the environment belong to the relay's own content store and must not apply to a workspace's
    // destination.
    ignoreConfiguredEndpointUrls: true,
    useFipsEndpoint: false,
    useDualstackEndpoint: false,
    // Stores other than AWS often do not support the newer checksums.
    ...(config.endpoint !== undefined && { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }),
    // With an agent of its own, the SDK does not wait for the 100 Continue that it would ask for, and some servers refuse the question.
    expectContinueHeader: false,
    ...requestOptions(context, config.ca_certificate),
  })
  requireStoreAnswers(client)
  noteOperations(client)
  if (config.endpoint !== undefined) signDigests(client)
  return client
}

/** Returns host and port of the store. */
export const originOf = async ({ config }: S3Client) => {
  const { hostname, port } = (await config.endpoint?.()) ?? {}
  return [hostname, port].join(':')
}

/** Notes with each error which operation has failed. */
const noteOperations = (client: S3Client): void => {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        try {
          return await next(args)
        } catch (thrown) {
          const { Bucket, Key, PartNumber } = args.input as { Bucket?: string; Key?: string; PartNumber?: number }
          const name = String(commandName).replace(/Command$/, '')
          const part = PartNumber === undefined ? '' : ` (part ${PartNumber})`
          noteOperation(thrown, `${name}${part} of s3://${Bucket}/${Key}`)
          throw thrown
        }
      },
    { name: 'noteOperations', step: 'initialize', priority: 'high' },
  )
}

// A page of a list has at most 1,000 parts of some 300 bytes.
const responseMaxBytes = 1024 * 1024

/** Reads a response body up to a limit. The SDK's own collector has no limit. */
const readResponseBody = async (body: Readable): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.length
    if (sizeBytes > responseMaxBytes) throw responseTooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

// Without `$metadata` the SDK would append a hint for programmers to the message.
const responseTooLong = () =>
  Object.assign(
    new DeliveryError('answer_unreadable', `the response exceeds ${responseMaxBytes} bytes, which no S3 store sends; check endpoint`),
    { $metadata: {} },
  )
