import { z } from 'zod'
import { caCertificate } from './ca-certificate.ts'
import { keyPrefix, plainText, plainUrl } from './fields.ts'

export const objstoreConfig = z.strictObject({
  bucket: z
    .string()
    .min(3)
    .max(255)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'is no bucket name')
    .describe('Bucket; it must exist'),
  region: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9-]+$/, 'is no region name')
    .describe('Region of the bucket, like eu-central-1; for other stores whatever they expect, often us-east-1'),
  prefix: keyPrefix.describe('Put before every key as it is; a folder ends with a slash'),
  endpoint: plainUrl.optional().describe('Address of a store other than AWS, http or https'),
  path_style: z.boolean().default(false).describe('Bucket in the path instead of the host name, as most stores other than AWS want it'),
  storage_class: plainText(64).optional().describe('Storage class of new objects, like STANDARD_IA; without it that of the bucket'),
  server_side_encryption: z
    .enum(['AES256', 'aws:kms', 'aws:kms:dsse'])
    .optional()
    .describe('Encryption asked of the store; without it that of the bucket'),
  kms_key_id: plainText(2_048).optional().describe('Key for aws:kms; without it the default key of the account'),
  ca_certificate: caCertificate,
})

export const objstoreCredentials = z.strictObject({
  access_key_id: plainText(256).describe('Access key of an account that may write there'),
  secret_access_key: plainText(1_024).meta({ secret: true }).describe('Its secret'),
  session_token: plainText(8_192).meta({ secret: true }).optional().describe('Belongs to credentials that are good for a time only'),
})

export type ObjstoreConfig = z.output<typeof objstoreConfig>
export type ObjstoreCredentials = z.output<typeof objstoreCredentials>
