import { connectionSettings } from '../domain/connection-settings.ts'
import type { Wire } from '../domain/fan-out.ts'
import { workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import type { Database } from './database.ts'

/** What the receiver must know of a repository before it reads a byte of the body. */
export interface Source {
  workspace: { id: string; userSlug: string; workspaceSlug: string; settings: WorkspaceSettings }
  repository: { id: string; repoId: string; name: string; status: 'active' | 'inactive'; signatureVerification: boolean }
  /** Every way to a destination, through active and inactive connections. */
  wires: Wire[]
}

interface Row {
  workspace_id: string
  user_slug: string
  workspace_slug: string
  workspace_settings: unknown
  id: string
  repo_id: string
  name: string
  status: 'active' | 'inactive'
  signature_verification: boolean
  wires: (Omit<Wire, 'settings'> & { settings: unknown })[]
}

export const createSources = (db: Database) => ({
  /** The repository that a contRep names, with its wiring. */
  find: async (userSlug: string, workspaceSlug: string, repoId: string): Promise<Source | undefined> => {
    const { rows } = await db
      .raw<{ rows: Row[] }>(
        `
      select
        workspaces.id as workspace_id, user_slug, workspace_slug, workspaces.settings as workspace_settings,
        repositories.id, repo_id, repositories.name, repositories.status, signature_verification,
        array(
          select jsonb_build_object(
            'connectionId', connections.id,
            'isActive', connections.is_active,
            'settings', connections.settings,
            'destination', jsonb_build_object(
              'id', destinations.id, 'name', destinations.name, 'connector', destinations.connector_type))
          from connection_repositories
          join connections on connections.id = connection_repositories.connection_id
          join connection_destinations on connection_destinations.connection_id = connections.id
          join destinations on destinations.id = connection_destinations.destination_id
          where connection_repositories.repository_id = repositories.id
            and destinations.deleted_at is null
          order by connections.id, connection_destinations.position
        ) as wires
      from workspaces
      join repositories on repositories.workspace_id = workspaces.id
      where user_slug = ?
        and workspace_slug = ?
        and repo_id = ?
        and deleted_at is null
      `,
        [userSlug, workspaceSlug, repoId],
      )
      .options({ name: 'find-source' })
    const row = rows[0]
    if (!row) return undefined
    return {
      workspace: {
        id: row.workspace_id,
        userSlug: row.user_slug,
        workspaceSlug: row.workspace_slug,
        settings: workspaceSettings(row.workspace_settings),
      },
      repository: toRepository(row),
      wires: row.wires.map((wire) => ({ ...wire, settings: connectionSettings(wire.settings) })),
    }
  },

  /** Every repository of a workspace, for serverInfo; none where there is no such workspace. */
  list: async (userSlug: string, workspaceSlug: string): Promise<Source['repository'][]> => {
    const { rows } = await db.raw<{ rows: Pick<Row, 'id' | 'repo_id' | 'name' | 'status' | 'signature_verification'>[] }>(
      `
      select repositories.id, repo_id, name, status, signature_verification
      from workspaces
      join repositories on repositories.workspace_id = workspaces.id
      where user_slug = ?
        and workspace_slug = ?
        and deleted_at is null
      order by repo_id
      `,
      [userSlug, workspaceSlug],
    )
    return rows.map(toRepository)
  },
})

const toRepository = (row: Pick<Row, 'id' | 'repo_id' | 'name' | 'status' | 'signature_verification'>): Source['repository'] => ({
  id: row.id,
  repoId: row.repo_id,
  name: row.name,
  status: row.status,
  signatureVerification: row.signature_verification,
})

export type Sources = ReturnType<typeof createSources>
