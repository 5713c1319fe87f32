import { validationFailed } from '../base/refusals.ts'
import type { Transaction } from '../db/database.ts'

/** @throws AppError 422 unless the workspace has the destination, and such messages can be sent to it */
export const requireDestination = async (
  trx: Transaction,
  workspaceId: string,
  destinationId: string,
  accepts: { types: string; isOne(type: string): boolean },
  path = 'destination_id',
): Promise<void> => {
  const found = await trx('destinations')
    .select<{ connectorType: string }>('connector_type as connectorType')
    .where({ workspace_id: workspaceId, id: destinationId })
    .whereNull('deleted_at')
    .first()
  if (found && accepts.isOne(found.connectorType)) return
  const message = found
    ? `must be a destination of the type ${accepts.types}; this one is of the type ${found.connectorType}`
    : 'there is no such destination in this workspace'
  throw validationFailed([{ path, message }])
}
