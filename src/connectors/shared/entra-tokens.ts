import { z } from 'zod'
import { DeliveryError } from '../connector.ts'
import { createAccessTokens, createTokenCache, requestAccessToken, type AccessTokens } from './access-tokens.ts'
import { parseObject, toTargetAnswer, type CloudResponse, type RequestContext } from './cloud-api.ts'
import { isPermanentStatus, retryAfterMs } from './http.ts'

const identifier = (maxCharacters: number) =>
  z
    .string()
    .min(1)
    .max(maxCharacters)
    .regex(/^[A-Za-z0-9][A-Za-z0-9.-]*$/, 'must be an id or a domain name')

/** The credentials of an application registered in Microsoft Entra, for every kind that signs in there. */
export const entraCredentials = {
  tenant_id: identifier(255)
    .refine((id) => !/^(common|organizations|consumers)$/i.test(id), 'must name one tenant')
    .describe('Directory (tenant) id, or a domain of the tenant'),
  client_id: identifier(64).describe('Application (client) id'),
  client_secret: z
    .string()
    .min(1)
    .max(1_024)
    .regex(/^[\x21-\x7e]+$/, 'must contain printable ASCII characters only')
    .meta({ secret: true })
    .describe('Value of a client secret, not its id'),
}

export interface EntraPrincipal {
  tenantId: string
  clientId: string
  clientSecret: string
  /** For example `https://login.microsoftonline.com`; always https. */
  authorityHost: string
  /** The service that the token is for, for example `https://graph.microsoft.com/.default`. */
  scope: string
}

export type EntraTokens = AccessTokens<EntraPrincipal>

const requestToken = (principal: EntraPrincipal, context: RequestContext) => {
  const { tenantId, clientId, clientSecret, authorityHost, scope } = principal
  return requestAccessToken(
    `${authorityHost}/${tenantId}/oauth2/v2.0/token`,
    { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret, scope },
    { toError: (response) => tokenError(response, principal) },
    context,
  )
}

/** Gives out tokens for applications (client credentials flow). */
export const createEntraTokens = (cache = createTokenCache()): EntraTokens => createAccessTokens(cache, 'entra', requestToken)

// By Entra's own error code.
const corrections: Record<string, string> = {
  '7000215': 'client_secret is wrong; enter the value of a secret of this application, not its id',
  '7000222': 'client_secret has expired; create a new one for this application',
  '700016': 'client_id is no application of this tenant; correct client_id or tenant_id, or choose the cloud of the tenant',
  '7000112': 'the application is disabled in this tenant; enable it',
  '90002': 'tenant_id is no tenant of this cloud; correct tenant_id, or choose the cloud of the tenant',
  '900023': 'tenant_id is no tenant; correct it',
  '900382': 'the tenant belongs to another cloud; choose that',
  '500011': 'the tenant does not know the service; choose the cloud of the tenant',
}

const tokenError = (response: CloudResponse, { tenantId }: EntraPrincipal): DeliveryError => {
  const { error_description: description } = parseObject(response.text)
  const [firstLine = ''] = (typeof description === 'string' ? description : '').split(/\r?\n/)
  const code = /AADSTS(\d+)/.exec(firstLine)?.[1]
  const answer = toTargetAnswer(response)
  if (isPermanentStatus(response.status)) {
    const correction = (code && corrections[code]) ?? 'correct tenant_id, client_id and client_secret'
    return new DeliveryError(
      'credentials_refused',
      `Entra issued no token for tenant ${tenantId}: ${correction}${firstLine && ` (${firstLine})`}`,
      { permanent: true, answer },
    )
  }
  return new DeliveryError(
    `http_${response.status}`,
    `Entra answered ${response.status} to the token request${firstLine && `: ${firstLine}`}`,
    {
      permanent: false,
      retryAfterMs: retryAfterMs(response.headers['retry-after'], new Date()),
      answer,
    },
  )
}
