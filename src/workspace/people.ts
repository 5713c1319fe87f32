import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { caCertificate } from '../connectors/shared/schema-fields.ts'
import type { Database } from '../db/database.ts'
import type { Actor } from '../security/api-keys.ts'
import { allows, keyLevels, type KeyLevel } from '../security/levels.ts'
import type { Claims, ProviderSettings } from '../security/oidc.ts'
import { readWorkspaceName, workspaceNamePattern } from './administration.ts'
import { readReference, reference } from './references.ts'

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

/** A line of the file: whose claim has the value may use the workspace with this level. */
interface AccessRule {
  /** Names the line in sealed sessions. Another issuer, claim, value, workspace or level has another id. */
  id: string
  value: string
  userSlug: string
  workspaceSlug: string
  level: KeyLevel
}

/** The provider, and the rules that map its claims to workspaces. */
export interface SignInSettings {
  /** The name that the sign-in page shows. */
  name: string
  provider: ProviderSettings
  rules: readonly AccessRule[]
}

/** Path to which the provider leads browsers back. */
export const callbackPath = '/console/sign-in/callback'

/** Returns the redirect URI, which has to be registered at the provider. @param baseUrl of the relay, as browsers see it */
export const redirectUriOf = (baseUrl: string): string => `${baseUrl.replace(/\/+$/, '')}${callbackPath}`

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

/** A person as a sealed session holds them. */
export interface Person {
  /** The claim `sub`, which no other person of the provider gets. */
  id: string
  /** For people: the e-mail address as a rule. */
  name: string
  /** The ids of the rules that give access, one for each workspace. */
  rules: string[]
}

/** A workspace that somebody may use. */
export interface WorkspaceAccess {
  userSlug: string
  workspaceSlug: string
  level: KeyLevel
}

// OpenID Connect limits it to 255 ASCII characters.
const subjectPattern = /^[\x20-\x7e]{1,255}$/
const nameMaxCharacters = 200
// The cookie of a session has at most 4 kB, and each rule takes 20 bytes of it.
const workspacesMax = 100

const nameOf = ({ email, email_verified: isVerified, preferred_username: userName, name, sub }: Claims): string => {
  const names = [isVerified === false ? undefined : email, userName, name, sub]
  const readable = names.filter((each): each is string => typeof each === 'string').map((each) => each.replaceAll(/\p{Cc}/gu, '').trim())
  return readable.find((each) => each !== '' && each.isWellFormed())?.slice(0, nameMaxCharacters) ?? sub
}

const nameOfWorkspace = ({ userSlug, workspaceSlug }: Pick<AccessRule, 'userSlug' | 'workspaceSlug'>) => `${userSlug}/${workspaceSlug}`

/** Returns the highest rule of each workspace, in the order of the file. */
const highestOf = (rules: readonly AccessRule[]): AccessRule[] => {
  const highest = new Map<string, AccessRule>()
  for (const rule of rules) {
    const other = highest.get(nameOfWorkspace(rule))
    if (!other || !allows(other.level, rule.level)) highest.set(nameOfWorkspace(rule), rule)
  }
  return [...highest.values()]
}

/** Returns the person of these claims. It has no rules if no claim gives access. */
export const personOf = (claims: Claims, { provider, rules }: Pick<SignInSettings, 'provider' | 'rules'>): Person | undefined => {
  if (!subjectPattern.test(claims.sub)) return undefined
  const values = new Set([claims[provider.claim]].flat())
  const matching = highestOf(rules.filter(({ value }) => values.has(value))).slice(0, workspacesMax)
  return { id: claims.sub, name: nameOf(claims), rules: matching.map(({ id }) => id) }
}

/** Creates the access of people who have signed in. It follows the rules of this process: a rule that is not in its file gives none. */
export const createPeople = (db: Database, { rules }: Pick<SignInSettings, 'rules'>) => {
  const rulesOf = (person: Person) => rules.filter(({ id }) => person.rules.includes(id))

  return {
    /** Lists the workspaces that a person may use and that exist, in the order of the file. */
    list: async (person: Person): Promise<WorkspaceAccess[]> => {
      const granted = highestOf(rulesOf(person))
      if (granted.length === 0) return []
      const names = granted.map(({ userSlug, workspaceSlug }) => [userSlug, workspaceSlug])
      const found: Omit<WorkspaceAccess, 'level'>[] = await db('workspaces')
        .select(['user_slug as userSlug', 'workspace_slug as workspaceSlug'])
        .whereIn(['user_slug', 'workspace_slug'], names)
      const existing = new Set(found.map(nameOfWorkspace))
      return granted
        .filter((rule) => existing.has(nameOfWorkspace(rule)))
        .map(({ userSlug, workspaceSlug, level }) => ({ userSlug, workspaceSlug, level }))
    },

    /** Returns the person as the caller of a request to a workspace, or undefined if no rule gives access to it. */
    resume: async (person: Person, { userSlug, workspaceSlug }: Omit<WorkspaceAccess, 'level'>): Promise<Actor | undefined> => {
      const [rule] = highestOf(rulesOf(person).filter((each) => each.userSlug === userSlug && each.workspaceSlug === workspaceSlug))
      if (!rule) return undefined
      const found: { id: string; memberId: string | null } | undefined = await db('workspaces')
        .select('id', {
          memberId: db('members')
            .select('members.id')
            .whereRaw('members.workspace_id = workspaces.id and lower(email) = lower(?)', [person.name])
            .orderBy('members.id')
            .limit(1),
        })
        .where({ user_slug: userSlug, workspace_slug: workspaceSlug })
        .first()
      if (!found) return undefined
      const { id, name } = person
      return { type: 'user', id, name, userId: found.memberId, level: rule.level, workspace: { id: found.id, userSlug, workspaceSlug } }
    },
  }
}

export type People = ReturnType<typeof createPeople>
