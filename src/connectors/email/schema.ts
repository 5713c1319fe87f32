import { z } from 'zod'
import { placeholdersIn, placeholders, unknownPlaceholder } from '../../domain/template.ts'
import { caCertificate, hostName, plainText, tcpPort } from '../shared/schema-fields.ts'

const MiB = 1024 * 1024
// The number that every server must accept (RFC 5321, 4.5.3.1.8).
const maxRecipients = 100

// ASCII only, without characters that could end a header or a command.
const address = z.email().max(254)
const addresses = z.union([
  address.meta({ title: 'one address' }),
  z.array(address).min(1).max(maxRecipients).meta({ title: 'several addresses' }),
])

/** The placeholders of a subject: those of every template, such as `{doc_id}`, and the name of the file. */
const subjectPlaceholders = [...placeholders, 'file_name']

const subjectTemplate = z
  .string()
  .min(1)
  .max(500)
  .regex(/^\P{Cc}*$/u, 'must not contain control characters')
  .superRefine((template, context) => {
    const message = unknownPlaceholder(placeholdersIn(template), subjectPlaceholders)
    if (message) context.addIssue({ code: 'custom', message })
  })

export const emailConfig = z.strictObject({
  host: hostName.describe('Host name or address of the SMTP server'),
  port: tcpPort.optional().describe('TCP port. Default: 587; 465 with tls implicit; 25 with tls none'),
  tls: z
    .enum(['starttls', 'implicit', 'none'])
    .default('starttls')
    .describe(
      'starttls: the connection switches to TLS before login and mail; implicit: the connection starts with TLS; none: no encryption, and a password is sent to allowed private addresses only',
    ),
  from: address.describe('Sender: an address without a display name'),
  to: addresses.describe('Recipient, or an array of up to 100'),
  cc: addresses.optional().describe('Further recipients, in the same form'),
  subject_template: subjectTemplate
    .default('Document {doc_id} ({comp_id}) from {repo_id}')
    .describe(`Subject. Placeholders: ${subjectPlaceholders.join(', ')}`),
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

export const emailCredentials = z
  .strictObject({
    username: credential.optional().describe('Account, if the server requires a login'),
    password: credential.meta({ secret: true }).optional().describe('Password of the account'),
  })
  .refine(
    ({ username, password }) => (username === undefined) === (password === undefined),
    'must contain username and password together, or neither',
  )

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
