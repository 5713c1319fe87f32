import type { Readable } from 'node:stream'
import { S3Client } from '@aws-sdk/client-s3'
import { DeliveryError, type AttemptContext, type Target } from './connector.ts'
import type { ObjstoreConfig, ObjstoreCredentials } from './objstore-target.ts'

const say = () => {}
const silent = { debug: say, info: say, warn: say, error: say }

/** A client of the SDK for one attempt. */
export const objstoreClient = (
  { config, credentials }: Target<ObjstoreConfig, ObjstoreCredentials>,
  { outbound, connectTimeoutMs, idleTimeoutMs }: AttemptContext,
) => {
  const agents = outbound.agents({ connectTimeoutMs, caCertificate: config.ca_certificate })
  return new S3Client({
    region: config.region,
    credentials: {
      accessKeyId: credentials.access_key_id,
      secretAccessKey: credentials.secret_access_key,
      ...(credentials.session_token !== undefined && { sessionToken: credentials.session_token }),
    },
    ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
    forcePathStyle: config.path_style,
    // what the environment of the relay says of endpoints is meant for its own store, not for a workspace's destination
    ignoreConfiguredEndpointUrls: true,
    useFipsEndpoint: false,
    useDualstackEndpoint: false,
    // stores other than AWS often do not know the newer checksums
    ...(config.endpoint !== undefined && { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }),
    // it would write to the console, which is not where we log; what it has to say is thrown as well
    logger: silent,
    streamCollector: readWhole,
    // only the workflow tries again
    maxAttempts: 1,
    requestHandler: {
      httpAgent: agents.http,
      httpsAgent: agents.https,
      connectionTimeout: connectTimeoutMs,
      socketTimeout: idleTimeoutMs,
    },
  })
}

// a page of a list has 1,000 parts of some 300 bytes
const answerMaxBytes = 1024 * 1024

/** An answer as a whole, which the SDK would read to its end however long it is. */
const readWhole = async (body: Readable): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.length
    if (sizeBytes > answerMaxBytes) throw tooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

// with metadata, or the SDK would append advice for programmers to the message
const tooLong = () =>
  Object.assign(new DeliveryError('answer_unreadable', `the store answers with more than ${answerMaxBytes} bytes, as no S3 store does`), {
    $metadata: {},
  })
