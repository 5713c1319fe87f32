import { z } from 'zod'
import { checkEntraCertificate, entraCredentials, entraSecretsOf, entraSignIns } from '../shared/entra-tokens.ts'
import { retentionFields } from '../shared/retention.ts'
import { caCertificate, fileNames, keyPrefix, plainUrl } from '../shared/schema-fields.ts'
import { checkOneSignIn, withSignIns, type SignIn } from '../shared/sign-in.ts'

export const blobConfig = z.strictObject({
  account_url: plainUrl
    .refine(
      (url) => !URL.canParse(url) || /^\/[^/]*\/?$/.test(new URL(url).pathname),
      'must be the address of the account, without container',
    )
    .describe(
      'Address of the storage account: https://NAME.blob.core.windows.net, or the address in another cloud (usgovcloudapi.net, chinacloudapi.cn), of a private endpoint, or of an emulator (http://HOST:PORT/NAME)',
    ),
  container: z
    .string()
    .min(3)
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be a container name')
    .describe('Container; it must exist'),
  prefix: keyPrefix.describe('Prepended to every name unchanged; a folder ends with a slash'),
  file_names: fileNames,
  immutability_mode: z
    .enum(['unlocked', 'locked'])
    .optional()
    .describe('Mode of the retention. locked: nobody can shorten it. Default: unlocked'),
  ...retentionFields,
  ca_certificate: caCertificate,
})

type SignInKey = 'account_key' | 'sas_token' | keyof typeof entraCredentials

const signIns: SignIn<SignInKey>[] = [
  { name: 'account_key', required: ['account_key'] },
  { name: 'sas_token', required: ['sas_token'] },
  ...entraSignIns,
]

const accountCredentials = z
  .strictObject({
    account_key: z
      .string()
      .max(1_024)
      .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be base64')
      .meta({ secret: true })
      .optional()
      .describe(
        'Key of the storage account. It needs the account name in the host of account_url; with a custom domain use another method',
      ),
    sas_token: z
      .string()
      .max(4_096)
      .regex(
        /^\??[\x21\x22\x24-\x3e\x40-\x7e]*\bsig=[\x21\x22\x24-\x3e\x40-\x7e]+$/,
        'must be a SAS token: the part of a SAS address after the question mark',
      )
      .meta({ secret: true })
      .optional()
      .describe('Shared access signature for the container: the part of a SAS address after the question mark'),
    ...entraCredentials,
    tenant_id: entraCredentials.tenant_id.optional(),
    client_id: entraCredentials.client_id.optional(),
  })
  .superRefine((values, context) => {
    checkOneSignIn(
      signIns,
      values,
      context,
      'must contain exactly one of account_key, sas_token, or tenant_id and client_id with client_secret, with client_certificate and client_key, or with federated_token_file',
    )
    checkEntraCertificate(values, context)
  })

export const blobCredentials = withSignIns(accountCredentials, signIns)

/** A plausible destination, for documentation. */
export const blobExample = {
  config: { account_url: 'https://acmedocuments.blob.core.windows.net', container: 'invoices', prefix: 'sap/' },
  credentials: { account_key: 'ZmljdGl0aW91cy1rZXktb2YtYW4tZXhhbXBsZS1hY2NvdW50LW5vdC1hLXJlYWwtb25l' },
}

export type BlobConfig = z.output<typeof blobConfig>
export type BlobCredentials = z.output<typeof blobCredentials>

/** Returns every string of the credentials that must not appear in a message. */
export const secretsOf = (credentials: BlobCredentials): string[] => {
  const { account_key: key, sas_token: sas } = credentials
  const signature = sas === undefined ? undefined : (new URLSearchParams(sas).get('sig') ?? undefined)
  return [...[key, sas, signature].filter((text) => text !== undefined), ...entraSecretsOf(credentials)]
}
