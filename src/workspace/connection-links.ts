import type { Transaction } from '../db/database.ts'

/** Ids of a request that do not exist in the workspace. */
export interface UnknownIds {
  unknownRepositoryIds: string[]
  unknownDestinationIds: string[]
}

const findUnknown = async (
  trx: Transaction,
  table: 'repositories' | 'destinations',
  workspaceId: string,
  ids: string[],
): Promise<string[]> => {
  const known = await trx(table)
    .select<{ id: string }[]>('id')
    .where({ workspace_id: workspaceId })
    .whereIn('id', ids)
    .whereNull('deleted_at')
  const found = new Set(known.map(({ id }) => id))
  return ids.filter((id) => !found.has(id))
}

const link = async (trx: Transaction, noun: 'repository' | 'destination', connectionId: string, ids: string[]): Promise<void> => {
  const table = noun === 'repository' ? 'connection_repositories' : 'connection_destinations'
  await trx(table).where({ connection_id: connectionId }).delete()
  await trx(table).insert([...new Set(ids)].map((id, position) => ({ connection_id: connectionId, [`${noun}_id`]: id, position })))
}

/** Checks the ids and replaces the links. @returns the unknown ids, if any; no link is changed then */
export const relink = async (
  trx: Transaction,
  workspaceId: string,
  connectionId: string,
  { repositoryIds, destinationIds }: { repositoryIds?: string[] | undefined; destinationIds?: string[] | undefined },
): Promise<UnknownIds | undefined> => {
  const unknown = {
    unknownRepositoryIds: await findUnknown(trx, 'repositories', workspaceId, repositoryIds ?? []),
    unknownDestinationIds: await findUnknown(trx, 'destinations', workspaceId, destinationIds ?? []),
  }
  if (unknown.unknownRepositoryIds.length > 0 || unknown.unknownDestinationIds.length > 0) return unknown
  if (repositoryIds) await link(trx, 'repository', connectionId, repositoryIds)
  if (destinationIds) await link(trx, 'destination', connectionId, destinationIds)
  return undefined
}
