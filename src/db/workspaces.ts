import { newId } from '../ids.ts'
import { isDuplicate, type Database, type Transaction } from './database.ts'

export interface Workspace {
  id: string
  userSlug: string
  workspaceSlug: string
}

export interface StoredSettings {
  complianceTier: boolean
  /** Only what differs from the defaults: see src/domain/settings.ts. */
  settings: object
}

interface SettingsChange {
  settings: object
  /** Null removes them, undefined lets them be. */
  rfcCredentialsSealed?: Buffer | null | undefined
}

const columns = ['id', 'user_slug as userSlug', 'workspace_slug as workspaceSlug']
const settingsColumns = ['compliance_tier as complianceTier', 'settings']

/**
 * Changes to what is wired to what take turns within a workspace: a connection cannot come to name a destination that is being
 * deleted, and two deletions cannot wait for each other's documents.
 */
export const lockWiring = async (trx: Transaction, workspaceId: string): Promise<void> => {
  await trx.raw('select 1 from workspaces where id = ? for no key update', [workspaceId])
}

export const createWorkspaces = (db: Database | Transaction) => ({
  /** Undefined where the pair of slugs is taken. */
  insert: async (userSlug: string, workspaceSlug: string): Promise<Workspace | undefined> => {
    const id = newId()
    try {
      await db('workspaces').insert({ id, user_slug: userSlug, workspace_slug: workspaceSlug })
    } catch (thrown) {
      if (isDuplicate(thrown)) return undefined
      throw thrown
    }
    return { id, userSlug, workspaceSlug }
  },

  find: (userSlug: string, workspaceSlug: string): Promise<Workspace | undefined> =>
    db('workspaces').select(columns).where({ user_slug: userSlug, workspace_slug: workspaceSlug }).first(),

  list: (): Promise<Workspace[]> => db('workspaces').select(columns).orderBy(['user_slug', 'workspace_slug']),

  findSettings: (id: string): Promise<StoredSettings> => db('workspaces').select(settingsColumns).where({ id }).first(),

  /** Credentials of the bridge, sealed; undefined where there are none. */
  findRfcCredentials: async (id: string): Promise<Buffer | undefined> => {
    const row = await db('workspaces')
      .select<{ sealed: Buffer | null } | undefined>('rfc_credentials_sealed as sealed')
      .where({ id })
      .first()
    return row?.sealed ?? undefined
  },

  /** Reads, asks `change` for what shall stand there, and writes it, with the row locked in between. */
  updateSettings: (id: string, change: (current: StoredSettings) => SettingsChange): Promise<StoredSettings> =>
    db.transaction(async (trx) => {
      const current: StoredSettings = await trx('workspaces').select(settingsColumns).where({ id }).forNoKeyUpdate().first()
      const { settings, rfcCredentialsSealed } = change(current)
      await trx('workspaces')
        .where({ id })
        .update({
          settings: JSON.stringify(settings),
          updated_at: trx.fn.now(),
          ...(rfcCredentialsSealed !== undefined && { rfc_credentials_sealed: rfcCredentialsSealed }),
        })
      return { ...current, settings }
    }),

  /** @param check throws where the workspace cannot have that tier, with the row locked in between */
  setComplianceTier: (id: string, complianceTier: boolean, check: (current: StoredSettings) => void): Promise<void> =>
    db.transaction(async (trx) => {
      check(await trx('workspaces').select(settingsColumns).where({ id }).forNoKeyUpdate().first())
      await trx('workspaces').where({ id }).update({ compliance_tier: complianceTier, updated_at: trx.fn.now() })
    }),

  /** The member of that address, made if there is none yet. @returns its id */
  ensureMember: async (workspaceId: string, email: string): Promise<string> => {
    await db('members')
      .insert({ id: newId(), workspace_id: workspaceId, email, name: email })
      .onConflict(['workspace_id', 'email'])
      .ignore()
    const member = await db('members').select<{ id: string }>('id').where({ workspace_id: workspaceId, email }).first()
    return member!.id
  },

  hasMember: async (workspaceId: string, id: string): Promise<boolean> =>
    (await db('members').select('id').where({ workspace_id: workspaceId, id }).first()) !== undefined,
})
