import { ConfidentialClientApplication, type INetworkModule } from '@azure/msal-node'
import { z } from 'zod'
import { cloudCall, objectOf, targetAnswer, type CallContext, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'
import { isPermanentStatus, retryAfterMs } from './http-answer.ts'
import { toDeliveryError } from './network-error.ts'
import { createTokens, type AccessToken, type Tokens } from './tokens.ts'

const named = (maxCharacters: number) =>
  z
    .string()
    .min(1)
    .max(maxCharacters)
    .regex(/^[A-Za-z0-9][A-Za-z0-9.-]*$/, 'is an id or a domain name')

/** An application registered in Microsoft Entra, for the credentials of every kind that signs in there. */
export const entraCredentials = {
  tenant_id: named(255)
    .refine((id) => !/^(common|organizations|consumers)$/i.test(id), 'must name one tenant')
    .describe('Directory (tenant) id, or a domain of the tenant'),
  client_id: named(64).describe('Application (client) id'),
  client_secret: z
    .string()
    .min(1)
    .max(1_024)
    .regex(/^[\x21-\x7e]+$/, 'may hold printable ASCII characters only')
    .meta({ secret: true })
    .describe('Value of a client secret, not its id'),
}

export interface EntraPrincipal {
  tenantId: string
  clientId: string
  clientSecret: string
  /** Such as `https://login.microsoftonline.com`; always https. */
  authorityHost: string
  /** What the token is for, such as `https://graph.microsoft.com/.default`. */
  scope: string
}

export type EntraTokens = Tokens<EntraPrincipal>

const request = async (principal: EntraPrincipal, context: CallContext): Promise<AccessToken> => {
  const { tenantId, clientId, clientSecret, authorityHost, scope } = principal
  const authority = `${authorityHost}/${tenantId}`
  // the library tells neither status nor headers of a refusal, and nothing of a failure on the way
  let answer: CloudAnswer | undefined
  let failure: unknown
  const networkClient: INetworkModule = {
    sendGetRequestAsync: async () => {
      throw new Error('nothing is to be looked up')
    },
    sendPostRequestAsync: async (url, options = {}) => {
      try {
        answer = await cloudCall(url, { method: 'POST', headers: options.headers ?? {}, body: options.body ?? '' }, context)
      } catch (thrown) {
        failure = thrown
        throw thrown
      }
      const headers = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, String(value)]))
      return { status: answer.status, headers, body: objectOf(answer.text) as never }
    },
  }
  // made anew each time: what it calls out with ends with this attempt, and its own cache knows no bound
  const application = new ConfidentialClientApplication({
    auth: {
      clientId,
      clientSecret,
      authority,
      // the addresses are given, so that nothing is discovered by further requests
      knownAuthorities: [new URL(authorityHost).host],
      authorityMetadata: JSON.stringify({
        authorization_endpoint: `${authority}/oauth2/v2.0/authorize`,
        token_endpoint: `${authority}/oauth2/v2.0/token`,
        issuer: `${authority}/v2.0`,
        jwks_uri: `${authority}/discovery/v2.0/keys`,
      }),
    },
    system: {
      networkClient,
      // only the workflow tries again
      disableInternalRetries: true,
      loggerOptions: { loggerCallback: () => {}, piiLoggingEnabled: false },
    },
  })
  try {
    // a region named in the environment of the relay is not meant for a workspace's destination
    const result = await application.acquireTokenByClientCredential({ scopes: [scope], azureRegion: 'DisableMsalForceRegion' })
    if (result?.accessToken && result.expiresOn) return { token: result.accessToken, expiresAt: result.expiresOn }
    throw new Error('there is no token in the answer')
  } catch (thrown) {
    context.signal.throwIfAborted()
    if (failure !== undefined) throw toDeliveryError(failure, 'request_failed')
    if (answer === undefined || (answer.status >= 200 && answer.status < 300)) {
      throw new DeliveryError('token_unreadable', `${new URL(authorityHost).host} answered, but not with a token`, { cause: thrown })
    }
    throw refusal(answer, principal, thrown)
  }
}

/** Tokens for applications (client credentials). */
export const createEntraTokens = (): EntraTokens => createTokens(request)

// what an operator can correct, by the code Entra gives
const remedies: Record<string, string> = {
  '7000215': 'client_secret is wrong: enter the value of a secret of this application, not its id',
  '7000222': 'client_secret has expired: make a new one for this application',
  '700016': 'client_id names no application of this tenant: correct client_id, tenant_id or cloud',
  '7000112': 'the application is disabled in this tenant: enable it',
  '90002': 'tenant_id names no tenant of this cloud: correct tenant_id or cloud',
  '900023': 'tenant_id names no tenant: correct it',
  '900382': 'the tenant belongs to another cloud: correct cloud',
  '500011': 'the tenant does not know the service: correct cloud',
}

const refusal = (answer: CloudAnswer, { tenantId }: EntraPrincipal, cause: unknown): DeliveryError => {
  const { error_description: description } = objectOf(answer.text)
  const [said = ''] = (typeof description === 'string' ? description : '').split(/\r?\n/)
  const code = /AADSTS(\d+)/.exec(said)?.[1]
  if (isPermanentStatus(answer.status)) {
    const remedy = (code && remedies[code]) ?? 'correct tenant_id, client_id and client_secret'
    return new DeliveryError('credentials_refused', `Entra gave no token for tenant ${tenantId}: ${remedy}${said && ` (${said})`}`, {
      permanent: true,
      answer: targetAnswer(answer),
      cause,
    })
  }
  return new DeliveryError(`http_${answer.status}`, `Entra answered ${answer.status} to the request for a token${said && `: ${said}`}`, {
    retryAfterMs: retryAfterMs(answer.headers['retry-after'], new Date()),
    answer: targetAnswer(answer),
    cause,
  })
}
