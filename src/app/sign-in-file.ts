import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { SignInSettings } from '../access/people.ts'
import { workspaceNamePattern } from '../base/workspace-name.ts'
import { reference } from '../config/references.ts'
import { caCertificate } from '../connectors/shared/schema-fields.ts'
import { keyLevels } from '../security/levels.ts'
import { readWorkspaceName } from '../workspace/administration.ts'
import { readReferencesOf, readSettingsFile } from './settings-file.ts'

const text = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^\S(.*\S)?$/, 'must not be empty, nor begin or end with a space')

const isIssuer = (value: string) => {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return protocol === 'https:' && `${username}${password}${search}${hash}` === ''
}

/** The file of RELAY_OIDC_FILE: the OpenID provider by which people sign in to the console, and what each of them may do. */
const signInFile = z.strictObject({
  name: text(60),
  issuer: z.string().max(1_000).refine(isIssuer, 'must be a URL that begins with https:// and has neither a user nor a query'),
  client_id: text(255),
  client_secret: reference,
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'must be a scope'))
    .max(50)
    .default(['openid', 'profile', 'email'])
    .refine((scopes) => scopes.includes('openid'), 'must contain openid'),
  claim: text(200).default('groups'),
  ca_certificate: caCertificate,
  access: z
    .array(
      z.strictObject({
        value: text(1_000),
        workspace: z.string().regex(workspaceNamePattern, 'must be user/workspace'),
        level: z.enum(keyLevels),
      }),
    )
    .min(1)
    .max(1_000),
})

// 72 bits: two lines of one file have the same id with a probability below 10^-15.
const ruleIdCharacters = 12

/** @throws `UserError` that says what is wrong, without a secret */
export const readSignInSettings = async (path: string, variables: NodeJS.ProcessEnv = process.env): Promise<SignInSettings> => {
  const { content, folder, refuse } = await readSettingsFile('RELAY_OIDC_FILE', path, signInFile)
  const { name, issuer, client_id: clientId, scopes, claim, ca_certificate: authority, access } = content
  const { client_secret: clientSecret } = await readReferencesOf({ client_secret: content.client_secret }, { folder, variables, refuse })
  const rules = access.map(({ value, workspace, level }) => {
    const digest = createHash('sha256')
      .update(JSON.stringify([issuer, claim, value, workspace, level]))
      .digest('base64url')
    return { id: digest.slice(0, ruleIdCharacters), value, ...readWorkspaceName(workspace), level }
  })
  return { name, provider: { issuer, clientId, clientSecret: clientSecret!, scopes, claim, caCertificate: authority }, rules }
}
