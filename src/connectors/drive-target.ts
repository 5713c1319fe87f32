import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'
import { caCertificate } from './ca-certificate.ts'

export const driveConfig = z.strictObject({
  folder_id: z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9_-]+$/, "is the last part of the folder's address, not the address")
    .describe(
      "Folder that documents are put into: the last part of its address, https://drive.google.com/drive/folders/FOLDER_ID. A shared drive's own id is a folder too",
    ),
  subject: z
    .email()
    .max(255)
    .optional()
    .describe(
      'User in whose name documents are put there, by domain-wide delegation; the files are theirs then, and count against their storage',
    ),
  ca_certificate: caCertificate,
})

const isRsaKey = (pem: string) => {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

// the key file is Google's, and may come to hold more than we need: its other keys are passed over, and not kept apart
const serviceAccount = z.object({
  type: z
    .literal('service_account', 'must be service_account: it is the key file of another kind of account')
    .describe('What the key file is for'),
  client_email: z
    .string()
    .min(3)
    .max(320)
    .regex(/^\S+@\S+$/, 'is no address')
    .describe('Address of the account'),
  private_key: z.string().max(20_000).refine(isRsaKey, 'is no RSA private key in PEM form').meta({ secret: true }).describe('Its key'),
  private_key_id: z
    .string()
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'may hold printable ASCII characters only')
    .optional()
    .describe('Which of its keys that is'),
  token_uri: z
    .url({ protocol: /^https$/ })
    .max(1_024)
    .default('https://oauth2.googleapis.com/token')
    .describe('Where tokens are asked for'),
})

export const driveCredentials = z.strictObject({
  service_account: serviceAccount
    .meta({ secret: true })
    .describe('The key file of a service account, as the object it holds; further keys of it may stay'),
})

export type DriveConfig = z.output<typeof driveConfig>
export type DriveCredentials = z.output<typeof driveCredentials>
export type ServiceAccount = z.output<typeof serviceAccount>
