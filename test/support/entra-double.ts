import { textOf, type DoubleRequest, type DoubleResponse } from './double.ts'

export interface EntraApplication {
  tenantId: string
  clientId: string
  clientSecret: string
  scope: string
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
      if (form.get('client_secret') !== application.clientSecret) {
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
