import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { listTablesWithoutPartition } from '../../db/partitions.ts'
import { certificateWarnings } from '../../security/certificate.ts'
import { createKeyRing } from '../../security/seal.ts'
import { findRepositoryWarnings, type RepositoryWarning } from '../../workspace/repository-warnings.ts'
import { createSealedCredentials } from '../../workspace/sealing-keys.ts'
import { isLocalHost } from './configuration-checks.ts'

const namesMax = 10
const dayMs = 86_400_000
const certificateDaysMin = 30
const partitionDaysMin = 7
const clockDifferenceMaxMs = 5_000

/** Returns a sentence that ends with the names, or nothing if there are none. */
const naming = (condition: string, names: string[]): string[] => {
  if (names.length === 0) return []
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more` : ''
  return [`${condition}: ${names.slice(0, namesMax).join(', ')}${more}.`]
}

export const findRepositories = async (db: Database, code: RepositoryWarning['code'], condition: string): Promise<string[]> =>
  naming(condition, (await findRepositoryWarnings(db))[code])

export const findRoleAttributes = async (db: Database): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { rights: string[] }[] }>(`
    select array_remove(array[
      case when rolsuper then 'is a superuser' end,
      case when rolcreatedb then 'can create databases' end,
      case when rolcreaterole then 'can create roles' end,
      case when rolreplication then 'can replicate the whole server' end,
      case when rolbypassrls then 'bypasses row security' end
    ], null) as rights
    from pg_roles
    where rolname = current_user
  `)
  const rights = rows[0]?.rights ?? []
  return rights.length > 0 ? [`The role ${rights.join(', ')}.`] : []
}

// Both accept any certificate.
const unverified = /[?&](?:sslmode=no-verify|uselibpqcompat=true)(?:&|$)/

export const findUnencryptedDatabase = async (db: Database, { DATABASE_URL = '' }: Pick<Config, 'DATABASE_URL'>): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { isEncrypted: boolean; server: string | null }[] }>(`
    select ssl as "isEncrypted", host(inet_server_addr()) as server
    from pg_stat_ssl
    where pid = pg_backend_pid()
  `)
  const { isEncrypted = false, server = null } = rows[0] ?? {}
  // A Unix socket has no address.
  if (server === null || isLocalHost(server)) return []
  if (!isEncrypted) return [`The connection to ${server} is not encrypted.`]
  return unverified.test(DATABASE_URL) ? ['The certificate of the server is not verified.'] : []
}

interface ActiveCertificate {
  name: string
  validTo: Date
  keyAlgorithm: string
  keyBits: number | null
  signatureAlgorithm: string
}

export const findSignerCertificates = async (db: Database, now: Date): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: ActiveCertificate[] }>(`
    select
      user_slug || '/' || workspace_slug || ' ' || repo_id || ' ' || auth_id as name,
      valid_to as "validTo", key_algorithm as "keyAlgorithm", key_bits as "keyBits", signature_algorithm as "signatureAlgorithm"
    from certificates
    join repositories on repositories.id = certificates.repository_id
    join workspaces on workspaces.id = certificates.workspace_id
    where is_active
      and repositories.status = 'active'
      and repositories.signature_verification
      and repositories.deleted_at is null
    order by name
  `)
  const soon = new Date(now.getTime() + certificateDaysMin * dayMs)
  const withCode = (code: string) => rows.filter((row) => certificateWarnings(row, now).some((warning) => warning.code === code))
  const namesOf = (found: ActiveCertificate[]) => found.map(({ name }) => name)
  const expiring = rows.filter(({ validTo }) => validTo >= now && validTo < soon)
  return [
    ...naming('These certificates have a short key', namesOf(withCode('short_key'))),
    ...naming('These certificates are signed with MD5 or MD2', namesOf(withCode('md5'))),
    ...naming('These certificates have expired', namesOf(withCode('expired'))),
    ...naming(`These certificates expire within ${certificateDaysMin} days`, namesOf(expiring)),
  ]
}

export const findUnorderedSignatures = async (db: Database): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(`
    select user_slug || '/' || workspace_slug || ' ' || repo_id as name
    from repositories
    join workspaces on workspaces.id = repositories.workspace_id
    where signed_parameter_order = 'any'
      and signature_verification
      and status = 'active'
      and deleted_at is null
    order by name
  `)
  return naming(
    'These repositories accept signed parameters in any order',
    rows.map(({ name }) => name),
  )
}

const listKeyNames = async (db: Database, condition: string, bindings: Record<string, unknown> = {}): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `
    select user_slug || '/' || workspace_slug || ' ' || api_keys.id as name
    from api_keys
    join workspaces on workspaces.id = api_keys.workspace_id
    where revoked_at is null
      and (expires_at is null or expires_at > now())
      and ${condition}
    order by name
    `,
    bindings,
  )
  return rows.map(({ name }) => name)
}

export const findAdminKeysWithoutExpiry = async (db: Database): Promise<string[]> =>
  naming('These keys never expire', await listKeyNames(db, `level = 'admin' and expires_at is null`))

export const findUnusedKeys = async (db: Database, days: number): Promise<string[]> =>
  naming(
    `These keys were not used for ${days} days`,
    await listKeyNames(db, 'coalesce(last_used_at, api_keys.created_at) < now() - make_interval(days => :days)', { days }),
  )

export const findSealedUnderOlderKeys = async (
  db: Database,
  { RELAY_SECRET_KEYS }: Pick<Config, 'RELAY_SECRET_KEYS'>,
): Promise<string[]> => {
  const { sealingId } = createKeyRing(RELAY_SECRET_KEYS)
  const older = await createSealedCredentials(db).listSealedUnderOtherKeys(sealingId, '', namesMax + 1)
  return naming(
    `Other keys than ${sealingId} have sealed the credentials of`,
    older.map(({ kind, id }) => `${kind === 'rfc' ? 'workspace' : 'destination'} ${id}`),
  )
}

/** @param whose the other clock, as in "The clock of PostgreSQL" */
export const describeClockDifference = (
  whose: string,
  { before, theirs, after }: { before: number; theirs: number; after: number },
): string[] => {
  // Between the two readings, any of our times may be that of the answer.
  const differenceMs = Math.max(before - theirs, theirs - after, 0)
  if (differenceMs < clockDifferenceMaxMs) return []
  return [`The clock of ${whose} is ${Math.round(differenceMs / 1_000)} seconds ${theirs > after ? 'ahead' : 'behind'}.`]
}

export const findClockDifference = async (db: Database): Promise<string[]> => {
  const before = Date.now()
  const { rows } = await db.raw<{ rows: { now: Date }[] }>('select clock_timestamp() as now')
  return describeClockDifference('PostgreSQL', { before, theirs: rows[0]!.now.getTime(), after: Date.now() })
}

export const findMissingPartitions = async (db: Database, now: Date): Promise<string[]> =>
  naming(
    'The partitions of these tables end too early',
    await listTablesWithoutPartition(db, new Date(now.getTime() + partitionDaysMin * dayMs)),
  )
