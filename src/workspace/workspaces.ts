import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { validationFailed } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { isDuplicate } from '../db/errors.ts'
import type { Tier } from '../domain/bounds.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { changeSettings, rfcBoundValues, type settingsPatchFields, type SettingsDifference } from '../domain/settings.ts'
import { rfcCredentialsOf, type KeyRing } from '../security/seal.ts'

export interface Workspace {
  id: string
  userSlug: string
  workspaceSlug: string
}

export interface StoredSettings {
  tier: Tier
  /** Only values that differ from the defaults: see src/domain/settings.ts. */
  settings: object
}

export interface SettingsChange {
  settings: object
  difference: SettingsDifference
  /** Null removes the credentials, undefined keeps them. */
  rfcCredentialsSealed?: Buffer | null | undefined
}

/** Returns what a change of the settings writes. @throws AppError 422 if the settings would be invalid */
export const settingsChange = (
  workspaceId: string,
  { settings, tier }: StoredSettings,
  patch: CamelCasedOutput<typeof settingsPatchFields>,
  keyRing: KeyRing,
): SettingsChange => {
  const changed = changeSettings(settings, patch, tier)
  if (changed.issues.length > 0) throw validationFailed(changed.issues)
  const credentials = patch.rfc?.credentials
  const rfcCredentialsSealed =
    patch.rfc === null ? null : credentials && keyRing.seal(credentials, rfcCredentialsOf(workspaceId, rfcBoundValues(changed.stored)))
  return { settings: changed.stored, difference: changed.difference, rfcCredentialsSealed }
}

const columns = ['id', 'user_slug as userSlug', 'workspace_slug as workspaceSlug']

const workspaceGone = (): never => {
  throw new AppError('not_found', 'The workspace does not exist any more.')
}

const selectSettings = (db: Database | Transaction, id: string) =>
  db('workspaces')
    .select<StoredSettings[]>([db.raw(`case when compliance_tier then 'compliance' else 'standard' end as tier`), 'settings'])
    .where({ id })
    .first()

const recordChange = (trx: Transaction, workspaceId: string, { before, after }: SettingsDifference, actor: AuditActor) =>
  record(trx, {
    workspaceId,
    event: 'settings.updated',
    subjectId: workspaceId,
    description: `The settings were changed: ${Object.keys(after).join(', ')}.`,
    metadata: { before, after },
    actor,
  })

/**
 * Locks the routing of a workspace: changes of repositories, destinations and connections take turns. A connection can therefore not link
 * a destination that is being deleted, and two deletions cannot wait for each other's documents.
 * @returns the name of the workspace, `{userSlug}/{workspaceSlug}`
 * @throws `AppError` if the workspace has been deleted
 */
export const lockRouting = async (trx: Transaction, workspaceId: string): Promise<string> => {
  const { rows } = await trx.raw<{ rows: { name: string }[] }>(
    `select user_slug || '/' || workspace_slug as name from workspaces where id = ? for no key update`,
    [workspaceId],
  )
  return (rows[0] ?? workspaceGone()).name
}

/** Returns the name of a workspace, `{userSlug}/{workspaceSlug}`. @throws `AppError` if the workspace has been deleted */
export const workspaceNameOf = async (db: Database | Transaction, id: string): Promise<string> => {
  const row = await db('workspaces').select(columns).where({ id }).first()
  const { userSlug, workspaceSlug } = row ?? workspaceGone()
  return `${userSlug}/${workspaceSlug}`
}

export const createWorkspaces = (db: Database | Transaction) => ({
  /** Inserts a workspace. @throws `AppError` 409 if the pair of slugs is taken */
  insert: async (userSlug: string, workspaceSlug: string): Promise<Workspace> => {
    const id = newId()
    try {
      await db('workspaces').insert({ id, user_slug: userSlug, workspace_slug: workspaceSlug })
    } catch (thrown) {
      if (!isDuplicate(thrown)) throw thrown
      throw new AppError('conflict', `The workspace ${userSlug}/${workspaceSlug} already exists.`)
    }
    return { id, userSlug, workspaceSlug }
  },

  find: (userSlug: string, workspaceSlug: string): Promise<Workspace | undefined> =>
    db('workspaces').select(columns).where({ user_slug: userSlug, workspace_slug: workspaceSlug }).first(),

  list: (): Promise<Workspace[]> => db('workspaces').select(columns).orderBy(['user_slug', 'workspace_slug']),

  findSettings: async (id: string): Promise<StoredSettings> => (await selectSettings(db, id)) ?? workspaceGone(),

  /** Returns the sealed credentials of the bridge, or undefined if there are none. */
  findRfcCredentials: async (id: string): Promise<Buffer | undefined> => {
    const row = await db('workspaces')
      .select<{ sealed: Buffer | null } | undefined>('rfc_credentials_sealed as sealed')
      .where({ id })
      .first()
    return row?.sealed ?? undefined
  },

  /** Reads the settings, applies `change`, and writes and records the difference, if any; the row stays locked in between. */
  updateSettings: (id: string, change: (current: StoredSettings) => SettingsChange, actor: AuditActor): Promise<StoredSettings> =>
    db.transaction(async (trx) => {
      const current = (await selectSettings(trx, id).forNoKeyUpdate()) ?? workspaceGone()
      const { settings, difference, rfcCredentialsSealed } = change(current)
      if (Object.keys(difference.after).length === 0) return current
      await trx('workspaces')
        .where({ id })
        .update({
          settings: JSON.stringify(settings),
          updated_at: trx.fn.now(),
          ...(rfcCredentialsSealed !== undefined && { rfc_credentials_sealed: rfcCredentialsSealed }),
        })
      await recordChange(trx, id, difference, actor)
      return { ...current, settings }
    }),

  /** Sets the tier, and records the change if it is one. */
  setTier: (id: string, tier: Tier, actor: AuditActor): Promise<void> =>
    db.transaction(async (trx) => {
      const current = (await selectSettings(trx, id).forNoKeyUpdate()) ?? workspaceGone()
      if (current.tier === tier) return
      await trx('workspaces')
        .where({ id })
        .update({ compliance_tier: tier === 'compliance', updated_at: trx.fn.now() })
      await recordChange(trx, id, { before: { tier: current.tier }, after: { tier } }, actor)
    }),
})

export type Workspaces = ReturnType<typeof createWorkspaces>
