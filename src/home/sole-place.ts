import { placeOfTarget } from '../connectors/index.ts'
import { overlap } from '../connectors/shared/place.ts'
import type { Database, Transaction } from '../db/database.ts'
import { hasContentsAt } from './copies.ts'

interface Target {
  id: string
  connectorType: string
  config: unknown
}

/** SQL: a destination is the home of a repository, or has contents. */
const isHomeNow = `
  (
    exists (
      select
      from repositories
      where home_destination_id = destinations.id
        and deleted_at is null
    )
    or ${hasContentsAt('destinations.id')}
  )`

/**
 * Looks for another destination of the workspace that names the place of this one: a delivery to it would replace what the home alone has,
 * without a look at it. Names of hosts and folders are compared, not what they lead to. `lockRouting` keeps other destinations as they are.
 * @param isHome true if this one is a home, or becomes one. Otherwise only homes are looked at
 * @returns the name of the other
 */
export const findTwin = async (trx: Transaction, workspaceId: string, target: Target, isHome: boolean): Promise<string | undefined> => {
  const place = placeOfTarget(target.connectorType, target.config)
  if (!place) return undefined
  const { rows } = await trx.raw<{ rows: { name: string; config: unknown }[] }>(
    `
    select name, config
    from destinations
    where workspace_id = :workspaceId
      and connector_type = :connectorType
      and id <> :id
      and deleted_at is null
      and (:isHome or ${isHomeNow})
    order by id
    `,
    { workspaceId, connectorType: target.connectorType, id: target.id, isHome },
  )
  return rows.find(({ config }) => {
    const other = placeOfTarget(target.connectorType, config)
    return other && overlap(place, other)
  })?.name
}

/** Lists the homes of all workspaces whose place another destination names, of any workspace, each as a sentence. */
export const listTwins = async (db: Database): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: (Target & { name: string; isHome: boolean })[] }>(
    `
    select
      destinations.id, connector_type as "connectorType", config, ${isHomeNow} as "isHome",
      user_slug || '/' || workspace_slug || ' ' || destinations.name as name
    from destinations
    join workspaces on workspaces.id = workspace_id
    where destinations.deleted_at is null
    order by destinations.id
    `,
  )
  const placed = rows.flatMap((each) => {
    const place = placeOfTarget(each.connectorType, each.config)
    return place ? [{ ...each, place }] : []
  })
  return placed
    .filter(({ isHome }) => isHome)
    .flatMap((home) => {
      const twins = placed.filter(
        ({ id, connectorType, place }) => id !== home.id && connectorType === home.connectorType && overlap(home.place, place),
      )
      return twins.length === 0
        ? []
        : [`${home.name} is a home of contents, and its place is also that of ${twins.map(({ name }) => name).join(', ')}.`]
    })
}
