import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'
import { caCertificate, fileNames } from '../shared/schema-fields.ts'
import { checkOneSignIn, withSignIns, type SignIn } from '../shared/sign-in.ts'
import { externalAccount } from './external-account.ts'

export const driveConfig = z.strictObject({
  folder_id: z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9_-]+$/, "must be the last part of the folder's address, not the whole address")
    .meta({ 'x-taken-from': '/folders/([A-Za-z0-9_-]+)' })
    .describe(
      "Folder to store documents in: the last part of its address, https://drive.google.com/drive/folders/FOLDER_ID. A shared drive's own id is a folder too",
    ),
  subject: z
    .email()
    .max(255)
    .optional()
    .describe(
      'User in whose name documents are stored, by domain-wide delegation. The user then owns the files, which count against their storage',
    ),
  file_names: fileNames,
  ca_certificate: caCertificate,
})

const isRsaKey = (pem: string) => {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

// Not strict: the key file is Google's and may contain further keys, which are dropped.
const serviceAccount = z.object({
  type: z
    .literal('service_account', 'must be service_account; this is the key file of another kind of account')
    .describe('Kind of account that the key file is for'),
  client_email: z
    .string()
    .min(3)
    .max(320)
    .regex(/^\S+@\S+$/, 'must be an e-mail address')
    .describe('Address of the account'),
  private_key: z
    .string()
    .max(20_000)
    .refine(isRsaKey, 'must be an RSA private key in PEM form')
    .meta({ secret: true })
    .describe('Private key of the account'),
  private_key_id: z
    .string()
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'must contain printable ASCII characters only')
    .optional()
    .describe('Id of that key'),
  token_uri: z
    .url({ protocol: /^https$/ })
    .max(1_024)
    .default('https://oauth2.googleapis.com/token')
    .describe('Address that issues access tokens'),
})

const signIns: SignIn<'service_account' | 'external_account'>[] = [
  { name: 'service_account', required: ['service_account'] },
  { name: 'external_account', required: ['external_account'] },
]

const accounts = z
  .strictObject({
    service_account: serviceAccount
      .meta({ secret: true })
      .optional()
      .describe('Key file of a service account, as the JSON object that it contains; its other keys are ignored'),
    external_account: externalAccount
      .meta({ secret: true })
      .optional()
      .describe(
        'Configuration of workload identity federation, as the JSON object that Google Cloud offers for download; its other keys are ignored. No key is stored',
      ),
  })
  .superRefine((values, context) => checkOneSignIn(signIns, values, context, 'must contain either service_account or external_account'))

export const driveCredentials = withSignIns(accounts, signIns)

/** A plausible destination, for documentation. The key is not a key: replace it by that of the key file. */
export const driveExample = {
  config: { folder_id: '1dJ8kQxY3mVbT5nR7wZpL2sGhC9uFaEoK' },
  credentials: {
    service_account: {
      type: 'service_account',
      client_email: 'document-relay@acme-archive.iam.gserviceaccount.com',
      private_key: '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n',
      private_key_id: '4f2c9d1e8b7a6053',
      token_uri: 'https://oauth2.googleapis.com/token',
    },
  },
}

export type DriveConfig = z.output<typeof driveConfig>
export type DriveCredentials = z.output<typeof driveCredentials>
export type ServiceAccount = z.output<typeof serviceAccount>
