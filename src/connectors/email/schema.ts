import { z } from 'zod'
import { placeholdersIn, placeholders, unknownPlaceholder } from '../../domain/template.ts'
import type { clientCertificate } from '../shared/client-certificate.ts'
import { clientCredentials, optionalForToken, requiredForToken } from '../shared/client-credentials.ts'
import { checkEntraCertificate, entraCredentials } from '../shared/entra-tokens.ts'
import { caCertificate, hostName, listOf, plainText, tcpPort } from '../shared/schema-fields.ts'
import { noSignIn, withSignIns, type SignIn } from '../shared/sign-in.ts'

const MiB = 1024 * 1024
// The number that every server must accept (RFC 5321, 4.5.3.1.8).
const maxRecipients = 100

// ASCII only, without characters that could end a header or a command.
const address = z.email().max(254)
const addresses = z.union([
  address.meta({ title: 'one address' }),
  z.array(address).min(1).max(maxRecipients).meta({ title: 'several addresses' }),
])

const subjectTemplate = z
  .string()
  .min(1)
  .max(500)
  .regex(/^\P{Cc}*$/u, 'must not contain control characters')
  .superRefine((template, context) => {
    const message = unknownPlaceholder(placeholdersIn(template), placeholders)
    if (message) context.addIssue({ code: 'custom', message })
  })

// RFC 5321, 4.1.1.1.
const heloName = z
  .string()
  .max(255)
  .regex(
    /^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*|\[[A-Za-z0-9:.]+\])$/,
    'must be a host name, or an address in brackets',
  )

export const emailConfig = z.strictObject({
  host: hostName.describe('Host name or address of the SMTP server'),
  port: tcpPort.optional().describe('TCP port. Default: 587; 465 with tls implicit; 25 with tls none'),
  tls: z
    .enum(['starttls', 'implicit', 'none'])
    .default('starttls')
    .describe(
      'starttls: the connection switches to TLS before login and mail; implicit: the connection starts with TLS; none: no encryption, and credentials are sent to allowed private addresses only',
    ),
  helo_name: heloName
    .optional()
    .describe(
      'Name by which the relay greets the server (EHLO): a qualified host name, or an address in brackets. Default: the qualified name of the worker, or its address',
    ),
  from: address.describe('Sender: an address without a display name'),
  to: addresses.describe('Recipient, or an array of up to 100'),
  cc: addresses.optional().describe('Further recipients, in the same form'),
  subject_template: subjectTemplate
    .default('Document {doc_id} ({comp_id}) from {repo_id}')
    .describe(`Subject. Placeholders: ${placeholders.join(', ')}`),
  max_attachment_bytes: z
    .int()
    .min(0)
    .default(10 * MiB)
    .describe(
      'A larger document is not attached; the mail contains a link to it. An attachment is a third larger in the mail, because of base64',
    ),
  ca_certificate: caCertificate,
})

// In base64, a longer one would exceed the line length that every server accepts.
const credential = plainText(512)

type LoginKey =
  | 'username'
  | 'password'
  | 'tenant_id'
  | 'federated_token_file'
  | keyof typeof clientCredentials
  | keyof typeof clientCertificate

/** The ways to log in, each with the key by which it is recognised unless another way is that has the same key. */
const logins: (SignIn<LoginKey> & { by: LoginKey })[] = [
  { name: 'password', by: 'password', required: ['username', 'password'] },
  {
    name: 'entra',
    by: 'tenant_id',
    required: ['username', 'tenant_id', 'client_id', 'client_secret'],
    optional: ['token_ca_certificate'],
  },
  {
    name: 'entra_certificate',
    by: 'client_certificate',
    required: ['username', 'tenant_id', 'client_id', 'client_certificate', 'client_key'],
    optional: ['token_ca_certificate'],
  },
  {
    name: 'entra_federated',
    by: 'federated_token_file',
    required: ['username', 'tenant_id', 'client_id', 'federated_token_file'],
    optional: ['token_ca_certificate'],
  },
  { name: 'oauth2', by: 'token_url', required: ['username', ...requiredForToken], optional: optionalForToken },
]

const loginCredentials = z
  .strictObject({
    username: credential
      .optional()
      .describe('Account, if the server requires a login: with tokens, the mailbox that the client may send as'),
    password: credential.meta({ secret: true }).optional().describe('Password of the account'),
    tenant_id: entraCredentials.tenant_id
      .optional()
      .describe('Directory (tenant) id, or a domain of the tenant: Microsoft Entra issues the tokens, for Exchange Online'),
    ...clientCredentials,
    client_certificate: entraCredentials.client_certificate,
    client_key: entraCredentials.client_key,
    federated_token_file: entraCredentials.federated_token_file,
  })
  .superRefine((credentials, context) => {
    const present = Object.keys(credentials).filter((key): key is LoginKey => credentials[key as LoginKey] !== undefined)
    if (present.length === 0) return
    const named = logins.filter(({ by }) => present.includes(by))
    const [login, another] = named.filter(({ by }) => !named.some((other) => other.by !== by && other.required.includes(by)))
    if (!login || another) {
      context.addIssue({
        code: 'custom',
        message:
          'must contain username with one of: password; tenant_id and client_id with client_secret, with client_certificate and client_key, or with federated_token_file; token_url, client_id and client_secret',
      })
      return
    }
    const { by, required: needs, optional: more = [] } = login
    for (const key of needs.filter((each) => !present.includes(each))) {
      context.addIssue({ code: 'custom', path: [key], message: `is missing; ${listOf(needs)} must be set together` })
    }
    for (const key of present.filter((each) => !needs.includes(each) && !more.includes(each))) {
      context.addIssue({ code: 'custom', path: [key], message: `must not be set together with ${by}` })
    }
    checkEntraCertificate(credentials, context)
  })

export const emailCredentials = withSignIns(loginCredentials, [...logins, noSignIn])

/** A plausible destination, for documentation. */
export const emailExample = {
  config: { host: 'smtp.example.com', port: 587, from: 'relay@example.com', to: ['invoices@example.com'] },
  credentials: { username: 'relay@example.com', password: 'correct-horse-battery-staple' },
}

export type EmailConfig = z.output<typeof emailConfig>
export type EmailCredentials = z.output<typeof emailCredentials>

export const recipientsOf = ({ to, cc = [] }: EmailConfig): string[] => [...new Set([to, cc].flat())]

/** Returns the configured port, or the default port of the TLS mode. */
export const portOf = ({ port, tls }: EmailConfig): number => port ?? { starttls: 587, implicit: 465, none: 25 }[tls]
