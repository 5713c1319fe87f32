import type { Config } from '../config/config.ts'
import { callTarget, type CallTargetDeps, type StoredTarget } from '../connectors/call-target.ts'
import { DeliveryError, type Payload } from '../connectors/connector.ts'
import { createOpenCredentials } from '../connectors/target.ts'
import type { Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import type { OnItsOwn } from '../db/on-its-own.ts'
import { pathOfManifest } from '../domain/fan-out.ts'
import type { KeyRing } from '../security/seal.ts'
import { createManifests, partsOf, type ManifestPart } from './manifests.ts'

export interface CopyDeps extends Omit<CallTargetDeps, 'openCredentials'> {
  db: Database
  stores: Stores
  keyRing: Pick<KeyRing, 'open'>
  onItsOwn: OnItsOwn
  config: CallTargetDeps['config'] & Pick<Config, 'DELIVERY_ATTEMPT_TIMEOUT_MS' | 'PROOF_DESTINATIONS'>
}

// Copies of one run to one destination. A new destination gets all manifests since the first one, in several runs.
const copiesPerRun = 50
// A run of the job ends long before Temporal ends it after an hour: what is left is for the next one.
const runMaxMs = 15 * 60_000
const partMaxMs = 5 * 60_000

/**
 * Brings the manifests of their workspaces to the destinations that get them, oldest first. A file has the same path and id each time, so that a
 * repetition has no second effect. A destination that fails is passed over until the next run.
 * @returns the number of copies
 */
export const copyManifests = async (deps: CopyDeps, signal: AbortSignal): Promise<number> => {
  const endsAt = performance.now() + runMaxMs
  let copied = 0
  for (const destinationId of deps.config.PROOF_DESTINATIONS) {
    await deps.onItsOwn(
      'manifests',
      { destination_id: destinationId },
      async () => {
        const target = await findTarget(deps.db, destinationId)
        if (!target) throw new Error(`PROOF_DESTINATIONS names ${destinationId}, and there is no such destination`)
        for (const due of await listDue(deps.db, destinationId, target.workspaceId)) {
          if (performance.now() > endsAt) return
          await copyOne(deps, target, due, signal)
          copied += 1
        }
      },
      signal,
    )
  }
  return copied
}

const findTarget = async (db: Database, destinationId: string): Promise<StoredTarget | undefined> => {
  const { rows } = await db.raw<{ rows: StoredTarget[] }>(
    `
    select
      workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace, credentials_sealed as "credentialsSealed",
      jsonb_build_object('id', destinations.id, 'connector', connector_type, 'config', config) as destination
    from destinations
    join workspaces on workspaces.id = workspace_id
    where destinations.id = :destinationId
      and deleted_at is null
    `,
    { destinationId },
  )
  return rows[0]
}

interface DueCopy {
  day: string
  /** The destination has the manifest, and lacks its stamp only. */
  lacksStamp: boolean
}

const listDue = async (db: Database, destinationId: string, workspaceId: string): Promise<DueCopy[]> => {
  const { rows } = await db.raw<{ rows: DueCopy[] }>(
    `
    select manifests.day::text, copied_at is not null as "lacksStamp"
    from manifests
    left join manifest_copies on manifest_copies.day = manifests.day and destination_id = :destinationId
    where manifests.workspace_id = :workspaceId
      and (copied_at is null or (stamp is not null and not has_stamp))
    order by manifests.day
    limit :limit
    `,
    { destinationId, workspaceId, limit: copiesPerRun },
  )
  return rows
}

const copyOne = async (deps: CopyDeps, stored: StoredTarget, { day, lacksStamp }: DueCopy, signal: AbortSignal): Promise<void> => {
  const { db, keyRing, config } = deps
  const timeoutMs = Math.min(partMaxMs, config.DELIVERY_ATTEMPT_TIMEOUT_MS)
  const { workspaceId, destination } = stored
  const manifest = await createManifests(db).find(workspaceId, day)
  const callDeps = { ...deps, openCredentials: createOpenCredentials(keyRing) }
  // What a bucket with a lock has is not sent again: that would make another locked version.
  for (const part of partsOf(manifest, deps.stores).filter(({ fileName }) => !lacksStamp || fileName.endsWith('.tsr'))) {
    const result = await callTarget(callDeps, stored, { timeoutMs, cancelled: signal }, (connector, target, context) =>
      connector.deliver(payloadOf(stored, day, part), target, context),
    )
    if (result instanceof DeliveryError) throw result
  }
  const copy = { destination_id: destination.id, workspace_id: workspaceId, day, has_stamp: manifest.stamp !== null }
  await db('manifest_copies').insert(copy).onConflict(['destination_id', 'day']).merge()
}

const payloadOf = (
  { workspace, destination }: StoredTarget,
  day: string,
  { fileName, contentType, sizeBytes, sha256, open }: ManifestPart,
): Payload => {
  const deliveryId = `${fileName}_${destination.id}`
  return {
    deliveryId,
    messageId: `${deliveryId}.${sha256.slice(0, 16)}`,
    attempt: 1,
    again: 0,
    workspace,
    connectionId: '',
    documentId: `manifest-${day}`,
    repoId: 'manifests',
    // Has the id of the destination, so that no source system has chosen the same, and 37 of the 40 characters of content servers.
    docId: `${day}-${destination.id}`,
    compId: fileName,
    erpObjectType: null,
    erpObjectId: null,
    arObject: null,
    fileName,
    description: null,
    fields: {},
    properties: {},
    path: pathOfManifest(fileName),
    location: null,
    contentType,
    sizeBytes,
    sha256,
    receivedAt: new Date(`${day}T00:00:00Z`),
    open: (start = 0) => open({ start }),
    downloadUrl: () => undefined,
  }
}
