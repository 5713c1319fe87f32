import { z } from 'zod'
import { createApiKeys } from '../db/api-keys.ts'
import type { AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createWorkspaces } from '../db/workspaces.ts'
import { UserError } from '../errors.ts'
import { newApiKey } from '../security/api-keys.ts'
import { isLevel, keyLevels } from '../security/levels.ts'
import { findWorkspace } from './workspace.ts'

export interface KeyOptions {
  /** `user/workspace` */
  workspace: string
  level: string
  name?: string | undefined
  /** ISO 8601; without it the key does not expire. */
  expiresAt?: string | undefined
  /** The e-mail address of the member the key belongs to; who is not yet a member becomes one. */
  member?: string | undefined
}

// whoever has the database at hand; the relay knows no name for them
const operator: AuditActor = { type: 'system', userId: null }

const readEmail = (text: string): string => {
  if (!z.email().safeParse(text).success) throw new UserError(`${JSON.stringify(text)} is no e-mail address`)
  return text
}

const readExpiry = (text: string): Date => {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new UserError(`${JSON.stringify(text)} is no ISO 8601 time`)
  if (time.getTime() <= Date.now()) throw new UserError(`the key would have expired at ${time.toISOString()} already`)
  return time
}

/** `relay key create`. The answer holds the key, this once. @throws UserError */
export const createKey = async (db: Database, { workspace: workspaceName, level, name, expiresAt, member }: KeyOptions) => {
  if (!isLevel(level)) throw new UserError(`${JSON.stringify(level)} is no level: it must be one of ${keyLevels.join(', ')}`)
  const expiry = expiresAt === undefined ? null : readExpiry(expiresAt)
  const workspace = await findWorkspace(db, workspaceName)
  const memberId = member === undefined ? null : await createWorkspaces(db).ensureMember(workspace.id, readEmail(member))
  const { id, key, secretSha256 } = newApiKey()
  const row = { id, workspaceId: workspace.id, memberId, name: name ?? `${level} key`, level, secretSha256, expiresAt: expiry }
  await createApiKeys(db).insert(row, operator)
  return { id, key, level }
}

/** `relay key list`, revoked ones included, of one workspace or of all. @throws UserError where there is no such workspace */
export const listKeys = async (db: Database, workspaceName?: string) => {
  const workspace = workspaceName === undefined ? undefined : await findWorkspace(db, workspaceName)
  const keys = await createApiKeys(db).listEverywhere(workspace?.id)
  return keys.map((key) => ({
    id: key.id,
    level: key.level,
    name: key.name,
    user_slug: key.userSlug,
    workspace_slug: key.workspaceSlug,
    user_id: key.userId,
    expires_at: key.expiresAt,
    last_used_at: key.lastUsedAt,
    revoked_at: key.revokedAt,
    created_at: key.createdAt,
  }))
}

/** `relay key revoke`. @throws UserError where there is no such key, or it is revoked already */
export const revokeKey = async (db: Database, id: string) => {
  if (!(await createApiKeys(db).revoke(id, operator))) throw new UserError(`there is no key ${id} that could be revoked`)
  return { id, revoked: true }
}
