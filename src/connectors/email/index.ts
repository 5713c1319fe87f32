import type { Connector } from '../connector.ts'
import { createTokenCache } from '../shared/access-tokens.ts'
import { certificateExpiresAt } from '../shared/client-certificate.ts'
import { createEntraTokens } from '../shared/entra-tokens.ts'
import { createLogins } from './login.ts'
import { emailConfig, emailCredentials, emailExample, type EmailConfig, type EmailCredentials } from './schema.ts'

// Imports nodemailer, which costs a process 22 MiB and 0.11 CPU-s.
const load = () => import('./deliver.ts')

/**
 * Mailboxes.
 * @param entraAuthority the sign-in address of Microsoft Entra; only tests replace it
 */
export const createEmail = (
  tokenCache = createTokenCache(),
  entraTokens = createEntraTokens(tokenCache),
  entraAuthority?: string,
): Connector<EmailConfig, EmailCredentials> => {
  const logins = createLogins(tokenCache, entraTokens, entraAuthority)
  return {
    kind: 'email',
    isMessage: true,
    config: emailConfig,
    credentials: emailCredentials,
    // The addresses that issue tokens are among the credentials, which are saved as a whole.
    boundKeys: ['host', 'port', 'tls', 'ca_certificate'],
    credentialsExpireAt: certificateExpiresAt,
    example: emailExample,
    deliver: async (...attempt) => (await load()).deliver(logins, ...attempt),
    probe: async (...attempt) => (await load()).probe(logins, ...attempt),
    sendNotice: async (...attempt) => (await load()).sendNotice(logins, ...attempt),
  }
}
