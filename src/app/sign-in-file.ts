import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import type { SignInSettings } from '../access/people.ts'
import { messageOf, UserError } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { workspaceNamePattern } from '../base/workspace-name.ts'
import { readReference, reference } from '../config/references.ts'
import { caCertificate } from '../connectors/shared/schema-fields.ts'
import { keyLevels } from '../security/levels.ts'
import { readWorkspaceName } from '../workspace/administration.ts'

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

const variable = 'RELAY_OIDC_FILE'

// 72 bits: two lines of one file have the same id with a probability below 10^-15.
const ruleIdCharacters = 12

/** @throws `UserError` that says what is wrong, without a secret */
export const readSignInSettings = async (path: string, variables: NodeJS.ProcessEnv = process.env): Promise<SignInSettings> => {
  const refuse = (problem: string) => new UserError(`${variable}: ${path} ${problem}`)
  const written = await readFile(path, 'utf8').catch((thrown: unknown) => {
    throw refuse(`cannot be read: ${messageOf(thrown)}`)
  })
  // The excerpt that `prettyErrors` adds to a message could contain a secret that was written into the file.
  const document = parseDocument(written, { prettyErrors: false })
  if (document.errors.length > 0) throw refuse(`is not valid YAML: ${document.errors[0]!.message}`)
  let content: unknown
  try {
    content = document.toJS()
  } catch {
    throw refuse('has an alias without an anchor, or too many aliases')
  }
  const parsed = signInFile.safeParse(content, plainMessages)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'} ${issue.message}`)
    throw refuse(`is invalid: ${issues.join('; ')}`)
  }
  const { name, issuer, client_id: clientId, scopes, claim, ca_certificate: authority, access } = parsed.data
  const secret = await readReference(parsed.data.client_secret, dirname(resolve(path)), variables)
  if ('message' in secret) throw refuse(`is invalid: client_secret: ${secret.message}`)
  const rules = access.map(({ value, workspace, level }) => {
    const digest = createHash('sha256')
      .update(JSON.stringify([issuer, claim, value, workspace, level]))
      .digest('base64url')
    return { id: digest.slice(0, ruleIdCharacters), value, ...readWorkspaceName(workspace), level }
  })
  return { name, provider: { issuer, clientId, clientSecret: secret.text, scopes, claim, caCertificate: authority }, rules }
}
