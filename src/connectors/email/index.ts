import type { Connector } from '../connector.ts'
import { emailConfig, emailCredentials, emailExample, type EmailConfig, type EmailCredentials } from './schema.ts'

// Imports nodemailer, which costs a process 22 MiB and 0.11 CPU-s.
const load = () => import('./deliver.ts')

/** Mailboxes. */
export const email: Connector<EmailConfig, EmailCredentials> = {
  kind: 'email',
  isMessage: true,
  config: emailConfig,
  credentials: emailCredentials,
  boundKeys: ['host', 'port', 'tls', 'ca_certificate'],
  example: emailExample,
  deliver: async (...attempt) => (await load()).deliver(...attempt),
  probe: async (...attempt) => (await load()).probe(...attempt),
  sendNotice: async (...attempt) => (await load()).sendNotice(...attempt),
}
