import { X509Certificate } from 'node:crypto'
import { jwtVerify } from 'jose'
import { textOf, type DoubleRequest, type DoubleResponse } from './double.ts'

export interface EntraApplication {
  tenantId: string
  clientId: string
  clientSecret: string
  scope: string
  /** PEM. Registered for the application, beside the secret. */
  certificate?: string
  /** The token that a federated credential of the application accepts. */
  federatedToken?: string
}

const jwtBearer = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** https://learn.microsoft.com/entra/identity-platform/certificate-credentials */
const assertionIssue = async (
  form: URLSearchParams,
  { clientId, certificate }: EntraApplication,
  tokenUrl: string,
): Promise<[code: number, text: string] | undefined> => {
  if (form.get('client_assertion_type') !== jwtBearer) return [900144, "The request body must contain 'client_assertion_type'."]
  if (certificate === undefined) return [700027, 'The certificate is not registered on application.']
  const registered = new X509Certificate(certificate)
  try {
    const { protectedHeader, payload } = await jwtVerify(form.get('client_assertion') ?? '', registered.publicKey, {
      algorithms: ['PS256'],
      audience: tokenUrl,
      issuer: clientId,
      subject: clientId,
      requiredClaims: ['jti', 'nbf', 'exp'],
    })
    const thumbprint = Buffer.from(registered.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
    if (protectedHeader['x5t#S256'] !== thumbprint) return [700027, 'The certificate is not registered on application.']
    return payload.exp! - payload.nbf! > 600 ? [700024, 'Client assertion is not within its valid time range.'] : undefined
  } catch (thrown) {
    const { code } = thrown as { code?: string }
    if (code === 'ERR_JWT_EXPIRED' || (thrown as { claim?: string }).claim === 'nbf')
      return [700024, 'Client assertion is not within its valid time range.']
    return [700027, 'Client assertion failed signature validation.']
  }
}

/**
 * Creates a contract double of Microsoft Entra's token endpoint (client credentials only), written from its
 * documentation, since the service cannot be run for tests. Its error codes are those of the service.
 */
export const createEntraDouble = (application: EntraApplication) => {
  const valid = new Set<string>()
  const refused = (status: number, error: string, code: number, text: string): DoubleResponse => ({
    status,
    json: { error, error_description: `AADSTS${code}: ${text} Trace ID: 0 Correlation ID: 0\r\nTimestamp: 0`, error_codes: [code] },
  })
  return {
    /** Tokens are valid as long as the double runs, unless `revoke` is called. */
    accepts: (authorization: string | undefined) => valid.has(authorization ?? ''),
    revoke: () => valid.clear(),
    answer: async ({ method, path, body, headers }: DoubleRequest): Promise<DoubleResponse | undefined> => {
      const tenant = /^\/([^/]+)\/oauth2\/v2\.0\/token$/.exec(path)?.[1]
      if (method !== 'POST' || tenant === undefined) return undefined
      if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded'))
        return refused(400, 'invalid_request', 900144, 'No form.')
      const form = new URLSearchParams(await textOf(body))
      if (tenant !== application.tenantId) return refused(400, 'invalid_request', 90002, `Tenant '${tenant}' not found.`)
      if (form.get('grant_type') !== 'client_credentials') return refused(400, 'unsupported_grant_type', 70003, 'Unsupported grant type.')
      if (form.get('client_id') !== application.clientId) return refused(400, 'unauthorized_client', 700016, 'Application not found.')
      const assertion = form.get('client_assertion')
      if (assertion !== null && assertion.startsWith('federated')) {
        if (assertion !== application.federatedToken) return refused(401, 'invalid_client', 700213, `No matching record for ${assertion}.`)
      } else if (assertion !== null) {
        const refusal = await assertionIssue(form, application, `https://${headers.host}${path}`)
        if (refusal) return refused(401, 'invalid_client', ...refusal)
      } else if (form.get('client_secret') !== application.clientSecret) {
        return refused(401, 'invalid_client', 7000215, 'Invalid client secret provided.')
      }
      if (!form.get('scope')?.split(' ').includes(application.scope))
        return refused(400, 'invalid_scope', 1002012, 'The scope is not valid.')
      const token = `entra-token-${valid.size + 1}`
      valid.add(`Bearer ${token}`)
      return { status: 200, json: { token_type: 'Bearer', expires_in: 3_599, ext_expires_in: 3_599, access_token: token } }
    },
  }
}
