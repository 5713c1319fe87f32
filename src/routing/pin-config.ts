import type { Connectors } from '../connectors/index.ts'
import { credentialsOwner } from '../connectors/target.ts'
import { record, systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { PinnedDestination } from '../delivery/deliver.ts'
import type { KeyRing } from '../security/seal.ts'

/**
 * Creates the use case that adds values to a destination's config which its target presented at the first success, such as a host key.
 * The credentials are sealed again together with them. Does nothing if the destination was changed or deleted since it was loaded: every
 * change of what the credentials are bound to seals them again.
 */
export const createPinConfig =
  (db: Database, { keyRing, findConnector }: { keyRing: KeyRing; findConnector: Connectors['find'] }) =>
  async (destination: PinnedDestination, values: Record<string, string>): Promise<void> => {
    const { workspaceId, id, config, credentialsSealed } = destination
    const connector = findConnector(destination.connector)
    if (!connector) return
    const credentials = keyRing.open(credentialsSealed, credentialsOwner(connector, destination))
    const resealed = keyRing.seal(credentials, credentialsOwner(connector, { ...destination, config: { ...config, ...values } }))
    await db.transaction(async (trx) => {
      const [row] = await trx('destinations')
        .where({ id, credentials_sealed: credentialsSealed })
        .whereNull('deleted_at')
        .update({ config: trx.raw('config || ?::jsonb', [JSON.stringify(values)]), credentials_sealed: resealed, updated_at: trx.fn.now() })
        .returning(['name', 'connector_type as connectorType'])
      if (!row) return
      const changed = Object.keys(values).map((key) => `config.${key}`)
      await record(trx, {
        workspaceId,
        event: 'destination.updated',
        subjectId: id,
        description: `Destination ${row.name} (${row.connectorType}) was changed: the target presented ${changed.join(', ')} at its first success.`,
        metadata: { name: row.name, connector_type: row.connectorType, changed },
        actor: systemActor,
      })
    })
  }

export type PinConfig = ReturnType<typeof createPinConfig>
