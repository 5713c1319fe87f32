import type { Database, Transaction } from '../db/database.ts'

/** Objects that go together with a deleted destination or repository. */
export interface Removal {
  connections: { id: string; name: string }[]
  /** Notifications that are sent to the destination. */
  notifications: { id: string; name: string }[]
  /** Repositories that no connection links to a destination from then on: documents that they receive are discarded. */
  unwiredRepositories: { id: string; repoId: string; name: string }[]
}

/** The connections that go: all of a destination, the active ones of a repository (contract, sections 4.2 and 4.3). */
const removedConnections = {
  destination: `
    select connections.id, connections.name
    from connection_destinations
    join connections on connections.id = connection_id
    where destination_id = :id
  `,
  repository: `
    select connections.id, connections.name
    from connection_repositories
    join connections on connections.id = connection_id
    where repository_id = :id
      and is_active
  `,
}

/** Finds what the deletion of a destination or repository removes and leaves without a route. The lists are ordered by id. */
export const findRemoval = async (db: Database | Transaction, noun: keyof typeof removedConnections, id: string): Promise<Removal> => {
  const { rows } = await db.raw<{ rows: Removal[] }>(
    `
    with removed as (${removedConnections[noun]})
    select
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name) order by id), '[]')
        from removed
      ) as connections,
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name) order by id), '[]')
        from notifications
        where destination_id = :id
      ) as notifications,
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'repoId', repo_id, 'name', name) order by id), '[]')
        from repositories
        where deleted_at is null
          and id <> :id
          and id in (
            select repository_id
            from connection_repositories
            join removed on removed.id = connection_id
          )
          and not exists (
            select 1
            from connection_repositories
            where repository_id = repositories.id
              and connection_id not in (select removed.id from removed)
          )
      ) as "unwiredRepositories"
    `,
    { id },
  )
  return rows[0]!
}

/** Returns a removal as the audit log shows it. */
export const removalMetadata = ({ connections, notifications, unwiredRepositories }: Removal) => ({
  removed_connections: connections,
  removed_notifications: notifications,
  unwired_repositories: unwiredRepositories.map(({ id, repoId, name }) => ({ id, repo_id: repoId, name })),
})

/** Describes a removal in a sentence, or returns an empty text if nothing else goes. */
export const removalSentence = ({ connections, notifications, unwiredRepositories }: Removal): string => {
  const rules = notifications.map(({ name }) => name).join(', ')
  const names = connections.map(({ name }) => name).join(', ')
  const repositories = unwiredRepositories.map(({ repoId }) => repoId).join(', ')
  return [
    ...(names ? [` Connections deleted with it: ${names}.`] : []),
    ...(rules ? [` Notifications deleted with it: ${rules}.`] : []),
    ...(repositories ? [` Repositories without a destination from then on: ${repositories}.`] : []),
  ].join('')
}
