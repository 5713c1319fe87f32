import { isStorable, plainValue } from '../base/text.ts'
import type { Database } from '../db/database.ts'
import type { Actor } from '../security/api-keys.ts'
import { allows, type KeyLevel } from '../security/levels.ts'
import type { Claims, ProviderSettings } from '../security/oidc.ts'

/** A line of the file of RELAY_OIDC_FILE: whose claim has the value may use the workspace with this level. */
export interface AccessRule {
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

/** A person as a sealed session holds them. */
export interface Person {
  /** The claim `sub`, which no other person of the provider gets. */
  id: string
  /** The name that people see, normally the e-mail address. */
  name: string
  /** The e-mail address, if the provider has verified it. */
  email?: string | undefined
  /** The ids of the rules that give access, one for each workspace. */
  rules: string[]
}

/** A workspace that a person may use. */
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

/** Returns the e-mail address of a person. Many providers let people enter any: it counts only if the provider says that it is theirs. */
const emailOf = ({ email, email_verified: isVerified }: Claims): string | undefined =>
  isVerified === true && typeof email === 'string' && isStorable(email) ? email : undefined

const nameOf = (claims: Claims): string => {
  const { preferred_username: userName, name, sub } = claims
  const names = [emailOf(claims), userName, name, sub]
  const texts = names.filter((each): each is string => typeof each === 'string' && isStorable(each))
  return texts.map((each) => plainValue(each, nameMaxCharacters)).find((each) => each !== '') ?? sub
}

// The claims of OpenID Connect Core 5.1 about a person, and those that Entra, Keycloak, GitLab, Okta and Cognito add to them.
const changeableClaims = new Set(
  (
    'name given_name family_name middle_name nickname preferred_username profile picture website email gender birthdate zoneinfo locale ' +
    'phone_number address upn unique_name username user_name login display_name displayname mail emails verified_primary_email ' +
    'verified_secondary_email winaccountname onprem_sam_account_name'
  ).split(' '),
)

/** Returns true if a claim describes a person, which may change, or become that of another one, and gives no right. */
export const isChangeable = (claim: string): boolean => changeableClaims.has(claim.toLowerCase().split(/[/:]/).at(-1)!)

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
  const values = new Set([provider.claim === 'email' ? emailOf(claims) : claims[provider.claim]].flat())
  const matching = highestOf(rules.filter(({ value }) => values.has(value))).slice(0, workspacesMax)
  return { id: claims.sub, name: nameOf(claims), email: emailOf(claims), rules: matching.map(({ id }) => id) }
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
            .whereRaw('members.workspace_id = workspaces.id and lower(email) = lower(?)', [person.email ?? null])
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
