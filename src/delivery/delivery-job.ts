import { enrichedData } from '../archive/enriched-data.ts'
import { metadataSelection } from '../archive/metadata.ts'
import { placeOf } from '../archive/place.ts'
import type { Config } from '../config/config.ts'
import { createStatement, type Database } from '../db/database.ts'
import { dueInMs } from '../db/due.ts'
import type { Circuit } from '../domain/circuit.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import type { DeliveryEnd, DeliveryStatus } from '../domain/delivery-states.ts'
import type { TemplateDocument } from '../domain/template.ts'
import { isBehindCircuit, passesCircuit, startedAttempt } from './circuit.ts'
import { hasNewerCopy, replacedAtHome } from './newer-copy.ts'
import { addSlots, catchUpMs, intervalMs, leaseMs, limitsOf, type DestinationLimits } from './slots.ts'
import type { DeliveryRef } from './transition.ts'

/** A delivery, loaded for one attempt: the document, its content and the destination as they are now. */
export interface DeliveryJob extends TemplateDocument {
  status: DeliveryStatus
  /** Planned when the document was received or enriched; the same for every attempt. */
  path: string
  /** The connection that planned the delivery. It may have been deleted since. */
  connectionId: string
  /** Number of recorded attempts. */
  attempts: number
  /** Where an attempt has stored the document. Null before the first one that did. */
  location: string | null
  /** True if the source system has replaced or deleted the document. */
  superseded: boolean
  /** True if a newer document has been delivered to the same place. See `placeOf`. */
  overtaken: boolean
  /** Times that an older document may have overwritten this one at its path. */
  overwrites: number
  /** Number of requests to deliver the document again. */
  again: number
  /** The place at which the destination alone has the content of another document, which the delivery would replace. Null if there is none. */
  replacesAtHome: string | null
  workspaceId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** The request that contained the document. */
  requestId: string
  /** True if the document has enrichments, which may find more. */
  isEnriched: boolean
  /** What its connection wants to be written beside the document: templates by name. */
  properties: Record<string, string>
  /** True if the filter of its connection needs fields: whether it delivers is decided before the first attempt. */
  isFilteredByFields: boolean
  content: { id: string; store: ContentStoreKind; sizeBytes: number; appends: number }
  /** Null after an append, until a delivery has computed it. */
  sha256: Buffer | null
  destination: {
    id: string
    name: string
    connector: string
    config: Record<string, unknown>
    deleted: boolean
    downloadLinksVersion: number
  }
  credentialsSealed: Buffer
  /** Message of the last attempt, if it failed. */
  lastError: string | null
  lastErrorCode: string | null
  /** What has ended the delivery, if it has failed or was cancelled. */
  endedBy: DeliveryEnd | null
  /**
   * Null, unless the connection of the delivery is inactive: then the settings of the active connections that also lead from the
   * repository to the destination.
   */
  activeRoutes: unknown[] | null
  /** The attempt under way: the one that was to be started, or an earlier one whose worker was lost. Null if none was started. */
  attemptId: string | null
  /** True if the attempt that was to be started has a slot of the destination. */
  hasSlot: boolean
  limits: DestinationLimits
  /** Why the attempt has to wait in the line of the destination. Null unless it was refused a slot. */
  refusal: Refusal | null
  /** True if the delivery was called from the line, so that a place is kept for it. */
  isCalled: boolean
  /** True if other deliveries wait in line. */
  hasLine: boolean
  /** Failed attempts of the round. */
  failures: number
  /** Rest of the time to live of the round. Null before its first failure. */
  remainingMs: number | null
  /** True if the time to live of the round has ended. The first attempt is made however late it is. */
  isExpired: boolean
  /** True if the round is over: the delivery has failed in it, or a manual retry is to start another one. */
  isRoundOver: boolean
  /** Time until the retry that the last attempt of the round has planned. Null if it is due, and before the first failure. */
  dueInMs: number | null
}

interface Refusal {
  waitingFor: 'slot' | 'circuit'
  /** Null while the circuit is closed. */
  circuit: Exclude<Circuit['state'], 'closed'> | null
  /** When the delivery is to ask again by itself, from now on. Null if it is called in any case. */
  askAgainMs: number | null
}

/** `isNew`: the destination has too few slots for its limits. */
type LoadedJob = DeliveryJob & { isNew: boolean }

// An attempt of a delivery in one of these statuses may send something.
const startable: readonly DeliveryStatus[] = ['pending', 'retrying']

type LeaseConfig = Pick<
  Config,
  | 'DELIVERY_CIRCUIT_FAILURES'
  | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'
  | 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'
  | 'DELIVERY_MAX_PER_MINUTE_PER_DESTINATION'
>

interface JobRequest extends DeliveryRef {
  /** The round of attempts. */
  round: string
}

/** An attempt to start. */
interface StartRequest {
  attemptId: string
  /** False if the worker has no place for it. */
  hasPlace: boolean
  /** True if it does not queue behind the deliveries that wait: it was called, or is a manual retry. */
  isCalled: boolean
  /** The attempt that it continues, and whose slot it inherits. */
  continues: string | undefined
  /** A retry that was planned for this time or earlier is due: a timestamp, or `infinity`. By default, the clock of the database decides. */
  dueBy?: string | undefined
}

// A place in a worker is free again soon; deliveries that wait for one are not called.
export const placeWaitMs = 5_000

// Temporal's test server skips the time between two attempts, which the clock of the database does not see.
const remaining = `least(round_remaining_ms, extract(epoch from round_expires_at - now()) * 1000)::float8`

/** SQL: the delivery, with its document and its destination as they are now. */
const load = `
    select
      deliveries.status, deliveries.path, deliveries.connection_id as "connectionId", deliveries.attempts,
      location, overwrites, again, superseded_at is not null as superseded,
      -- Only a superseded document can be overtaken.
      case when superseded_at is not null then ${hasNewerCopy(`and replacing.status = 'delivered'`)} else false end as overtaken,
      deliveries.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace,
      request_id as "requestId", repo_id as "repoId", doc_id as "docId", comp_id as "compId",
      ${metadataSelection},
      fields, is_enriched as "isEnriched",
      coalesce(planned_by.settings -> 'properties', '{}') as properties,
      coalesce(planned_by.settings #> '{filter,fields}' <> '{}', false) as "isFilteredByFields",
      content_type as "contentType", received_at as "receivedAt", credentials_sealed as "credentialsSealed",
      case when appends = 0 then sha256 else appended_sha256 end as sha256,
      jsonb_build_object(
        'id', contents.id, 'store', contents.store, 'sizeBytes', documents.size_bytes, 'appends', appends) as content,
      jsonb_build_object(
        'id', destinations.id, 'name', destinations.name, 'connector', connector_type, 'config', config,
        'deleted', destinations.deleted_at is not null, 'downloadLinksVersion', download_links_version) as destination,
      deliveries.last_error as "lastError", last_error_code as "lastErrorCode", ended_by as "endedBy", attempt_id,
      case when round = :round then failures else 0 end as failures,
      case when round = :round then ${remaining} end as "remainingMs",
      coalesce(round = :round and failures > 0 and ${remaining} <= 0, false) as "isExpired",
      coalesce(round = :round and (deliveries.status = 'failed' or round_remaining_ms is null), false) as "isRoundOver",
      case
        when round = :round and deliveries.status = 'retrying' and waiting is null and attempt_id is null and not :isCalled
        then ${dueInMs('next_attempt_at')}
      end as "dueInMs",
      waiting is not distinct from 'called' as "isCalled",
      ${limitsOf('destinations')},
      -- A connection that was deleted, or from which the destination was removed, does not hold what it has forwarded.
      case when exists (
        select
        from connections
        join connection_destinations on connection_id = connections.id
        where connections.id = deliveries.connection_id
          and destination_id = deliveries.destination_id
          and not is_active
      ) then array(
        select settings
        from connection_repositories
        join connection_destinations using (connection_id)
        join connections on connections.id = connection_id
        where repository_id = documents.repository_id
          and connection_destinations.destination_id = deliveries.destination_id
          and is_active
      ) end as "activeRoutes"
    from deliveries
    join documents on documents.id = deliveries.document_id
    ${enrichedData}
    left join connections as planned_by on planned_by.id = deliveries.connection_id
    join contents on contents.id = documents.content_id
    join destinations on destinations.id = deliveries.destination_id
    join workspaces on workspaces.id = deliveries.workspace_id
    where deliveries.document_id = :documentId
      and deliveries.destination_id = :destinationId`

/** SQL: an attempt that may be started, with its place among the deliveries that wait for the destination. */
const permittedAttempt = `
    select
      max_concurrent, max_per_minute,
      max_concurrent > (select count(*) from destination_slots where destination_id = :destinationId)
        or not exists (select from destination_gates where destination_id = :destinationId) as "isNew",
      "isCalled" or not exists (
        select
        from deliveries
        where destination_id = :destinationId
          and waiting = 'in_line'
          and document_id < :documentId
      ) as is_first
    from job
    where :attemptId::text is not null
      and attempt_id is null
      and status = any (:startable)
      and not (destination -> 'deleted')::boolean
      and not "isExpired"
      and not "isRoundOver"
      and "dueInMs" is null
      -- A crash of PostgreSQL may undo the mark and the lease of an attempt, which costs less than to wait for the disk each time.
      and set_config('synchronous_commit', 'off', true) = 'off'`

/** SQL: the gate of the destination, unless its limit per minute, its circuit or the deliveries in line are against an attempt. */
const passedGate = `
  gate as (
    -- Locked, so that of two attempts at the same moment the second one sees the start of the first.
    select
    from destination_gates
    join permitted on max_per_minute = 0 or next_start_at <= clock_timestamp() + :catchUpMs::integer * interval '1 millisecond'
    where destination_id = :destinationId
      and (max_per_minute > 0 or circuit <> 'closed')
      and ${passesCircuit}
      and :hasPlace
      and (is_first or :isCalled)
    for update of destination_gates
  ), open_gate as (
    -- Without a limit per minute and with a closed circuit, attempts do not wait for each other.
    select
    from destination_gates, permitted
    where destination_id = :destinationId
      and max_per_minute = 0
      and circuit = 'closed'
      and :hasPlace
      and (is_first or :isCalled)
  )`

const placeOfJob = (path: string) =>
  placeOf({ kind: `job.destination ->> 'connector'`, path, docId: 'job."docId"', compId: 'job."compId"' })

/** SQL: leases a slot of the destination. An attempt that continues another one inherits its slot. */
const leasedSlot = `
  slot as (
    update destination_slots
    set holder = :attemptId, place = (select ${placeOfJob('path')} from job), leased_until = now() + :leaseMs::integer * interval '1 millisecond'
    where destination_id = :destinationId
      and number = coalesce(
        (
          select number
          from destination_slots, permitted
          where destination_id = :destinationId
            and holder = :continues
        ),
        (
          select number
          from destination_slots
          join permitted on number <= max_concurrent and not "isNew"
          where destination_id = :destinationId
            and leased_until < now()
            and (exists (select from open_gate) or exists (select from gate))
          order by number
          limit 1
          for update of destination_slots skip locked
        )
      )
      and (leased_until < now() or holder = :continues)
    returning number
  ), passed as (
    update destination_gates
    set
      next_start_at = case
        when max_per_minute = 0 then next_start_at
        else greatest(next_start_at, clock_timestamp()) + :intervalMinutes::float / max_per_minute * interval '1 minute'
      end,${startedAttempt}
    from slot, permitted, gate
    where destination_id = :destinationId
  )`

/** SQL: why no slot was leased, and when the delivery asks again. The first in line has a timer, and so has a time to live that ends. */
const refusedAttempt = `
    select
      ${isBehindCircuit} as is_behind_circuit, circuit,
      least(
        case
          when not is_first then null
          when ${isBehindCircuit} then greatest(interval '0', trial_at - now())
          when permitted.max_per_minute > 0 and next_start_at > now() + :catchUpMs::integer * interval '1 millisecond' then next_start_at - now()
          when not :hasPlace then :placeWaitMs::integer * interval '1 millisecond'
        end,
        case when job.failures > 0 then "remainingMs" * interval '1 millisecond' end
      ) as wait
    from permitted, job, destination_gates
    where destination_id = :destinationId
      and not "isNew"
      and not exists (select from slot)`

/** SQL: starts the attempt of the delivery `job`, or has it wait in line. */
const startAttempt = `
  permitted as (${permittedAttempt}
  ), ${passedGate}, ${leasedSlot}, started as (
    update deliveries
    set attempt_id = :attemptId, waiting = null, begin_at = null
    from slot
    where document_id = :documentId
      and destination_id = :destinationId
      and attempt_id is null
      and status = any (:startable)
    returning attempt_id, path
  ), refused as (${refusedAttempt}
  ), in_line as (
    update deliveries
    set waiting = 'in_line', begin_at = null, next_attempt_at = coalesce(now() + wait, 'infinity')
    from refused
    where document_id = :documentId
      and destination_id = :destinationId
      and attempt_id is null
      and status = any (:startable)
  )`

/** Loads the delivery and starts its attempt, in one round trip. */
const loadAndStart = createStatement<LoadedJob>(
  'load-delivery-job',
  `
  with job as (${load}
  ), ${startAttempt}
  select
    job.*,
    jsonb_build_object('maxConcurrent', job.max_concurrent, 'maxPerMinute', job.max_per_minute) as limits,
    -- An enrichment may have planned the path again until this moment.
    coalesce(started.path, job.path) as path,
    ${replacedAtHome(placeOfJob('coalesce(started.path, job.path)'))} as "replacesAtHome",
    coalesce(started.attempt_id, job.attempt_id) as "attemptId", number is not null as "hasSlot",
    case when is_behind_circuit is not null then jsonb_build_object(
      'waitingFor', case when is_behind_circuit then 'circuit' else 'slot' end,
      'circuit', case when is_behind_circuit then circuit end,
      'askAgainMs', ceil(extract(epoch from wait) * 1000)
    ) end as refusal,
    exists (
      select
      from deliveries
      where destination_id = :destinationId
        and waiting = 'in_line'
    ) as "hasLine",
    coalesce("isNew", false) as "isNew"
  from job
  left join permitted on true
  left join slot on true
  left join started on true
  left join refused on true
  `,
)

/**
 * Loads a delivery by its key. If an attempt is to be made and the limits of the destination allow it, leases a slot and marks the attempt
 * as started, in the same statement. The mark stays until the attempt is recorded: one that is found here belongs to an attempt whose
 * worker was lost, and is not replaced.
 * @param noteBegun called after each load; the dispatcher then drops the delivery from its open set
 */
export const createLoadJob = (db: Database, config: LeaseConfig, noteBegun: (delivery: DeliveryRef) => void = () => {}) => {
  const run = async (request: JobRequest, start?: StartRequest): Promise<LoadedJob | undefined> => {
    const [job] = await loadAndStart(db, {
      documentId: request.documentId,
      destinationId: request.destinationId,
      round: request.round,
      ...(start ?? { attemptId: null, hasPlace: false, isCalled: false }),
      placeWaitMs,
      continues: start?.continues ?? null,
      dueBy: start?.dueBy ?? null,
      startable: [...startable],
      maxConcurrent: config.DELIVERY_MAX_CONCURRENT_PER_DESTINATION,
      maxPerMinute: config.DELIVERY_MAX_PER_MINUTE_PER_DESTINATION,
      catchUpMs,
      circuitFailures: config.DELIVERY_CIRCUIT_FAILURES,
      intervalMinutes: intervalMs({ maxPerMinute: 1 }) / 60_000,
      leaseMs: leaseMs(config),
    })
    return job
  }

  /** @param start the attempt to start; undefined if none is to be made @returns undefined if the document or its content is gone */
  return async (request: JobRequest, start?: StartRequest): Promise<DeliveryJob | undefined> => {
    try {
      const job = await run(request, start)
      if (!job?.isNew) return job
      await addSlots(db, request.destinationId, job.limits)
      return await run(request, start)
    } finally {
      noteBegun(request)
    }
  }
}

export type LoadJob = ReturnType<typeof createLoadJob>
