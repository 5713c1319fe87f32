import { z } from 'zod'
import { caCertificate } from './ca-certificate.ts'
import { entraCredentials } from './entra-token.ts'
import { keyPrefix, plainUrl } from './fields.ts'

export const blobConfig = z.strictObject({
  account_url: plainUrl
    .refine((url) => !URL.canParse(url) || /^\/[^/]*\/?$/.test(new URL(url).pathname), 'names the account only, without container')
    .describe(
      'Address of the storage account: https://NAME.blob.core.windows.net, or that of another cloud (usgovcloudapi.net, chinacloudapi.cn), a private endpoint, or an emulator (http://HOST:PORT/NAME)',
    ),
  container: z
    .string()
    .min(3)
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'is no container name')
    .describe('Container; it must exist'),
  prefix: keyPrefix.describe('Put before every name as it is; a folder ends with a slash'),
  ca_certificate: caCertificate,
})

export const blobCredentials = z
  .strictObject({
    account_key: z
      .string()
      .max(1_024)
      .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'is no base64')
      .meta({ secret: true })
      .optional()
      .describe(
        'Key of the storage account. It signs for the account that account_url names in its host, so a custom domain needs one of the other ways',
      ),
    sas_token: z
      .string()
      .max(4_096)
      .regex(/^\??[!-"$->@-~]*\bsig=[!-"$->@-~]+$/, 'is no SAS token: the part of a SAS address after its question mark')
      .meta({ secret: true })
      .optional()
      .describe('Shared access signature for the container: the part of a SAS address after its question mark'),
    tenant_id: entraCredentials.tenant_id.optional(),
    client_id: entraCredentials.client_id.optional(),
    client_secret: entraCredentials.client_secret.optional(),
  })
  .superRefine((credentials, context) => {
    const ways = [['account_key'], ['sas_token'], ['tenant_id', 'client_id', 'client_secret']] as const
    const used = ways.filter((keys) => keys.some((key) => credentials[key] !== undefined))
    if (used.length !== 1) {
      context.addIssue({ code: 'custom', message: 'need one of account_key, sas_token, or tenant_id with client_id and client_secret' })
    }
    for (const keys of used) {
      for (const key of keys.filter((each) => credentials[each] === undefined)) {
        context.addIssue({ code: 'custom', path: [key], message: `is missing: ${keys.join(', ')} belong together` })
      }
    }
  })

export type BlobConfig = z.output<typeof blobConfig>
export type BlobCredentials = z.output<typeof blobCredentials>

/** Everything of the credentials that must not come back in an answer. */
export const secretsOf = ({ account_key: key, sas_token: sas, client_secret: secret }: BlobCredentials): string[] => {
  const signature = sas === undefined ? undefined : (new URLSearchParams(sas).get('sig') ?? undefined)
  return [key, sas, signature, secret].filter((text) => text !== undefined)
}
