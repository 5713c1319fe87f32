import { testConfig } from '../support/factories.ts'
import type { S3Server } from '../support/s3-server.ts'

/** Returns the configuration of a content store in the bucket of a server, which is reached at an endpoint. */
export const s3ConfigOf = (server: S3Server, endpoint: string) => ({
  ...testConfig({
    CONTENT_S3_ENDPOINT: endpoint,
    CONTENT_S3_PATH_STYLE: 'true',
    CONTENT_S3_PREFIX: 'relay/',
    CONTENT_S3_ACCESS_KEY_ID: server.accessKeyId,
    CONTENT_S3_SECRET_ACCESS_KEY: server.secretAccessKey,
  }),
  CONTENT_S3_BUCKET: server.bucket,
})
