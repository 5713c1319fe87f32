import type { BlockBlobClient, BlockBlobUploadOptions } from '@azure/storage-blob'
import { DeliveryError } from '../connector.ts'
import type { BlobConfig } from './schema.ts'

// Immutability of versions: https://learn.microsoft.com/azure/storage/blobs/immutable-version-level-worm-policies

/** What protects a new blob, and the condition that there is none of its name. */
export type Retention = Pick<BlockBlobUploadOptions, 'immutabilityPolicy' | 'legalHold' | 'conditions'>

export const mustRetain = ({ retain_days: days, retain_until: field }: BlobConfig): boolean => days !== undefined || field !== undefined
export const isRetained = (config: BlobConfig): boolean => mustRetain(config) || config.legal_hold

/** The SDK sends it with the request that makes the blob. @param until when the retention ends, if the blob has one */
export const retentionOf = (
  { immutability_mode: mode = 'unlocked', legal_hold: isOnHold }: BlobConfig,
  until: Date | undefined,
): Retention => ({
  ...(until && { immutabilityPolicy: { expiriesOn: until, policyMode: mode === 'locked' ? 'Locked' : 'Unlocked' } }),
  ...(isOnHold && { legalHold: true }),
})

/** Returns what the receipt of a delivery says about it. */
export const retentionFacts = ({ immutabilityPolicy, legalHold }: Retention) => ({
  ...(immutabilityPolicy && {
    retain_until: immutabilityPolicy.expiriesOn?.toISOString(),
    immutability_mode: immutabilityPolicy.policyMode,
  }),
  ...(legalHold && { legal_hold: 'on' }),
})

/** Long enough for the test of a destination. */
export const probeRetentionMs = 120_000

/**
 * Looks whether a blob is protected: an emulator takes the headers without a word.
 * @returns what to say about it
 * @throws DeliveryError `lock_missing` if it is not
 */
export const proveRetention = async (blob: BlockBlobClient, wanted: Retention, abortSignal: AbortSignal): Promise<string> => {
  const { immutabilityPolicyMode: mode, legalHold } = await blob.getProperties({ abortSignal })
  const isKept = wanted.immutabilityPolicy === undefined || mode?.toLowerCase() === wanted.immutabilityPolicy.policyMode?.toLowerCase()
  if (isKept && (!wanted.legalHold || legalHold === true)) {
    return ' They were protected, for two minutes; the container keeps them as older versions.'
  }
  throw new DeliveryError(
    'lock_missing',
    `the account has taken ${blob.name} without its retention; the container needs immutability of versions`,
  )
}
