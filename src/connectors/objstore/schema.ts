import { z } from 'zod'
import { caCertificate, fileNames, keyPrefix, plainText, plainUrl } from '../shared/schema-fields.ts'

export const objstoreConfig = z.strictObject({
  bucket: z
    .string()
    .min(3)
    .max(255)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be a bucket name')
    .describe('Bucket; it must exist'),
  region: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9-]+$/, 'must be a region name')
    .describe('Region of the bucket, for example eu-central-1. Stores other than AWS often expect us-east-1'),
  prefix: keyPrefix.describe('Prepended to every key unchanged; a folder ends with a slash'),
  file_names: fileNames,
  endpoint: plainUrl.optional().describe('Address of a store other than AWS, http or https'),
  path_style: z.boolean().default(false).describe('Bucket in the path instead of the host name, as most stores other than AWS require'),
  storage_class: plainText(64).optional().describe("Storage class of new objects, for example STANDARD_IA. Default: the bucket's"),
  server_side_encryption: z
    .enum(['AES256', 'aws:kms', 'aws:kms:dsse'])
    .optional()
    .describe("Encryption requested from the store. Default: the bucket's"),
  kms_key_id: plainText(2_048).optional().describe("Key for aws:kms. Default: the account's default key"),
  ca_certificate: caCertificate,
})

export const objstoreCredentials = z.strictObject({
  access_key_id: plainText(256).describe('Access key of an account that may write to the bucket'),
  secret_access_key: plainText(1_024).meta({ secret: true }).describe('Secret of the access key'),
  session_token: plainText(8_192).meta({ secret: true }).optional().describe('Session token of temporary credentials'),
})

/** A plausible destination, for documentation. */
export const objstoreExample = {
  config: { bucket: 'acme-documents', region: 'eu-central-1', prefix: 'invoices/' },
  credentials: { access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
}

export type ObjstoreConfig = z.output<typeof objstoreConfig>
export type ObjstoreCredentials = z.output<typeof objstoreCredentials>
