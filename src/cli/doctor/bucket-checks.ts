import { ListObjectsV2Command, S3ServiceException } from '@aws-sdk/client-s3'
import { messageOf, UserError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { openS3, type S3StoreConfig } from '../../content/s3.ts'
import { isLocalHost } from './configuration-checks.ts'

type BucketConfig = Pick<Config, 'CONTENT_S3_BUCKET'> & Omit<S3StoreConfig, 'CONTENT_S3_BUCKET'>

const forbidden = 403

/** Returns true if the bucket lists its objects, false if listing is not allowed. */
const canList = async (client: ReturnType<typeof openS3>, bucket: string, prefix: string): Promise<boolean> => {
  try {
    await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: 1 }))
    return true
  } catch (thrown) {
    // The relay itself need not list. Another 403 says that the key is wrong.
    if (thrown instanceof S3ServiceException && thrown.$metadata.httpStatusCode === forbidden && thrown.name === 'AccessDenied')
      return false
    throw thrown
  }
}

/** @throws `UserError` if the bucket does not answer */
export const findBucketProblems = async (config: BucketConfig): Promise<string[]> => {
  const { CONTENT_S3_BUCKET: bucket, CONTENT_S3_ENDPOINT: endpoint, CONTENT_S3_PREFIX: prefix } = config
  if (bucket === undefined) return []
  const own = openS3({ ...config, CONTENT_S3_BUCKET: bucket })
  const anonymous = openS3({ ...config, CONTENT_S3_BUCKET: bucket }, { isAnonymous: true })
  try {
    await canList(own, bucket, prefix).catch((thrown: unknown) => {
      const remedy = 'Check CONTENT_S3_BUCKET, CONTENT_S3_ENDPOINT, CONTENT_S3_REGION and the access key.'
      throw new UserError(`The bucket ${bucket} does not answer: ${messageOf(thrown)}. ${remedy}`, { cause: thrown })
    })
    // Stores refuse a request without a signature in different ways.
    const isPublic = await canList(anonymous, bucket, prefix).catch(() => false)
    const isPlain = endpoint?.startsWith('http:') === true && !isLocalHost(new URL(endpoint).hostname)
    return [
      ...(isPublic ? [`Everybody can list the objects of the bucket ${bucket}.`] : []),
      ...(isPlain ? [`The contents travel to ${endpoint} in clear.`] : []),
    ]
  } finally {
    own.destroy()
    anonymous.destroy()
  }
}
