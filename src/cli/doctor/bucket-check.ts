import { ListObjectsV2Command, S3ServiceException } from '@aws-sdk/client-s3'
import { messageOf, UserError } from '../../base/errors.ts'
import { openS3, type S3StoreConfig } from '../../content/s3.ts'

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
export const findBucketProblems = async (config: S3StoreConfig): Promise<string[]> => {
  const { CONTENT_S3_BUCKET: bucket, CONTENT_S3_PREFIX: prefix } = config
  const own = openS3(config)
  const anonymous = openS3(config, { isAnonymous: true })
  try {
    await canList(own, bucket, prefix).catch((thrown: unknown) => {
      const remedy = 'Check CONTENT_S3_BUCKET, CONTENT_S3_ENDPOINT, CONTENT_S3_REGION and the access key.'
      throw new UserError(`The bucket ${bucket} does not answer: ${messageOf(thrown)}. ${remedy}`, { cause: thrown })
    })
    // Stores refuse a request without a signature in different ways.
    const isPublic = await canList(anonymous, bucket, prefix).catch(() => false)
    return isPublic ? [`Everybody can list the objects of the bucket ${bucket}.`] : []
  } finally {
    own.destroy()
    anonymous.destroy()
  }
}
