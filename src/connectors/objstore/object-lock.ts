import {
  GetObjectLegalHoldCommand,
  GetObjectRetentionCommand,
  type CreateMultipartUploadCommandInput,
  type HeadObjectCommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { createTtlCache } from '../../base/ttl-cache.ts'
import { DeliveryError } from '../connector.ts'
import { originOf } from './client.ts'
import { statusOf, type Wanted } from './multipart-upload.ts'
import type { ObjstoreConfig } from './schema.ts'

// Object Lock: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html

/** Returns true if the bucket must keep objects for a time. */
export const mustRetain = ({ retain_days: days, retain_until: field }: ObjstoreConfig): boolean => days !== undefined || field !== undefined

/** Returns the lock of a new object. @param until when its retention ends; undefined or null for none */
export const lockOf = (
  { object_lock_mode: mode = 'GOVERNANCE', legal_hold: isOnHold }: ObjstoreConfig,
  until: Date | null | undefined,
) => ({
  ...(until && { ObjectLockMode: mode, ObjectLockRetainUntilDate: until }),
  ...(isOnHold && { ObjectLockLegalHoldStatus: 'ON' as const }),
})

/** Returns true if a stored object has the lock that a document must have. Without permission to see a lock, a store shows none. */
export const hasLock = (stored: HeadObjectCommandOutput, object: CreateMultipartUploadCommandInput): boolean =>
  (object.ObjectLockMode === undefined || stored.ObjectLockMode === object.ObjectLockMode) &&
  (object.ObjectLockLegalHoldStatus === undefined || stored.ObjectLockLegalHoldStatus === object.ObjectLockLegalHoldStatus)

export const unlocked =
  'this document, without its lock or with one that the account may not see (s3:GetObjectRetention, s3:GetObjectLegalHold)'

/** Returns what the receipt of a delivery says about the lock. */
export const lockFacts = ({ ObjectLockRetainUntilDate, ObjectLockMode, ObjectLockLegalHoldStatus }: CreateMultipartUploadCommandInput) => ({
  ...(ObjectLockRetainUntilDate && { retain_until: ObjectLockRetainUntilDate.toISOString(), object_lock_mode: ObjectLockMode }),
  ...(ObjectLockLegalHoldStatus !== undefined && { legal_hold: 'on' }),
})

export const isLocked = ({ ObjectLockMode, ObjectLockLegalHoldStatus }: CreateMultipartUploadCommandInput): boolean =>
  ObjectLockMode !== undefined || ObjectLockLegalHoldStatus !== undefined

/** Buckets whose stores do not know the condition that nothing is stored under a key. */
const unconditionalBuckets = createTtlCache<true>({ maxEntries: 1_000 })

const unknownLifetimeMs = 24 * 3_600_000

/** Stores an object under a key that is free, so that two attempts that overlap make one version. */
export const sendOnce = async <Stored>(
  client: S3Client,
  { Bucket }: CreateMultipartUploadCommandInput,
  send: (isNew: boolean) => Promise<Stored>,
): Promise<Stored> => {
  const bucketKey = `${await originOf(client)} ${Bucket}`
  if (unconditionalBuckets.get(bucketKey)) return send(false)
  try {
    return await send(true)
  } catch (thrown) {
    if (statusOf(thrown) !== 501) throw thrown
    unconditionalBuckets.set(bucketKey, true, Date.now() + unknownLifetimeMs)
    return send(false)
  }
}

/** Long enough for the test. */
export const probeRetentionMs = 120_000

/**
 * Looks whether an object has got its lock: a store that knows none takes the headers without a word.
 * @returns what to say about it
 * @throws DeliveryError `lock_missing` if it has none
 */
export const proveLock = async (client: S3Client, { object }: Wanted, abortSignal: AbortSignal): Promise<string> => {
  const { Bucket, Key, ObjectLockMode, ObjectLockLegalHoldStatus } = object
  const needs: string[] = []
  const ask = async (permission: string, has: () => Promise<boolean>) => {
    const found = await has().catch((thrown: unknown) => {
      if (statusOf(thrown) === 403) return undefined
      // The answer for an object without a lock.
      if ((statusOf(thrown) ?? 500) < 500) return false
      throw thrown
    })
    if (found === undefined) needs.push(permission)
    if (found === false)
      throw new DeliveryError('lock_missing', `the store has taken ${Key} without its lock; the bucket needs Object Lock`)
  }
  if (ObjectLockMode !== undefined) {
    await ask('s3:GetObjectRetention', async () => {
      const { Retention } = await client.send(new GetObjectRetentionCommand({ Bucket, Key }), { abortSignal })
      return Retention?.Mode === ObjectLockMode
    })
  }
  if (ObjectLockLegalHoldStatus !== undefined) {
    await ask('s3:GetObjectLegalHold', async () => {
      const { LegalHold } = await client.send(new GetObjectLegalHoldCommand({ Bucket, Key }), { abortSignal })
      return LegalHold?.Status === 'ON'
    })
  }
  return needs.length === 0
    ? ' They were locked, for two minutes; the bucket keeps them as older versions.'
    : ` Whether they were locked, the relay cannot tell: it needs ${needs.join(' and ')}.`
}
