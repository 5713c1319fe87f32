import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'
import { caCertificate } from './ca-certificate.ts'

export const driveConfig = z.strictObject({
  folder_id: z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9_-]+$/, "is the last part of the folder's address, not the address")
    .describe("Folder that documents are put into: the last part of its address, or a shared drive's own id"),
  subject: z
    .email()
    .max(255)
    .optional()
    .describe('User in whose name documents are put there, by domain-wide delegation; the files are theirs then'),
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
  type: z.literal('service_account', 'must be service_account: it is the key file of another kind of account'),
  client_email: z
    .string()
    .min(3)
    .max(320)
    .regex(/^\S+@\S+$/, 'is no address'),
  private_key: z.string().max(20_000).refine(isRsaKey, 'is no RSA private key in PEM form').meta({ secret: true }),
  private_key_id: z
    .string()
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'may hold printable ASCII characters only')
    .optional(),
  token_uri: z
    .url({ protocol: /^https$/ })
    .max(1_024)
    .default('https://oauth2.googleapis.com/token'),
})

export const driveCredentials = z.strictObject({
  service_account: serviceAccount.meta({ secret: true }).describe('The key file of a service account, as an object'),
})

export type DriveConfig = z.output<typeof driveConfig>
export type DriveCredentials = z.output<typeof driveCredentials>
export type ServiceAccount = z.output<typeof serviceAccount>
