import { setTimeout as sleep } from 'node:timers/promises'
import { dayAfter, dayMs, dayOf } from '../base/day.ts'
import { messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import type { ContentStore } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import { isOutage } from '../db/errors.ts'
import type { Installation } from '../db/installation.ts'
import type { OnItsOwn } from '../db/on-its-own.ts'
import { createSignSha256 } from '../security/cms-sign.ts'
import type { Outbound } from '../security/outbound.ts'
import type { KeyRing } from '../security/seal.ts'
import type { PreviousManifest } from './manifest-rows.ts'
import { manifestOf, type ManifestCounts } from './manifest.ts'
import { openProofKey } from './proof-key.ts'
import { requestTimeStamp } from './time-stamp.ts'

export interface ManifestDeps {
  db: Database
  writeTo: ContentStore
  keyRing: Pick<KeyRing, 'seal' | 'open'>
  installation: Pick<Installation, 'id'>
  outbound: Pick<Outbound, 'dispatcher'>
  onItsOwn: OnItsOwn
  config: Pick<Config, 'PROOF_TIMESTAMP_URL'>
}

interface Due {
  workspaceId: string
  workspace: string
  /** The first day: that on which the workspace was created, or the one before, if a clock that was late has received a document on it. */
  firstOn: string
  previous: PreviousManifest | null
}

// What was begun on a day counts for it if it is recorded in this time: an attempt is recorded for two minutes.
const closeMs = 10 * 60_000

/**
 * Makes the manifests of all days that are over, workspace by workspace and day by day: each names the digest of the one before. Days on which
 * nothing ran are made up for, so the chain has no gap. Then asks for the time stamps that are due.
 * @returns a summary for operators
 */
export const makeManifests = async (deps: ManifestDeps, now: Date, signal: AbortSignal): Promise<string> => {
  const lastDay = dayOf(new Date(now.getTime() - closeMs - dayMs))
  let made = 0
  const due = await listDue(deps.db, lastDay)
  if (due.length > 0) {
    const makeOne = await createMakeOne(deps)
    for (const { previous: last, ...workspace } of due) {
      await deps.onItsOwn(
        'manifests',
        { workspace_id: workspace.workspaceId },
        async () => {
          await closeDay(deps.db, workspace.workspaceId, lastDay, signal)
          let previous = last
          let day = previous ? dayAfter(previous.day) : workspace.firstOn
          for (; day <= lastDay; day = dayAfter(day)) {
            signal.throwIfAborted()
            const next = await makeOne(workspace, day, previous)
            // Another run of the job makes them.
            if (!next) return
            previous = next
            made += 1
          }
        },
        signal,
      )
    }
  }
  const { PROOF_TIMESTAMP_URL: url } = deps.config
  const stamped = url === undefined ? 0 : await stampDue(deps, url, signal)
  return `${made} manifests made, ${stamped} stamped`
}

// A transaction that waits for another statement ends within half a minute.
const closingMaxMs = 60_000
const closingPauseMs = 50

/**
 * Closes a day and those before: what is written from now on belongs to a later one, whatever the clocks say. Then waits for the transactions that
 * may not have seen it. Each has its number before it looks: see `time_in_manifest`.
 */
const closeDay = async (db: Database, workspaceId: string, day: string, signal: AbortSignal): Promise<void> => {
  await db('workspaces').where({ id: workspaceId }).whereRaw('coalesce(closed_on < ?::date, true)', [day]).update({ closed_on: day })
  const { rows } = await db.raw<{ rows: { next: string }[] }>('select pg_snapshot_xmax(pg_current_snapshot())::text as next')
  const { next } = rows[0]!
  const endsAt = performance.now() + closingMaxMs
  for (;;) {
    const { rows: ended } = await db.raw<{ rows: { isEnded: boolean }[] }>('select event_horizon() >= ?::bigint as "isEnded"', [next])
    if (ended[0]!.isEnded) return
    if (performance.now() > endsAt) throw new Error(`the day ${day} is not closed: a transaction that began before runs for over a minute`)
    await sleep(closingPauseMs, undefined, { signal })
  }
}

/** Returns the workspaces whose manifests are not made up to this day, with the last one of each. */
const listDue = async (db: Database, lastDay: string): Promise<Due[]> => {
  const { rows } = await db.raw<{ rows: Due[] }>(
    `
    select
      workspaces.id as "workspaceId", user_slug || '/' || workspace_slug as workspace,
      to_char(
        greatest(
          workspaces.created_at - interval '1 day',
          least(workspaces.created_at, case when latest.day is null then (select min(received_at) from documents where workspace_id = workspaces.id) end)
        ) at time zone 'UTC',
        'YYYY-MM-DD') as "firstOn",
      case when latest.day is not null
        then jsonb_build_object('day', latest.day, 'sha256', encode(latest.sha256, 'hex'), 'database', latest.database) end as previous
    from workspaces
    left join lateral (
      select day, sha256, database
      from manifests
      where workspace_id = workspaces.id
      order by day desc
      limit 1
    ) as latest on true
    where coalesce(latest.day < :lastDay::date, (workspaces.created_at at time zone 'UTC')::date <= :lastDay::date)
    order by workspaces.id
    `,
    { lastDay },
  )
  return rows
}

type MakeOne = (
  workspace: Pick<Due, 'workspaceId' | 'workspace'>,
  day: string,
  previous: PreviousManifest | null,
) => Promise<PreviousManifest | undefined>

const createMakeOne = async ({ db, writeTo, keyRing, installation, config }: ManifestDeps): Promise<MakeOne> => {
  const installationId = await installation.id()
  const key = await openProofKey(db, keyRing, installationId)
  const sign = createSignSha256(key)
  const database = await identityOf(db)
  return async ({ workspaceId, workspace }, day, previous) => {
    const counts: ManifestCounts = { legalHolds: 0, documents: 0, receipts: 0, superseded: 0 }
    const madeAt = new Date()
    const lines = manifestOf(db, { installationId, workspaceId, workspace, day, previous, database, madeAt }, counts)
    const content = await writeTo.write(workspaceId, lines)
    const isMade = await db.transaction(async (trx) => {
      const { rowCount } = await trx.raw<{ rowCount: number }>(
        `
        insert into manifests (
          workspace_id, day, content_id, sha256, size_bytes, documents, receipts, database, signature, certificate, is_stamp_due)
        select :workspaceId, :day::date, :contentId, :sha256, :sizeBytes, :documents, :receipts, :database, :signature, :certificate, :isStampDue
        where exists (select from workspaces where id = :workspaceId)
        on conflict (workspace_id, day) do nothing
        `,
        {
          workspaceId,
          day,
          contentId: content.id,
          sha256: content.sha256,
          sizeBytes: content.sizeBytes,
          documents: counts.documents,
          receipts: counts.receipts,
          database,
          signature: sign(content.sha256, madeAt),
          certificate: key.certificate,
          isStampDue: config.PROOF_TIMESTAMP_URL !== undefined,
        },
      )
      // Otherwise another run of the job was faster, or the workspace was deleted.
      if (rowCount === 1) await content.own(trx)
      return rowCount === 1
    })
    if (isMade) return { day, sha256: content.sha256.toString('hex'), database }
    await content.discard()
    return undefined
  }
}

/**
 * Returns what changes when the database is restored, replaced or promoted: the identifier of the cluster, its timeline, and the numbers that it has
 * given to the database and to the table.
 * @returns null if the role may not ask, or the service does not tell
 */
export const identityOf = async (db: Database): Promise<string | null> => {
  try {
    const { rows } = await db.raw<{ rows: { identity: string }[] }>(
      `
      select
        concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), pg_database.oid, 'manifests'::regclass::oid) as identity
      from pg_control_system(), pg_database
      where datname = current_database()
      `,
    )
    return rows[0]?.identity ?? null
  } catch (thrown) {
    if (isOutage(thrown)) throw thrown
    return null
  }
}

// Of one run: an authority that is away costs each of them half a minute.
const stampsPerRun = 20

/** Asks for the next time stamps. One that is refused is noted, and asked for again by the next run. */
const stampDue = async ({ db, outbound, onItsOwn }: ManifestDeps, url: string, signal: AbortSignal): Promise<number> => {
  const rows: { workspaceId: string; day: string; sha256: Buffer }[] = await db('manifests')
    .where({ is_stamp_due: true })
    // Those that were refused come last, so that they do not stop the others.
    .orderByRaw('stamp_error is not null, day, workspace_id')
    .limit(stampsPerRun)
    .select('workspace_id as workspaceId', db.raw('day::text'), 'sha256')
  let stamped = 0
  for (const { workspaceId, day, sha256 } of rows) {
    const row = { workspace_id: workspaceId, day }
    await onItsOwn(
      'manifests',
      row,
      async () => {
        try {
          const stamp = await requestTimeStamp(outbound, url, sha256, signal)
          await db('manifests').where(row).update({ stamp, is_stamp_due: false, stamp_error: null })
          stamped += 1
        } catch (thrown) {
          signal.throwIfAborted()
          await db('manifests')
            .where(row)
            .update({ stamp_error: plainText(messageOf(thrown)) })
          throw thrown
        }
      },
      signal,
    )
  }
  return stamped
}
