import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { notFound, validationFailed } from '../base/refusals.ts'
import { placeKeysOf } from '../connectors/index.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import type { Page, PageRequest } from '../db/page.ts'
import { startCancelling } from '../delivery/cancel.ts'
import { closeCircuit, endPause } from '../delivery/circuit.ts'
import { asColumns, snakeCased, type CamelCasedOutput } from '../domain/casing.ts'
import { circuitStates } from '../domain/circuit.ts'
import { timestamp } from '../domain/date-range.ts'
import { findHomeUse } from '../home/copies.ts'
import { createProbeHome } from '../home/probe.ts'
import { findTwin } from '../home/sole-place.ts'
import { configuredKind, type Configured } from '../workspace/configured-kind.ts'
import { activity, name as displayName, openObject } from '../workspace/inputs.ts'
import { lockRouting, workspaceNameOf } from '../workspace/workspaces.ts'
import { deleteConnections, unlinkConnections } from './connections.ts'
import { findRemoval, removalSentence, type DeletionOptions, type Removal } from './removal.ts'

const destinationValues = z.strictObject({ name: displayName, config: openObject.meta({ masked: true }) })

/** What a destination has besides what people set. `slots` follows from its config. */
export const destinationState = z.object({
  credentials_expire_at: timestamp
    .nullable()
    .describe('When the credentials expire, if they contain a client certificate. The incident `certificate.expiring` announces it.'),
  sign_in: z
    .string()
    .nullable()
    .describe(
      'The way in which the credentials sign in, by its name in `x-sign-in` of their schema, such as `sas_token`. Null if the connector type has only one.',
    ),
  last_error: z
    .string()
    .nullable()
    .describe('The error of the last attempt that failed. Null once an attempt or a test has succeeded since.'),
  last_error_code: z.string().nullable().describe('The code of `last_error`.'),
  last_error_at: timestamp.nullable().describe('When `last_error` occurred.'),
  failed_attempts: z.int().describe('Attempts that have failed since the last success.'),
  last_delivered_at: timestamp.nullable(),
  circuit: z
    .enum(circuitStates)
    .meta({ id: 'CircuitState' })
    .describe('`open`: deliveries wait, because the last attempts failed. `half_open`: one delivery tries the target. `closed` otherwise.'),
  circuit_since: timestamp.nullable().describe('When `circuit` changed last.'),
  next_trial_at: timestamp.nullable().describe('When the next delivery may try the target, if `circuit` is `open`.'),
  slots: z
    .int()
    .describe(
      'Deliveries that may run at this destination at a time: `max_concurrent_deliveries` of the config, or the default of the installation.',
    ),
  slots_in_use: z.int().describe('Deliveries that run at this destination at present.'),
})

export interface Destination extends Configured<typeof destinationValues>, Omit<CamelCasedOutput<typeof destinationState>, 'slots'> {
  connectorType: string
  status: 'connected' | 'failing'
  credentialsSealed: Buffer
}

/** What a destination shows of its credentials. */
export type CredentialsFacts = Pick<Destination, 'credentialsExpireAt' | 'signIn'>

/** A repository that a connection links to a destination. */
export const destinationConnection = z
  .object({ id: z.string(), name: z.string(), source_repo_id: z.string(), source_name: z.string(), status: activity })
  .meta({ id: 'DestinationConnection' })

export interface DestinationChange {
  name?: string | undefined
  config?: Record<string, unknown> | undefined
  /** `areNew` is false for stored credentials that are sealed again for a changed config. `facts` are absent then. */
  credentials?: { sealed: Buffer; areNew: boolean; facts?: CredentialsFacts } | undefined
}

const ofGate = (expression: string, condition = 'true') =>
  `(select ${expression} from destination_gates where destination_id = destinations.id and ${condition})`

export const destinationKind = configuredKind<typeof destinationValues, Destination>({
  table: 'destinations',
  event: 'destination',
  noun: 'Destination',
  schema: destinationValues,
  isKept: true,
  more: ['connector_type', 'status', 'credentials_sealed', 'credentials_expire_at', 'sign_in', 'last_delivered_at'],
  expressions: [
    `coalesce(${ofGate('circuit')}, 'closed') as circuit`,
    `${ofGate('last_error')} as "lastError"`,
    `${ofGate('last_error_code')} as "lastErrorCode"`,
    `${ofGate('last_error_at')} as "lastErrorAt"`,
    `coalesce(${ofGate('failed_attempts')}, 0) as "failedAttempts"`,
    `${ofGate('circuit_since')} as "circuitSince"`,
    `${ofGate('trial_at', "circuit = 'open'")} as "nextTrialAt"`,
    `(select count(*) from destination_slots where destination_id = destinations.id and leased_until >= now()) as "slotsInUse"`,
  ],
})

/** The columns that a deleted destination loses. */
const erased = { config: '{}', credentials_sealed: Buffer.alloc(0), credentials_expire_at: null, sign_in: null }

/**
 * Returns the names of the values that a change alters. The values themselves do not go into the audit log: headers of a webhook, for
 * example, may hold a secret.
 */
export const changedNames = (current: Destination, { name, config, credentials }: DestinationChange): string[] => {
  const keys = config ? Object.keys({ ...current.config, ...config }) : []
  return [
    ...(name !== undefined && name !== current.name ? ['name'] : []),
    ...keys.filter((key) => !isDeepStrictEqual(current.config[key], config?.[key])).map((key) => `config.${key}`),
    // Sealed values cannot be compared.
    ...(credentials?.areNew ? ['credentials'] : []),
  ]
}

/** Records what has happened to a destination. @param predicate the sentence after its name: `was created` */
const recordOf = (
  trx: Transaction,
  workspaceId: string,
  event: `destination.${'created' | 'updated' | 'deleted'}`,
  { id, name, connectorType }: Pick<Destination, 'id' | 'name' | 'connectorType'>,
  predicate: string,
  more: object,
  actor: AuditActor,
) =>
  record(trx, {
    workspaceId,
    event,
    subjectId: id,
    description: `Destination ${name} (${connectorType}) ${predicate}`,
    metadata: { name, connector_type: connectorType, ...more },
    actor,
  })

/** Locks the circuit of a destination. The record of an attempt locks it before the destination, so every other transaction also does. */
const lockGate = async (trx: Transaction, destinationId: string): Promise<void> => {
  await trx('destination_gates').select('destination_id').where({ destination_id: destinationId }).forUpdate()
}

/** @throws AppError 409 if contents are at a destination only, or may soon be */
const requireNoHome = async (trx: Transaction, { id, name }: Destination): Promise<void> => {
  const { repoIds, hasContents } = await findHomeUse(trx, id)
  if (repoIds.length > 0) {
    throw new AppError('conflict', `Destination ${name} is the home of ${repoIds.join(', ')}. Give the repositories another home, or none.`)
  }
  if (hasContents) throw new AppError('conflict', `Destination ${name} alone has the contents of documents, which would be lost.`)
}

/** @throws AppError 422 if documents whose content is at a destination only would no longer be found there */
const requireSamePlace = ({ connectorType }: Destination, changed: readonly string[]): void => {
  const moved = placeKeysOf(connectorType)
    .map((key) => `config.${key}`)
    .filter((path) => changed.includes(path))
  if (moved.length === 0) return
  const message = 'cannot be changed: the destination alone has the contents of documents, which the relay would no longer find there'
  throw validationFailed(moved.map((path) => ({ path, message })))
}

/** @throws AppError 422 if another destination names the same place, and one of the two is a home */
const requireNoTwin = async (
  trx: Transaction,
  workspaceId: string,
  target: Pick<Destination, 'id' | 'connectorType' | 'config'>,
  isHome: boolean,
): Promise<void> => {
  const twin = await findTwin(trx, workspaceId, target, isHome)
  if (twin === undefined) return
  const message = `is also a place of destination ${twin}: one of the two is the home of contents, which deliveries to the other would replace`
  throw validationFailed([{ path: `config.${placeKeysOf(target.connectorType)[0]}`, message }])
}

/** Ends what is sent to a destination, in the transaction that deletes it. */
export type OnDestinationDelete = (trx: Transaction, workspaceId: string, destinationId: string, actor: AuditActor) => Promise<void>

/** @param onDelete what else a deletion ends, in this order */
export const createDestinations = (db: Database, onDelete: readonly OnDestinationDelete[]) => {
  /** @throws AppError 404 */
  const find = (workspaceId: string, id: string): Promise<Destination> => destinationKind.find(db, workspaceId, id)
  return {
    find,

    probeHome: createProbeHome(db),

    /** Returns the name of a workspace, on which depends what the operator allows. */
    workspaceName: (workspaceId: string): Promise<string> => workspaceNameOf(db, workspaceId),

    /** Lists destinations in order of creation. */
    list: (workspaceId: string, { type, ...page }: PageRequest & { type?: string | undefined }): Promise<Page<Destination>> =>
      destinationKind.list(db, workspaceId, page, type ? { connector_type: type } : {}),

    exists: async (workspaceId: string, id: string): Promise<boolean> =>
      (await db('destinations').select('id').where({ workspace_id: workspaceId, id }).whereNull('deleted_at').first()) !== undefined,

    listConnections: async (id: string) => {
      const { rows } = await db.raw<{ rows: CamelCasedOutput<typeof destinationConnection>[] }>(
        `
      select
        connections.id, connections.name, repo_id as "sourceRepoId", repositories.name as "sourceName",
        case when is_active then 'active' else 'inactive' end as status
      from connection_destinations
      join connections on connections.id = connection_destinations.connection_id
      join connection_repositories on connection_repositories.connection_id = connections.id
      join repositories on repositories.id = connection_repositories.repository_id
      where destination_id = ?
      order by connections.id, connection_repositories.position
      `,
        [id],
      )
      return rows
    },

    insert: (
      workspaceId: string,
      created: Pick<Destination, 'id' | 'name' | 'connectorType' | 'config' | 'credentialsSealed'> & CredentialsFacts,
      actor: AuditActor,
    ): Promise<Destination> =>
      db.transaction(async (trx) => {
        await lockRouting(trx, workspaceId)
        await requireNoTwin(trx, workspaceId, created, false)
        await trx('destinations').insert({
          ...asColumns({ ...created, workspaceId }),
          ...destinationKind.columnsOf({ config: created.config }),
        })
        await recordOf(trx, workspaceId, 'destination.created', created, 'was created.', {}, actor)
        return destinationKind.find(trx, workspaceId, created.id)
      }),

    /**
     * Reads a destination, applies `change`, and writes the result. The row stays locked in between, so concurrent merges lose no keys. A
     * change of the name alone is not recorded in the audit log.
     * @throws AppError 404
     */
    update: (
      workspaceId: string,
      id: string,
      change: (current: Destination) => DestinationChange,
      actor: AuditActor,
    ): Promise<Destination> =>
      db.transaction(async (trx) => {
        await lockRouting(trx, workspaceId)
        await lockGate(trx, id)
        await trx('destinations').select('id').where({ workspace_id: workspaceId, id }).forNoKeyUpdate()
        const current = await destinationKind.find(trx, workspaceId, id)
        const wanted = change(current)
        const changed = changedNames(current, wanted)
        if (changed.length === 0) return current
        const { name, config, credentials } = wanted
        if (config && changed.some((path) => path.startsWith('config.'))) {
          const { repoIds, hasContents } = await findHomeUse(trx, id)
          if (hasContents) requireSamePlace(current, changed)
          await requireNoTwin(trx, workspaceId, { ...current, config }, hasContents || repoIds.length > 0)
        }
        await trx('destinations')
          .where({ id })
          .update({
            ...destinationKind.columnsOf({ name, config }),
            ...(credentials && { credentials_sealed: credentials.sealed }),
            ...(credentials?.areNew && credentials.facts && asColumns(credentials.facts)),
            updated_at: trx.fn.now(),
          })
        const row = await destinationKind.find(trx, workspaceId, id)
        // The contract has an event for config and credentials only. And another name repairs nothing.
        if (changed.some((changedName) => changedName !== 'name')) {
          await endPause(trx, [id])
          await recordOf(trx, workspaceId, 'destination.updated', row, `was changed: ${changed.join(', ')}.`, { changed }, actor)
        }
        return row
      }),

    /** Marks a destination as connected, closes its circuit and forgets its last error, after a successful test. */
    markConnected: async (workspaceId: string, id: string): Promise<void> => {
      await db('destinations')
        .where({ workspace_id: workspaceId, id, status: 'failing' })
        .update({ status: 'connected', updated_at: db.fn.now() })
      await closeCircuit(db, id)
    },

    /** Revokes every download link that a destination has sent. @throws AppError 404 */
    revokeDownloadLinks: (workspaceId: string, id: string, actor: AuditActor): Promise<void> =>
      db.transaction(async (trx) => {
        const [revoked]: { name: string; connector_type: string; version: number }[] = await trx('destinations')
          .where({ workspace_id: workspaceId, id })
          .whereNull('deleted_at')
          .update({ download_links_version: trx.raw('download_links_version + 1') })
          .returning(['name', 'connector_type', 'download_links_version as version'])
        if (!revoked) throw notFound()
        await record(trx, {
          workspaceId,
          event: 'destination.links_revoked',
          subjectId: id,
          description: `The download links of destination ${revoked.name} (${revoked.connector_type}) were revoked.`,
          metadata: { name: revoked.name, connector_type: revoked.connector_type, version: revoked.version },
          actor,
        })
      }),

    /** Finds what a deletion would remove. @throws AppError 404 */
    findRemoval: async (workspaceId: string, id: string, keepConnections: boolean): Promise<Removal> =>
      findRemoval(db, 'destination', (await find(workspaceId, id)).id, keepConnections),

    /**
     * Deletes a destination, the connections that lead to it and what is sent to it. Undelivered deliveries to the destination are cancelled,
     * and so are those that deleted connections held: up to `limit` of each now, the rest by a workflow. The row stays for the documents that
     * refer to it, with its name and kind only: config, credentials and the target's last error are erased. It is written last, because
     * recording an attempt locks first the document and then the destination.
     * @returns what was removed, with the committed messages
     * @throws AppError 404
     */
    delete: (
      workspaceId: string,
      id: string,
      actor: AuditActor,
      { limit, keepConnections, check }: DeletionOptions<Destination>,
    ): Promise<Removal & { messages: OutboxMessage[] }> =>
      db.transaction(async (trx) => {
        const workspace = await lockRouting(trx, workspaceId)
        const deleted = await destinationKind.find(trx, workspaceId, id)
        check?.(deleted)
        await requireNoHome(trx, deleted)
        const removal = await findRemoval(trx, 'destination', id, keepConnections)
        const predicate = `was deleted.${removalSentence(removal)}`
        await recordOf(trx, workspaceId, 'destination.deleted', deleted, predicate, snakeCased(removal), actor)
        // The rows of the connections first: a release locks its connection before the documents.
        const messages = await deleteConnections(trx, { id: workspaceId, name: workspace }, removal.removedConnections, actor, limit)
        await unlinkConnections(trx, workspaceId, 'destination', id, removal.unlinkedConnections, actor)
        for (const end of onDelete) await end(trx, workspaceId, id, actor)
        messages.push(...(await startCancelling(trx, { by: 'destination', workspace, id, name: deleted.name }, limit)))
        await trx('destination_gates').where({ destination_id: id }).update({ last_error: null })
        await trx('destinations')
          .where({ id })
          .update({ ...erased, deleted_at: trx.fn.now(), updated_at: trx.fn.now() })
        return { ...removal, messages }
      }),
  }
}

export type Destinations = ReturnType<typeof createDestinations>
