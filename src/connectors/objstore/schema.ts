import { z } from 'zod'
import { allowedBy } from '../shared/allowed.ts'
import { retentionFields } from '../shared/retention.ts'
import { caCertificate, fileNames, keyPrefix, plainText, plainUrl } from '../shared/schema-fields.ts'
import { checkOneSignIn, withSignIns, type SignIn } from '../shared/sign-in.ts'
import { tokenFilePath } from '../shared/token-files.ts'

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
  object_lock_mode: z
    .enum(['GOVERNANCE', 'COMPLIANCE'])
    .optional()
    .describe('Mode of the retention. COMPLIANCE: nobody can shorten it. Default: GOVERNANCE'),
  ...retentionFields,
  ca_certificate: caCertificate,
})

type SignInKey = 'access_key_id' | 'secret_access_key' | 'session_token' | 'role_arn' | 'external_id' | 'federated_token_file'

const signIns: SignIn<SignInKey>[] = [
  { name: 'access_key', required: ['access_key_id', 'secret_access_key'], optional: ['session_token'] },
  { name: 'aws_role', required: ['role_arn'], optional: ['external_id'] },
  { name: 'aws_web_identity', required: ['role_arn', 'federated_token_file'], optional: ['external_id'] },
]

const accountCredentials = z
  .strictObject({
    access_key_id: plainText(256).optional().describe('Access key of an account that may write to the bucket'),
    secret_access_key: plainText(1_024).meta({ secret: true }).optional().describe('Secret of the access key'),
    session_token: plainText(8_192).meta({ secret: true }).optional().describe('Session token of temporary credentials'),
    role_arn: allowedBy(
      z
        .string()
        .max(2_048)
        .regex(/^arn:[A-Za-z0-9_-]+:iam::[A-Za-z0-9_-]*:role[/][A-Za-z0-9_+=,.@/-]+$/, 'must be the ARN of a role'),
      'RELAY_S3_ROLES',
    )
      .optional()
      .describe(
        'ARN of a role that may write to the bucket. The relay assumes it with its own identity, or with the token of federated_token_file. The operator must allow it in RELAY_S3_ROLES',
      ),
    external_id: z
      .string()
      .min(2)
      .max(1_224)
      .regex(/^[A-Za-z0-9_+=,.@:/-]+$/, 'must contain letters, digits and + = , . @ : / - _ only')
      .optional()
      .describe('External id that the trust policy of the role demands (sts:ExternalId)'),
    federated_token_file: tokenFilePath
      .optional()
      .describe(
        'Path of a file on the workers with a token that the role trusts, such as one of Kubernetes. Without it, the relay proves who it is by its own identity. It is read again for each sign-in. The operator must allow its directory in RELAY_TOKEN_FILE_ROOTS',
      ),
  })
  .superRefine((values, context) => {
    checkOneSignIn(
      signIns,
      values,
      context,
      'must contain either access_key_id and secret_access_key, or role_arn, alone or with federated_token_file',
    )
    if (values.external_id !== undefined && values.federated_token_file !== undefined) {
      const message = 'is not possible with federated_token_file: AWS takes no external id with such a token'
      context.addIssue({ code: 'custom', path: ['external_id'], message })
    }
  })

export const objstoreCredentials = withSignIns(accountCredentials, signIns)

/** A plausible destination, for documentation. */
export const objstoreExample = {
  config: { bucket: 'acme-documents', region: 'eu-central-1', prefix: 'invoices/' },
  credentials: { access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
}

export type ObjstoreConfig = z.output<typeof objstoreConfig>
export type ObjstoreCredentials = z.output<typeof objstoreCredentials>
