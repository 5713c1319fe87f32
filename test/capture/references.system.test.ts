import { createS3Store } from '../../src/content/s3.ts'
import { testConfig } from '../support/factories.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { describeReferences } from './references.ts'

const server = share(await startS3Server())

describeReferences('s3', () => (db) => {
  const variables = {
    CONTENT_S3_ENDPOINT: server.endpoint,
    CONTENT_S3_PATH_STYLE: 'true',
    CONTENT_S3_ACCESS_KEY_ID: server.accessKeyId,
    CONTENT_S3_SECRET_ACCESS_KEY: server.secretAccessKey,
  }
  return createS3Store(db, { ...testConfig(variables), CONTENT_S3_BUCKET: server.bucket })
})
