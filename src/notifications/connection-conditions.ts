import type { FindConditions } from './condition.ts'

interface Row {
  workspaceId: string
  connection: { id: string; name: string }
  count: number
  since: Date
}

const remedy = 'Activate the connection: the deliveries are released. If they are not needed, delete the connection: they are cancelled.'

/** Finds inactive connections whose oldest document has been held for long. */
export const findHoldingConnections: FindConditions = async (trx, config, now) => {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    select
      connections.workspace_id as "workspaceId", jsonb_build_object('id', connections.id, 'name', connections.name) as connection,
      held.count, held.since
    from connections
    join lateral (
      -- The first in the index is the oldest document.
      select count(*) as count, (array_agg(status_since order by document_id))[1] as since
      from (
        select document_id, status_since
        from deliveries
        where deliveries.connection_id = connections.id
          and status = 'held'
        order by document_id
        limit :maxCount
      ) as oldest
    ) as held on held.count > 0
    where connections.workspace_id = any (:workspaceIds)
      and not is_active
      and held.since <= :now::timestamptz - :holdingHours * interval '1 hour'
    `,
    { now, maxCount: config.maxCount, holdingHours: config.holdingHours, workspaceIds: config.workspaceIds },
  )
  return rows.map(({ workspaceId, connection, count, since }) => ({
    workspaceId,
    subject: connection.id,
    count,
    since,
    details: { connection, remedy },
  }))
}
