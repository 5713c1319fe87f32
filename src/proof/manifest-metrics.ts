import { gaugeOf } from '../base/metrics.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'

// What an operator must know of manifests: that a day is not closed, and that a destination does not get them.

/** Seconds since the end of the first day without a manifest, of the workspace that is furthest behind. */
const daysLate = `
  select greatest(0, extract(epoch from now() - min(coalesce(latest.day + 2, (created_at at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'))) as seconds
  from workspaces
  left join lateral (
    select day
    from manifests
    where workspace_id = workspaces.id
    order by day desc
    limit 1
  ) as latest on true
`

/** Seconds since the oldest manifest was made that a destination lacks. */
const copiesLate = `
  select extract(epoch from now() - min(made_at)) as seconds
  from destinations
  join manifests on manifests.workspace_id = destinations.workspace_id
  where destinations.id = any(:ids)
    and not exists (
      select
      from manifest_copies
      where destination_id = destinations.id
        and manifest_copies.day = manifests.day
    )
`

export const createManifestMetrics = (db: Database, { PROOF_DESTINATIONS: ids }: Pick<Config, 'PROOF_DESTINATIONS'>) => {
  const read = async (statement: string): Promise<number> => {
    const { rows } = await db.raw<{ rows: { seconds: string | number | null }[] }>(statement, { ids })
    return Number(rows[0]!.seconds ?? 0)
  }
  return [
    gaugeOf(
      'relay_manifest_late_seconds',
      'Time since the end of the first day without a manifest, of the workspace that is furthest behind; 0 if each has those of all days that are over',
      () => read(daysLate),
    ),
    gaugeOf(
      'relay_manifest_copy_late_seconds',
      'Age of the oldest manifest that a destination of PROOF_DESTINATIONS lacks; 0 if each has all of its workspace',
      () => read(copiesLate),
    ),
  ]
}
