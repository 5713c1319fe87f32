import { createPrivateKey, X509Certificate } from 'node:crypto'
import { SignJWT } from 'jose'
import { z } from 'zod'
import { newId } from '../../base/ids.ts'
import type { AttemptContext, DeliveryError } from '../connector.ts'
import { createAccessTokens, createTokenCache, isFinalRefusal, noToken, requestAccessToken, type AccessTokens } from './access-tokens.ts'
import { checkClientCertificate, clientCertificate } from './client-certificate.ts'
import { parseObject, type CloudResponse, type RequestContext } from './cloud-api.ts'
import { createReadTokenFile, tokenFilePath, type ReadTokenFile } from './token-files.ts'

const identifier = (maxCharacters: number) =>
  z
    .string()
    .min(1)
    .max(maxCharacters)
    .regex(/^[A-Za-z0-9][A-Za-z0-9.-]*$/, 'must be an id or a domain name')

/** The credentials of an application registered in Microsoft Entra, for every kind that signs in there. See `entraSignIns`. */
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
    .optional()
    .describe('Value of a client secret, not its id'),
  client_certificate: clientCertificate.client_certificate.describe(
    'PEM certificate that is registered for the application instead of a secret: RSA, followed by the intermediate ones if Entra needs them',
  ),
  client_key: clientCertificate.client_key,
  federated_token_file: tokenFilePath
    .optional()
    .describe(
      'Path of a file on the workers with a token that the application trusts by a federated credential, such as one of Kubernetes. It is read again for each sign-in. The operator must allow its directory in RELAY_TOKEN_FILE_ROOTS',
    ),
}

type EntraCredentials = { [Key in keyof typeof entraCredentials]?: z.output<(typeof entraCredentials)[Key]> }

/** The ways in which an application signs in at Entra. */
export const entraSignIns = [
  { name: 'entra', required: ['tenant_id', 'client_id', 'client_secret'] },
  { name: 'entra_certificate', required: ['tenant_id', 'client_id', 'client_certificate', 'client_key'] },
  { name: 'entra_federated', required: ['tenant_id', 'client_id', 'federated_token_file'] },
] as const

/** Adds an issue for a certificate with which Entra issues no token. */
export const checkEntraCertificate = (credentials: EntraCredentials, context: z.RefinementCtx): void => {
  const { client_certificate: certificate, client_key: key } = credentials
  if (certificate === undefined && key === undefined) return
  checkClientCertificate(credentials, context)
  if (key !== undefined && isOtherThanRsa(key)) {
    context.addIssue({ code: 'custom', path: ['client_key'], message: 'must be an RSA key: Entra accepts no other for a certificate' })
  }
}

const isOtherThanRsa = (pem: string): boolean => {
  try {
    return createPrivateKey(pem).asymmetricKeyType !== 'rsa'
  } catch {
    // Reported as no private key.
    return false
  }
}

/** The proof of who an application is. */
type EntraProof = { secret: string } | { certificate: string; key: string } | { tokenFile: string; workspace: string }

export interface EntraPrincipal {
  tenantId: string
  clientId: string
  proof: EntraProof
  /** An https address, such as `https://login.microsoftonline.com`. */
  authorityHost: string
  /** The service that the token is for, for example `https://graph.microsoft.com/.default`. */
  scope: string
}

export type EntraTokens = AccessTokens<EntraPrincipal>

/**
 * Returns the application of the credentials, if they contain one.
 * @param service where it signs in, and the service that the token is for
 * @param workspace decides which files with tokens it may use
 */
export const entraPrincipalOf = (
  credentials: EntraCredentials,
  service: Pick<EntraPrincipal, 'authorityHost' | 'scope'>,
  { workspace }: Pick<AttemptContext, 'workspace'>,
): EntraPrincipal | undefined => {
  const { tenant_id: tenantId, client_id: clientId } = credentials
  const proof = proofIn(credentials, workspace)
  if (tenantId === undefined || clientId === undefined || proof === undefined) return undefined
  const { authorityHost, scope } = service
  return { tenantId, clientId, proof, authorityHost, scope }
}

const proofIn = (credentials: EntraCredentials, workspace: string): EntraProof | undefined => {
  const { client_secret: secret, client_certificate: certificate, client_key: key, federated_token_file: tokenFile } = credentials
  if (secret !== undefined) return { secret }
  if (certificate !== undefined && key !== undefined) return { certificate, key }
  return tokenFile === undefined ? undefined : { tokenFile, workspace }
}

/** Returns every string of the credentials that must not appear in a message. */
export const entraSecretsOf = ({ client_secret: secret, client_key: key }: EntraCredentials): string[] =>
  [secret, key].filter((text) => text !== undefined)

const requestToken = async (principal: EntraPrincipal, context: RequestContext, readTokenFile: ReadTokenFile) => {
  const { tenantId, clientId, authorityHost, scope } = principal
  const endpoint = `${authorityHost}/${tenantId}/oauth2/v2.0/token`
  return requestAccessToken(
    endpoint,
    { grant_type: 'client_credentials', client_id: clientId, scope, ...(await proofOf(principal, endpoint, readTokenFile)) },
    { toError: (response) => tokenError(response, principal) },
    context,
  )
}

const jwtBearer = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Returns the part of a token request that proves who sends it. */
const proofOf = async (
  { clientId, proof }: EntraPrincipal,
  audience: string,
  readTokenFile: ReadTokenFile,
): Promise<Record<string, string>> => {
  if ('secret' in proof) return { client_secret: proof.secret }
  // The other system renews the file.
  const assertion =
    'tokenFile' in proof ? await readTokenFile(proof.tokenFile, proof.workspace) : await signedAssertion(clientId, proof, audience)
  return { client_assertion_type: jwtBearer, client_assertion: assertion }
}

// Entra advises five to ten minutes.
const assertionLifetime = '10m'

/** https://learn.microsoft.com/entra/identity-platform/certificate-credentials */
const signedAssertion = (clientId: string, { certificate, key }: { certificate: string; key: string }, audience: string): Promise<string> =>
  new SignJWT()
    .setProtectedHeader({ alg: 'PS256', typ: 'JWT', 'x5t#S256': thumbprintOf(certificate) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setJti(newId())
    .setIssuedAt()
    .setNotBefore('0s')
    .setExpirationTime(assertionLifetime)
    .sign(createPrivateKey(key))

/** The first certificate of the text is that of the application. */
const thumbprintOf = (pem: string) => Buffer.from(new X509Certificate(pem).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')

/** Gives out tokens for applications (client credentials flow). */
export const createEntraTokens = (cache = createTokenCache(), readTokenFile = createReadTokenFile([])): EntraTokens =>
  createAccessTokens(cache, 'entra', (principal: EntraPrincipal, context) => requestToken(principal, context, readTokenFile))

// Remedies by Entra's own error code.
const corrections: Record<string, string> = {
  '7000215': 'client_secret is wrong; enter the value of a secret of this application, not its id',
  '7000222': 'client_secret has expired; create a new one for this application',
  '700027': 'client_certificate is not registered for this application, or has expired; register it, or enter the one that is',
  '1000502': 'client_certificate has expired; register a new one for this application',
  '70021': 'the application has no federated credential for issuer, subject and audience of the token in federated_token_file; add it',
  '700211': 'the application has no federated credential for the issuer of the token in federated_token_file; add it',
  '700212':
    'the application has no federated credential for the audience of the token in federated_token_file; project it with the audience api://AzureADTokenExchange',
  '700213': 'the application has no federated credential for the subject of the token in federated_token_file; add it',
  '700016': 'client_id is no application of this tenant; correct client_id or tenant_id, or choose the cloud of the tenant',
  '7000112': 'the application is disabled in this tenant; enable it',
  '90002': 'tenant_id is no tenant of this cloud; correct tenant_id, or choose the cloud of the tenant',
  '900023': 'tenant_id is no tenant; correct it',
  '900382': 'the tenant belongs to another cloud; choose that',
  '500011': 'the tenant does not know the service; choose the cloud of the tenant',
}

// The assertion is not valid yet, or no longer: the clocks differ. The others are load, limits, and transient faults by Entra's own description.
const passing = new Map([
  ['700024', "the relay's clock differs from that of Entra; set the clock"],
  ['50196', 'the application has asked too often'],
  ['90006', 'it has a transient fault'],
  ['90024', 'the application has asked too often'],
  ['90025', 'it could not answer in time'],
  ['90033', 'it has a transient fault'],
  ['90055', 'the tenant has asked too often'],
])

const tokenError = (response: CloudResponse, { tenantId }: EntraPrincipal): DeliveryError => {
  const { error_description: description } = parseObject(response.text)
  const [firstLine = ''] = (typeof description === 'string' ? description : '').split(/\r?\n/)
  const code = /AADSTS(\d+)/.exec(firstLine)?.[1] ?? ''
  const reason = passing.get(code)
  const isFinal = isFinalRefusal(response) && reason === undefined
  const correction = corrections[code] ?? 'correct tenant_id, client_id and what proves that the application sends it'
  const refused = `Entra issued no token for tenant ${tenantId}: ${correction}${firstLine && ` (${firstLine})`}`
  const because = reason === undefined ? '' : `, because ${reason}`
  const answered = `Entra answered ${response.status} to the token request${because}${firstLine && `: ${firstLine}`}`
  return noToken(response, answered, isFinal ? refused : undefined)
}
