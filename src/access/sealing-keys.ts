import { createConnectors } from '../connectors/index.ts'
import { credentialsOwner } from '../connectors/target.ts'
import type { Database } from '../db/database.ts'
import { rfcBoundValues } from '../domain/settings.ts'
import type { StoredUpstream } from '../domain/upstream.ts'
import {
  enrichmentCredentialsOf,
  proofKey,
  rfcCredentialsOf,
  SealError,
  signingKey,
  upstreamSecretsOf,
  type KeyRing,
  type SealedFor,
} from '../security/seal.ts'

const batchRows = 100

/**
 * `relay secrets rotate`: opens all credentials that another key has sealed, and seals them with the first key. Safe to
 * repeat and to run while the relay runs.
 * @returns the number of re-sealed credentials, and the ids of the destinations, enrichments and repositories (for the bridge:
 *   workspaces) whose credentials no key opens
 */
export const rotateKeys = async (db: Database, keyRing: KeyRing): Promise<{ resealed: number; unreadable: string[] }> => {
  const credentials = createSealedCredentials(db)
  const unreadable: string[] = []
  let resealed = 0
  for await (const row of listSealed(db, keyRing.sealingId)) {
    try {
      const owner = ownerOf(row)
      // `replace` does nothing if the credentials were saved in the meantime. A process that has not been restarted
      // yet saves them with the previous key; the next run re-seals those.
      if (await credentials.replace(row, keyRing.seal(keyRing.open(row.sealed, owner), owner))) resealed += 1
    } catch (thrown) {
      if (!(thrown instanceof SealError)) throw thrown
      unreadable.push(row.id)
    }
  }
  return { resealed, unreadable }
}

/** Returns the ids of the destinations, enrichments and repositories (for the bridge: workspaces) whose credentials no key opens. Changes nothing. */
export const findUnreadableCredentials = async (db: Database, keyRing: KeyRing): Promise<string[]> => {
  const unreadable: string[] = []
  // No key has an empty id, so this lists all credentials.
  for await (const row of listSealed(db, '')) if (!opens(keyRing, row)) unreadable.push(row.id)
  return unreadable
}

/** Lists the credentials that another key has sealed, batch by batch. */
async function* listSealed(db: Database, keyId: string): AsyncGenerator<SealedCredentials> {
  const credentials = createSealedCredentials(db)
  for (let last: Pick<SealedCredentials, 'id' | 'kind'> | undefined; ;) {
    const batch = await credentials.listSealedUnderOtherKeys(keyId, last, batchRows)
    yield* batch
    if (batch.length < batchRows) return
    last = batch.at(-1)
  }
}

const opens = (keyRing: KeyRing, row: SealedCredentials): boolean => {
  try {
    keyRing.open(row.sealed, ownerOf(row))
    return true
  } catch (thrown) {
    if (!(thrown instanceof SealError)) throw thrown
    return false
  }
}

/**
 * Credentials as they are stored: of a destination, of an enrichment, of the upstream of a repository, or of the bridge of a workspace; or the
 * keys that sign reports and manifests.
 */
export interface SealedCredentials {
  kind: 'destination' | 'enrichment' | 'repository' | 'rfc' | 'installation' | 'proof'
  id: string
  workspaceId: string
  /** Kind of the destination; null for other owners. */
  connectorType: string | null
  /** Config of a destination, of the system of an enrichment or of the upstream of a repository, or the settings of a workspace. */
  config: Record<string, unknown> | null
  sealed: Buffer
}

const { find: findConnector } = createConnectors()

/** @throws `SealError` if this version does not have the connector, and so does not know what the credentials are bound to */
const ownerOf = ({ kind, id, workspaceId, connectorType, config }: SealedCredentials): SealedFor => {
  if (kind === 'installation') return signingKey
  if (kind === 'proof') return proofKey
  if (kind === 'rfc') return rfcCredentialsOf(workspaceId, rfcBoundValues(config ?? {}))
  if (kind === 'repository') return upstreamSecretsOf(workspaceId, id, config as StoredUpstream)
  if (kind === 'enrichment') return enrichmentCredentialsOf(workspaceId, id, config)
  const connector = findConnector(connectorType ?? '')
  if (!connector) throw new SealError(`this version has no connector of type ${connectorType}`)
  return credentialsOwner(connector, { workspaceId, id, config: config ?? {} })
}

const sealedColumns = {
  destination: ['destinations', 'credentials_sealed'],
  enrichment: ['enrichments', 'credentials_sealed'],
  repository: ['repositories', 'upstream_secrets_sealed'],
  rfc: ['workspaces', 'rfc_credentials_sealed'],
  installation: ['installation', 'signing_key_sealed'],
  proof: ['installation', 'proof_key_sealed'],
} as const satisfies Record<SealedCredentials['kind'], readonly [table: string, column: string]>

export const createSealedCredentials = (db: Database) => ({
  /** Lists credentials sealed under other keys, in the order of ids. Scans the tables, which are small. */
  listSealedUnderOtherKeys: async (
    keyId: string,
    after: Pick<SealedCredentials, 'id' | 'kind'> | undefined,
    limit: number,
  ): Promise<SealedCredentials[]> => {
    const { rows } = await db.raw<{ rows: SealedCredentials[] }>(
      `
      select kind, id, workspace_id as "workspaceId", connector_type as "connectorType", config, sealed
      from (
        select 'destination' as kind, id, workspace_id, connector_type, config, credentials_sealed as sealed from destinations
        union all
        select 'enrichment', id, workspace_id, null, http, credentials_sealed from enrichments
        union all
        select 'repository', id, workspace_id, null, upstream, upstream_secrets_sealed from repositories
        union all
        select 'rfc', id, id, null, settings, rfc_credentials_sealed from workspaces
        union all
        select 'installation', id, '', null, null, signing_key_sealed from installation
        union all
        select 'proof', id, '', null, null, proof_key_sealed from installation
      ) as credentials
      -- The keys of the installation have its id.
      where (id, kind) > (:afterId, :afterKind)
        and length(sealed) > 2
        -- The envelope of src/security/seal.ts: version, length of the key id, key id.
        and substring(sealed from 3 for get_byte(sealed, 1)) <> convert_to(:keyId, 'UTF8')
      order by id, kind
      limit :limit
      `,
      { keyId, afterId: after?.id ?? '', afterKind: after?.kind ?? '', limit },
    )
    return rows
  },

  /** Replaces sealed credentials. @returns false if they have been changed since they were read */
  replace: async ({ kind, id, sealed }: SealedCredentials, resealed: Buffer): Promise<boolean> => {
    const [table, column] = sealedColumns[kind]
    return (
      (await db(table)
        .where({ id, [column]: sealed })
        .update({ [column]: resealed })) > 0
    )
  },
})
