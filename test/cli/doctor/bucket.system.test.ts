import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findBucketProblems } from '../../../src/cli/doctor/bucket-check.ts'
import { testConfig } from '../../support/factories.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { share } from '../../support/share.ts'

const server = share(await startS3Server())

const examine = (variables: Record<string, string> = {}) =>
  findBucketProblems({
    ...testConfig({
      CONTENT_S3_ENDPOINT: server.endpoint,
      CONTENT_S3_PATH_STYLE: 'true',
      CONTENT_S3_ACCESS_KEY_ID: server.accessKeyId,
      CONTENT_S3_SECRET_ACCESS_KEY: server.secretAccessKey,
      ...variables,
    }),
    CONTENT_S3_BUCKET: variables['CONTENT_S3_BUCKET'] ?? server.bucket,
  })

test('a private bucket on this machine has no problem', async () => {
  expect(await examine()).toEqual([])
})

test.each([
  ['is missing', { CONTENT_S3_BUCKET: 'missing' }],
  ['refuses the key', { CONTENT_S3_SECRET_ACCESS_KEY: 'wrong' }],
  ['is away', { CONTENT_S3_ENDPOINT: 'http://127.0.0.1:1' }],
])('a bucket that %s does not answer', async (_, variables) => {
  await expect(examine(variables)).rejects.toThrow(/^The bucket .* does not answer: .* Check CONTENT_S3_BUCKET/)
})

test('a bucket that lists its objects to everybody is public', async () => {
  const list = '<?xml version="1.0"?><ListBucketResult><Name>documents</Name><KeyCount>0</KeyCount></ListBucketResult>'
  const store = createServer((_, response) => response.setHeader('content-type', 'application/xml').end(list))
  await once(store.listen(0, '127.0.0.1'), 'listening')
  const endpoint = `http://127.0.0.1:${(store.address() as AddressInfo).port}`
  expect(await examine({ CONTENT_S3_ENDPOINT: endpoint })).toEqual(['Everybody can list the objects of the bucket documents.'])
  store.closeAllConnections()
  store.close()
})
