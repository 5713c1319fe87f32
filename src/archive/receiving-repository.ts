import { createTtlCache } from '../base/ttl-cache.ts'
import { createBatches, readLimits } from '../db/batches.ts'
import { createStatement, type Database } from '../db/database.ts'
import type { CodePage } from '../domain/code-pages.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import type { Route } from '../domain/fan-out.ts'
import { workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import type { StoredUpstream } from '../domain/upstream.ts'

export interface RepositorySummary {
  id: string
  repoId: string
  name: string
  status: 'active' | 'inactive'
  signatureVerification: boolean
  /** Links to destinations, through active and inactive connections. */
  routes: Pick<Route, 'isActive'>[]
}

/** A repository with everything that the receiver needs before it reads the body of a request. */
export interface ReceivingRepository extends RepositorySummary {
  signedParameterOrder: 'fixed' | 'any'
  acceptsMcreate: boolean
  codePage: CodePage
  workspace: { id: string; userSlug: string; workspaceSlug: string; settings: WorkspaceSettings; storedBytes: number }
  routes: Route[]
  /** The active enrichments of its documents. */
  enrichments: { id: string; waitSeconds: number; lateDays: number }[]
  /** The content server that the source system used before. */
  upstream: StoredUpstream | null
  /** Null if requests to the upstream are neither signed nor sent through a proxy with a password. */
  upstreamSecretsSealed: Buffer | null
}

type Row = Omit<ReceivingRepository, 'workspace' | 'routes' | 'enrichments'> & {
  enrichments: ReceivingRepository['enrichments'] | null
  workspace: { id: string; userSlug: string; workspaceSlug: string; settings: unknown; storedBytes: number | null }
  routes: (Omit<Route, 'settings'> & { settings: unknown })[] | null
}

const rememberedMaxEntries = 1_000

/** Parses each distinct value once: all requests of a workspace have the same settings. The results must not be changed. */
const remember = <Parsed extends object>(parse: (stored: unknown) => Parsed) => {
  const remembered = createTtlCache<Parsed>({ maxEntries: rememberedMaxEntries })
  return (stored: unknown): Parsed => {
    const key = JSON.stringify(stored)
    const known = remembered.get(key)
    if (known) return known
    const parsed = parse(stored)
    remembered.set(key, parsed)
    return parsed
  }
}
const settingsOfWorkspace = remember(workspaceSettings)
const settingsOfConnection = remember(connectionSettings)

// Of a repository, through its connections.
const destinationsOfRepository = `
      from connection_repositories
      join connections on connections.id = connection_repositories.connection_id
      join connection_destinations on connection_destinations.connection_id = connections.id
      join destinations on destinations.id = connection_destinations.destination_id
      where connection_repositories.repository_id = repositories.id
        and destinations.deleted_at is null
`

const findRepository = createStatement<Row>(
  'find-receiving-repository',
  `
  select
    repositories.id, repo_id as "repoId", repositories.name, repositories.status,
    signature_verification as "signatureVerification", signed_parameter_order as "signedParameterOrder",
    accepts_mcreate as "acceptsMcreate", code_page as "codePage", upstream, upstream_secrets_sealed as "upstreamSecretsSealed",
    jsonb_build_object(
      'id', workspaces.id, 'userSlug', user_slug, 'workspaceSlug', workspace_slug, 'settings', workspaces.settings,
      'storedBytes', case when :forStoring::boolean then (
        select coalesce(sum(bytes), 0)
        from workspace_storage
        where workspace_id = workspaces.id
      ) end) as workspace,
    case when :forStoring::boolean then array(
      select jsonb_build_object(
        'connectionId', connections.id,
        'isActive', connections.is_active,
        'settings', connections.settings,
        'destination', jsonb_build_object(
          'id', destinations.id, 'name', destinations.name, 'connector', destinations.connector_type))
      ${destinationsOfRepository}
      order by connections.id, connection_destinations.position
    ) end as routes,
    case when :forStoring::boolean then array(
      select jsonb_build_object('id', enrichments.id, 'waitSeconds', wait_seconds, 'lateDays', late_days)
      from enrichment_repositories
      join enrichments on enrichments.id = enrichment_id
      where repository_id = repositories.id
        and is_active
      order by enrichments.id
    ) end as enrichments
  from workspaces
  join repositories on repositories.workspace_id = workspaces.id
  where user_slug = :userSlug
    and workspace_slug = :workspaceSlug
    and repo_id = :repoId
    and deleted_at is null
  `,
)

interface Lookup {
  userSlug: string
  workspaceSlug: string
  repoId: string
  /** False for a command that stores nothing: routes and stored bytes, half of the cost, are then left out. */
  forStoring: boolean
}

export const createReceivingRepositories = (db: Database) => {
  const findNow = async (lookup: Lookup): Promise<ReceivingRepository | undefined> => {
    const [row] = await findRepository(db, { ...lookup })
    if (!row) return undefined
    const { workspace, routes, enrichments } = row
    return {
      ...row,
      workspace: { ...workspace, settings: settingsOfWorkspace(workspace.settings), storedBytes: workspace.storedBytes ?? 0 },
      enrichments: enrichments ?? [],
      routes: (routes ?? []).map((route) => ({ ...route, settings: settingsOfConnection(route.settings) })),
    }
  }

  // Equal lookups of requests that arrive together are one. It begins after each of the requests that it serves has arrived, so all of them
  // see every change that was answered before.
  const findTogether = createBatches((lookups: Lookup[]) => {
    const found = new Map<string, Promise<ReceivingRepository | undefined>>()
    const findOnce = (lookup: Lookup) => {
      const key = JSON.stringify(lookup)
      const finding = found.get(key) ?? findNow(lookup)
      found.set(key, finding)
      return finding
    }
    return lookups.map(findOnce)
  }, readLimits)

  return {
    /** Finds the repository that a contRep names, with its routes. The result is shared with other requests. */
    find: (userSlug: string, workspaceSlug: string, repoId: string, { forStoring = true } = {}): Promise<ReceivingRepository | undefined> =>
      findTogether({ userSlug, workspaceSlug, repoId, forStoring }),

    /** Lists every repository of a workspace, for serverInfo. Empty if the workspace does not exist. */
    list: async (userSlug: string, workspaceSlug: string): Promise<RepositorySummary[]> => {
      const { rows } = await db.raw<{ rows: RepositorySummary[] }>(
        `
      select
        repositories.id, repo_id as "repoId", name, status, signature_verification as "signatureVerification",
        array(
          select jsonb_build_object('isActive', is_active)
          ${destinationsOfRepository}
          group by is_active
        ) as routes
      from workspaces
      join repositories on repositories.workspace_id = workspaces.id
      where user_slug = ?
        and workspace_slug = ?
        and deleted_at is null
      order by repo_id
      `,
        [userSlug, workspaceSlug],
      )
      return rows
    },
  }
}

export type ReceivingRepositories = ReturnType<typeof createReceivingRepositories>
