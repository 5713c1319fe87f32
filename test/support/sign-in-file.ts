import { writeFile } from 'node:fs/promises'
import type { OpenIdServer } from './openid-provider.ts'

/** Writes the file of RELAY_OIDC_FILE for a provider, with the secret in a file beside it. */
export const writeSignInFile = async (
  path: string,
  { issuer, clientId, clientSecret, caCertificate }: OpenIdServer,
  changes: Record<string, unknown> & { access: object[] },
): Promise<string> => {
  await writeFile(`${path}.secret`, clientSecret)
  const file = {
    name: 'Example Corp',
    issuer,
    client_id: clientId,
    client_secret: { file: `${path}.secret` },
    scopes: ['openid', 'profile', 'email', 'groups'],
    ca_certificate: caCertificate,
    ...changes,
  }
  await writeFile(path, JSON.stringify(file))
  return path
}
