import { z } from 'zod'
import type { Database, Transaction } from '../db/database.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'

type Noun = 'destination' | 'repository'

const named = z.array(z.object({ id: z.string(), name: z.string() }).meta({ id: 'NamedResource' }))

export const removalFields = z
  .object({
    removed_connections: named,
    unlinked_connections: named.describe('With `keep_connections`: the connections that stay without what is deleted.'),
    removed_notifications: named,
    unwired_repositories: z
      .array(z.object({ id: z.string(), repo_id: z.string(), name: z.string() }).meta({ id: 'UnwiredRepository' }))
      .describe('Repositories that no connection links to a destination from then on: what they receive is discarded.'),
    affected_destinations: z
      .array(z.object({ id: z.string(), name: z.string(), repo_ids: z.array(z.string()) }).meta({ id: 'AffectedDestination' }))
      .describe(
        'Other destinations that also lose documents: no connection leads to them from these repositories from then on. At most 100 repositories of each.',
      ),
    failed_documents_delivered: z
      .int()
      .describe(
        'Failed documents that count as delivered from then on, because only their deliveries to the destination have failed, which are cancelled. At most 10,000 are counted.',
      ),
  })
  .meta({ id: 'Removal' })

/** What a deleted destination or repository takes with it, changes, and leaves without documents. */
export type Removal = CamelCasedOutput<typeof removalFields>

// A connection has up to 1,000 repositories and 1,000 destinations, and an answer has to stay readable.
const repoIdsMax = 100

// Each is looked up by itself, in a transaction for which others may wait.
const failedDocumentsMax = 10_000

/**
 * The connections that a deletion changes: all of a destination, the active ones of a repository (contract, sections 4.2 and 4.3). An
 * inactive connection stays without the repository, because its activation releases what it holds.
 */
const changedConnections = {
  destination: `
    select
      connections.id, connections.name,
      not exists (select from connection_destinations as other where other.connection_id = connections.id and destination_id <> :id) as is_empty
    from connection_destinations
    join connections on connections.id = connection_id
    where destination_id = :id
  `,
  repository: `
    select
      connections.id, connections.name,
      not exists (select from connection_repositories as other where other.connection_id = connections.id and repository_id <> :id) as is_empty
    from connection_repositories
    join connections on connections.id = connection_id
    where repository_id = :id
      and is_active
  `,
}

/**
 * Finds what the deletion of a destination or repository removes, changes and leaves without a route. The lists are ordered by id.
 * @param keepConnections only the connections go that would be empty
 */
export const findRemoval = async (db: Database | Transaction, noun: Noun, id: string, keepConnections: boolean): Promise<Removal> => {
  const { rows } = await db.raw<{ rows: Removal[] }>(
    `
    with changed as (${changedConnections[noun]}), removed as (
      select id, name
      from changed
      where is_empty
        or not :keepConnections::boolean
    ), lost as (
      select destination_id, (array_agg(distinct repo_id order by repo_id))[1:${repoIdsMax}] as repo_ids
      from removed
      join connection_destinations on connection_destinations.connection_id = removed.id
      join connection_repositories on connection_repositories.connection_id = removed.id
      join repositories on repositories.id = repository_id
      where destination_id <> :id
        and repository_id <> :id
        and not exists (
          select
          from connection_destinations as destination_link
          join connection_repositories as repository_link using (connection_id)
          where destination_link.destination_id = connection_destinations.destination_id
            and repository_link.repository_id = connection_repositories.repository_id
            and connection_id not in (select removed.id from removed)
        )
      group by destination_id
    )
    select
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name) order by id), '[]')
        from removed
      ) as "removedConnections",
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name) order by id), '[]')
        from changed
        where id not in (select removed.id from removed)
      ) as "unlinkedConnections",
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name) order by id), '[]')
        from notifications
        where destination_id = :id
      ) as "removedNotifications",
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
      ) as "unwiredRepositories",
      (
        select coalesce(jsonb_agg(jsonb_build_object('id', id, 'name', name, 'repoIds', repo_ids) order by id), '[]')
        from lost
        join destinations on destinations.id = destination_id
      ) as "affectedDestinations",
      (
        select count(*)::integer
        from (
          select
          from deliveries
          where destination_id = :id
            and status = 'failed'
            and exists (
              select
              from deliveries as other
              where other.document_id = deliveries.document_id
                and other.status = 'delivered'
            )
            and not exists (
              select
              from deliveries as other
              where other.document_id = deliveries.document_id
                and other.destination_id <> :id
                and other.status not in ('delivered', 'cancelled')
            )
          limit ${failedDocumentsMax}
        ) as document
      ) as "failedDocumentsDelivered"
    `,
    { id, keepConnections },
  )
  return rows[0]!
}

/** Describes a removal in a sentence, or returns an empty text if nothing else goes. */
export const removalSentence = (removal: Removal): string => {
  const parts: [string, string[]][] = [
    ['Connections deleted with it', removal.removedConnections.map(({ name }) => name)],
    ['Connections that stay without it', removal.unlinkedConnections.map(({ name }) => name)],
    ['Notifications deleted with it', removal.removedNotifications.map(({ name }) => name)],
    ['Repositories without a destination from then on', removal.unwiredRepositories.map(({ repoId }) => repoId)],
    ['Destinations that also lose documents', removal.affectedDestinations.map(({ name }) => name)],
  ]
  const { failedDocumentsDelivered: count } = removal
  const failed =
    count > 0 ? ` Failed documents that count as delivered from then on: ${count === failedDocumentsMax ? `${count} or more` : count}.` : ''
  return parts.map(([title, names]) => (names.length > 0 ? ` ${title}: ${names.join(', ')}.` : '')).join('') + failed
}

/** How a destination or repository is deleted. */
export interface DeletionOptions<Current> {
  /** Deliveries that are cancelled at once; the rest is cancelled by a workflow. */
  limit: number
  /** Connections stay without the deleted object, unless they would be empty. */
  keepConnections: boolean
  /** Throws if the object must not be deleted as it is. */
  check?(current: Current): void
}
