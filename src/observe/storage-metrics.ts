import { Gauge, type Metric } from 'prom-client'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'

interface Storage {
  bytes: number
  usedRatio: number
}

/** Reads the stored bytes of all workspaces, and how much of its quota the fullest one has used. */
const readStorage = async (db: Database, maxBytes: number): Promise<Storage> => {
  const { rows } = await db.raw<{ rows: Storage[] }>(
    `
    select
      coalesce(sum(stored), 0)::bigint as bytes,
      coalesce(max(stored / case when quota > 0 then quota when quota = 0 then 1 end), 0)::float8 as "usedRatio"
    from (
      select sum(bytes) as stored, least(nullif(:maxBytes::bigint, 0), (settings ->> 'receiver_max_bytes')::bigint) as quota
      from workspace_storage
      join workspaces on workspaces.id = workspace_storage.workspace_id
      group by workspaces.id
    ) as workspace
    `,
    { maxBytes },
  )
  return rows[0]!
}

export const createStorageMetrics = (db: Database, { RELAY_WORKSPACE_MAX_BYTES }: Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES'>): Metric[] => {
  const gauge = (name: string, help: string, value: (storage: Storage) => number) =>
    new Gauge({
      name,
      help,
      registers: [],
      async collect() {
        this.set(await readStorage(db, RELAY_WORKSPACE_MAX_BYTES).then(value, () => Number.NaN))
      },
    })
  return [
    gauge('relay_stored_bytes', 'Bytes of content that all workspaces store', ({ bytes }) => bytes),
    gauge(
      'relay_workspace_quota_used_ratio',
      'Stored bytes of the fullest workspace, divided by its quota; 0 if no workspace has a quota',
      ({ usedRatio }) => usedRatio,
    ),
  ]
}
