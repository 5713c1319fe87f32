import { createKey } from '../../src/access/key-administration.ts'
import { idPrefixAt } from '../../src/base/ids.ts'
import { foldCounters } from '../../src/db/counters.ts'
import type { Database } from '../../src/db/database.ts'
import { incidentEventNames } from '../../src/domain/notices.ts'
import { createWorkspace } from '../../src/workspace/administration.ts'

const hourMs = 3_600_000
const hours = 24
export const workspaceName = 'bench/breadth'

export interface BreadthSize {
  workspaces: number
  /** Number of destinations of one workspace. Each of the others has two. */
  destinations: number
}

export interface Filled {
  key: string
  workspaceId: string
}

/**
 * Fills an empty database with workspaces of two destinations, and one with many, which have ten documents each. Of ten deliveries one has
 * failed, one is retried, and two wait: in the line of its destination in the workspace with many destinations, for the dispatcher in the
 * others. Each destination has delivered something in each hour of the last day, as its counters say.
 */
export const fill = async (db: Database, { workspaces, destinations }: BreadthSize): Promise<Filled> => {
  const { id: workspaceId } = await createWorkspace(db, workspaceName)
  const { key } = await createKey(db, { workspace: workspaceName, level: 'viewer' })
  const since = new Date(Math.floor(Date.now() / hourMs) * hourMs - hours * hourMs)
  const values = { workspaceId, workspaces, destinations, since, now: idPrefixAt(new Date()), events: incidentEventNames }
  // The destinations by number, with the number of their repository: ten destinations have one, or the two of a workspace.
  const all = `
    select n, 'B' || lpad(n::text, 25, '0') as id, :workspaceId as workspace_id, n / 10 as repository, true as many
    from generate_series(0, :destinations::int - 1) as n
    union all
    select n, 'S' || lpad(n::text, 25, '0'), 'W' || n / 2, n / 2, false
    from generate_series(2, 2 * :workspaces::int - 1) as n`
  const repositoryId = `left(id, 1) || 'R' || lpad(repository::text, 24, '0')`
  const run = (sql: string) => db.raw(sql, values)

  await run(`
    insert into workspaces (id, user_slug, workspace_slug)
    select 'W' || n, 'bench', 'w' || n from generate_series(1, :workspaces::int - 1) as n`)
  await run(`
    insert into repositories (id, workspace_id, repo_id, name)
    select distinct ${repositoryId}, workspace_id, 'R' || repository, 'Repository' from (${all}) as each`)
  await run(`
    insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
    select
      id, workspace_id, 'Destination ' || n, (array['webhook', 'sftp'])[1 + n % 2],
      (array['{"url": "https://example.com/"}', '{"host": "example.com"}'])[1 + n % 2]::jsonb, ''
    from (${all}) as each`)
  await run('insert into destination_gates (destination_id) select id from destinations')
  await run('insert into destination_slots (destination_id, number) select id, 1 from destinations')
  await run(`insert into connections (id, workspace_id, name) select id, workspace_id, 'Connection' from destinations`)
  await run(`
    insert into connection_repositories (connection_id, repository_id, position) select id, ${repositoryId}, 0 from (${all}) as each`)
  await run('insert into connection_destinations (connection_id, destination_id, position) select id, id, 0 from destinations')
  await run(`
    insert into notifications (id, workspace_id, name, events, destination_id, quiet_seconds, silence_hours)
    select distinct on (workspace_id) id, workspace_id, 'Notification', :events::text[], id, 60, 72
    from destinations
    order by workspace_id, id`)
  const documents = `
    select
      :now || left(id, 1) || lpad(n::text, 10, '0') || lpad(d::text, 5, '0') as document_id, d, now() - d * interval '1 minute' as moment, each.*
    from (${all}) as each
    cross join generate_series(0, 9) as d`
  await run(`
    insert into documents (
      id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id
    )
    select
      document_id, workspace_id, ${repositoryId}, 'R' || repository, document_id, 'data', 'application/pdf', 5,
      (array['failed', 'retrying', 'pending', 'pending', 'delivered'])[1 + least(d, 4)], moment, moment, document_id
    from (${documents}) as document`)
  await run(`
    insert into deliveries (
      document_id, destination_id, workspace_id, connection_id, status, path, attempts, last_error, last_error_code, ended_by, next_attempt_at, waiting,
      begin_at
    )
    select
      document_id, id, workspace_id, id, (array['failed', 'retrying', 'pending', 'pending', 'delivered'])[1 + least(d, 4)], 'a/' || n, 1,
      case when d < 2 then 'the target answered' end, case when d < 2 then (array['http_404', 'http_503'])[1 + n % 2] end,
      case when d = 0 then 'permanent_error' end,
      case when d = 1 then now() + interval '1 day' when d in (2, 3) then 'infinity' end, case when d in (2, 3) and many then 'in_line' end,
      case when d in (2, 3) and not many then now() end
    from (${documents}) as document`)
  await run(`
    insert into delivery_attempts (
      id, workspace_id, document_id, destination_id, number, started_at, duration_ms, outcome, error_code, error_message, bytes_sent
    )
    select
      document_id, workspace_id, document_id, id, 1, moment, 50, (array['permanent', 'retryable', 'delivered'])[1 + least(d, 2)],
      case when d < 2 then (array['http_404', 'http_503'])[1 + n % 2] end, case when d < 2 then 'the target answered' end, 0
    from (${documents}) as document
    where d not in (2, 3)`)
  await run(`
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select workspace_id, kind, hour, 'R' || repository, id, 'delivered', detail, 1
    from (${all}) as each
    cross join generate_series(:since::timestamptz, now(), interval '1 hour') as hour
    cross join (values ('deliveries', ''), ('attempts', '64')) as counter (kind, detail)
    where many`)
  await foldCounters(db, new AbortController().signal, 100_000)
  await db.raw('vacuum analyze')
  return { key, workspaceId }
}
