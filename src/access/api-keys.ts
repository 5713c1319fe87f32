import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { notFound, validationFailed } from '../base/refusals.ts'
import type { Config } from '../config/config.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { isDuplicate, isMemberGone } from '../db/errors.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { asColumns, columnsAs, type CamelCasedOutput } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import { createAuthenticator, newApiKey, type Authenticator, type KeyDigest, type StoredKey } from '../security/api-keys.ts'
import { createAttemptLimit } from '../security/attempt-limit.ts'
import type { KeyLevel } from '../security/levels.ts'
import { keyLevel } from '../workspace/inputs.ts'

export const apiKeyFields = z.object({
  name: z.string(),
  level: keyLevel,
  user_id: z.string().nullable(),
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable(),
  created_at: timestamp,
})

export type ApiKey = CamelCasedOutput<typeof apiKeyFields> & { id: string }

/** A key as the command line lists it, with its workspace. */
export interface ListedKey extends ApiKey {
  userSlug: string
  workspaceSlug: string
  revokedAt: Date | null
}

export interface NewKeyRow extends KeyDigest {
  workspaceId: string
  memberId: string | null
  name: string
  level: KeyLevel
  expiresAt: Date | null
}

type NewKey = Omit<NewKeyRow, keyof KeyDigest>

const refuse = (path: string, message: string) => validationFailed([{ path, message }])

const noSuchKey = (id: string) => new AppError('not_found', `Key ${id} does not exist or is already revoked.`)

const noSuchMember = () => refuse('user_id', 'there is no such member in this workspace')

/** Adds an API key that was generated outside of the relay. @throws AppError 422 */
export const addApiKey = async (db: Database | Transaction, key: NewKeyRow, actor: AuditActor): Promise<ApiKey> => {
  const { workspaceId, memberId, expiresAt } = key
  if (expiresAt && expiresAt.getTime() <= Date.now()) throw refuse('expires_at', 'must be in the future')
  const isMember = memberId === null || (await db('members').select('id').where({ workspace_id: workspaceId, id: memberId }).first())
  if (!isMember) throw noSuchMember()
  return createApiKeys(db)
    .insert(key, actor)
    .catch((thrown: unknown) => {
      if (isMemberGone(thrown)) throw noSuchMember()
      if (!isDuplicate(thrown, 'api_keys_pkey')) throw thrown
      throw refuse('value', 'is, or was, the value of another key of this or another workspace. Generate a new value')
    })
}

/** Creates an API key. Only this result contains the key itself. @throws AppError 422 */
export const createApiKey = async (db: Database | Transaction, fields: NewKey, actor: AuditActor): Promise<ApiKey & { key: string }> => {
  const { key, ...digest } = newApiKey()
  return { ...(await addApiKey(db, { ...fields, ...digest }, actor)), key }
}

const columns = [...columnsAs('api_keys.id, name, level, expires_at, last_used_at, api_keys.created_at'), 'member_id as userId']

// The id of a key that was generated outside of the relay does not contain the time of its creation.
const newestFirst = [
  { column: 'created_at', order: 'desc' },
  { column: 'id', order: 'desc' },
]

export const createApiKeys = (db: Database | Transaction) => ({
  /** Finds a key for authentication, even if it is revoked or expired. */
  find: async (id: string): Promise<StoredKey | undefined> => {
    const row = await db('api_keys')
      .join('workspaces', 'workspaces.id', 'api_keys.workspace_id')
      .select(
        columnsAs(
          'api_keys.id, name, workspace_id, user_slug, workspace_slug, member_id, level, secret_sha256, expires_at, revoked_at, last_used_at',
        ),
      )
      .where('api_keys.id', id)
      .first()
    if (!row) return undefined
    const { workspaceId, userSlug, workspaceSlug, ...key } = row
    return { ...key, workspace: { id: workspaceId, userSlug, workspaceSlug } }
  },

  /** Records the use of a key, at most once a minute over all processes. */
  recordUse: async (id: string): Promise<void> => {
    await db('api_keys')
      .where({ id })
      .whereRaw("(last_used_at is null or last_used_at <= now() - interval '1 minute')")
      .update({ last_used_at: db.fn.now() })
  },

  create: (key: NewKey, actor: AuditActor) => createApiKey(db, key, actor),

  insert: ({ id, workspaceId, memberId, name, level, secretSha256, expiresAt }: NewKeyRow, actor: AuditActor): Promise<ApiKey> =>
    db.transaction(async (trx) => {
      const [row] = await trx('api_keys')
        .insert(asColumns({ id, workspaceId, memberId, name, level, secretSha256, expiresAt }))
        .returning(columns)
      await record(trx, {
        workspaceId,
        event: 'apikey.created',
        subjectId: id,
        description: `API key ${name} with level ${level} was created.`,
        metadata: { name, level, belongs_to: memberId, expires_at: expiresAt },
        actor,
      })
      return row
    }),

  /** Lists keys that are not revoked, newest first. */
  list: (workspaceId: string, page: PageRequest): Promise<Page<ApiKey>> =>
    pageOf(db('api_keys').where({ workspace_id: workspaceId }).whereNull('revoked_at').orderBy(newestFirst), columns, page),

  /** Lists every key of one workspace, or of all workspaces. */
  listEverywhere: async (workspaceId?: string): Promise<ListedKey[]> => {
    const query = db('api_keys')
      .join('workspaces', 'workspaces.id', 'api_keys.workspace_id')
      .select([...columns, ...columnsAs('revoked_at, user_slug, workspace_slug')])
      .orderBy(['api_keys.created_at', 'api_keys.id'])
    if (workspaceId !== undefined) query.where({ workspace_id: workspaceId })
    return query
  },

  /** Revokes a key, which has to be one of the workspace if it is given. @throws `AppError` 404 if there is none, or it is revoked already */
  revoke: (id: string, actor: AuditActor, workspaceId?: string): Promise<void> =>
    db.transaction(async (trx) => {
      const query = trx('api_keys').where({ id }).whereNull('revoked_at')
      if (workspaceId !== undefined) query.where({ workspace_id: workspaceId })
      const [revoked] = await query.update({ revoked_at: trx.fn.now() }).returning(['workspace_id as workspaceId', 'name', 'level'])
      if (!revoked) throw workspaceId === undefined ? noSuchKey(id) : notFound()
      await record(trx, {
        workspaceId: revoked.workspaceId,
        event: 'apikey.revoked',
        subjectId: id,
        description: `API key ${revoked.name} with level ${revoked.level} was revoked.`,
        metadata: { name: revoked.name, level: revoked.level },
        actor,
      })
    }),
})

export type ApiKeys = ReturnType<typeof createApiKeys>

type WrongKeyLimits = Pick<Config, 'RELAY_WRONG_KEYS_PER_MINUTE'>

/** Creates the authenticator that all HTTP surfaces share, so that wrong keys count together wherever they are tried. */
export const openAuthenticator = (apiKeys: Pick<ApiKeys, 'find' | 'recordUse'>, config: WrongKeyLimits): Authenticator =>
  createAuthenticator({
    findKey: apiKeys.find,
    recordUse: apiKeys.recordUse,
    wrongKeys: createAttemptLimit(config.RELAY_WRONG_KEYS_PER_MINUTE),
  })
