import { z } from 'zod'
import { namesIn, placeholders, unknownPlaceholder } from '../domain/template.ts'
import { caCertificate } from './ca-certificate.ts'
import { hostName, plainText, tcpPort } from './fields.ts'

const MiB = 1024 * 1024
// what every server must take (RFC 5321, 4.5.3.1.8)
const recipientsAtMost = 100

// of ASCII, and nothing that a header or a command could be ended with
const address = z.email().max(254)
const addresses = z.union([address, z.array(address).min(1).max(recipientsAtMost)])

/** What a subject may name: the placeholders of every template (`{doc_id}` and the like, which each mail fills in), and the file's name. */
const subjectPlaceholders = [...placeholders, 'file_name']

const subjectTemplate = z
  .string()
  .min(1)
  .max(500)
  .regex(/^\P{Cc}*$/u, 'may hold no control characters')
  .superRefine((template, context) => {
    const message = unknownPlaceholder(namesIn(template), subjectPlaceholders)
    if (message) context.addIssue({ code: 'custom', message })
  })

export const emailConfig = z.strictObject({
  host: hostName.describe('Host name or address of the SMTP server'),
  port: tcpPort.optional().describe('TCP port; 587, with tls implicit 465, with none 25'),
  tls: z
    .enum(['starttls', 'implicit', 'none'])
    .default('starttls')
    .describe(
      'starttls: the connection must change over to TLS before anything is said; implicit: it begins with TLS; none: everybody on the way can read along, and a password is not sent',
    ),
  from: address.describe('Sender, an address without a name'),
  to: addresses.describe('One recipient or an array of up to 100'),
  cc: addresses.optional().describe('Further recipients, likewise'),
  subject_template: subjectTemplate
    .default('Document {doc_id} ({comp_id}) from {repo_id}')
    .describe(`Subject. Placeholders: ${subjectPlaceholders.join(', ')}`),
  max_attachment_bytes: z
    .int()
    .min(0)
    .default(10 * MiB)
    .describe('A larger document is not attached: the mail holds a link to it. Sent in base64, it takes up a third more'),
  ca_certificate: caCertificate,
})

// the base64 of a longer one would not fit into a line that every server takes
const credential = plainText(512)

export const emailCredentials = z
  .strictObject({
    username: credential.optional().describe('Account, where the server asks for one'),
    password: credential.meta({ secret: true }).optional().describe('Its password'),
  })
  .refine(
    ({ username, password }) => (username === undefined) === (password === undefined),
    'need username and password together, or neither',
  )

export type EmailConfig = z.output<typeof emailConfig>
export type EmailCredentials = z.output<typeof emailCredentials>

export const recipientsOf = ({ to, cc = [] }: EmailConfig): string[] => [...new Set([to, cc].flat())]

/** Where a server listens, where the destination does not say. */
export const portOf = ({ port, tls }: EmailConfig): number => port ?? { starttls: 587, implicit: 465, none: 25 }[tls]
