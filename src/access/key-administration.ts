import { z } from 'zod'
import { UserError } from '../base/errors.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { snakeCased } from '../domain/casing.ts'
import { isLevel, keyLevels } from '../security/levels.ts'
import { findWorkspace } from '../workspace/administration.ts'
import { createApiKey, createApiKeys } from './api-keys.ts'
import { createMembers } from './members.ts'

export interface KeyOptions {
  /** `user/workspace`. */
  workspace: string
  level: string
  name?: string | undefined
  /** Time in ISO 8601. Without it the key does not expire. */
  expiresAt?: string | undefined
  /** E-mail address of the member who owns the key. The member is created if it does not exist. */
  member?: string | undefined
}

const readEmail = (text: string): string => {
  if (!z.email().safeParse(text).success) throw new UserError(`${JSON.stringify(text)} is not a valid e-mail address.`)
  return text
}

const readExpiry = (text: string): Date => {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new UserError(`${JSON.stringify(text)} is not a valid ISO 8601 time.`)
  if (time.getTime() <= Date.now())
    throw new UserError(`The key would already have expired at ${time.toISOString()}. Choose a time in the future.`)
  return time
}

/** `relay key create`. Only this result contains the key itself. @throws `UserError` if an option is invalid */
export const createKey = async (db: Database, { workspace: workspaceName, level, name, expiresAt, member }: KeyOptions) => {
  if (!isLevel(level)) throw new UserError(`${JSON.stringify(level)} is not a level. Use one of: ${keyLevels.join(', ')}.`)
  const expiry = expiresAt === undefined ? null : readExpiry(expiresAt)
  const workspace = await findWorkspace(db, workspaceName)
  const email = member === undefined ? null : readEmail(member)
  const { id, key } = await db.transaction(async (trx) => {
    const memberId = email === null ? null : await createMembers(trx).ensure(workspace.id, email, systemActor)
    const row = { workspaceId: workspace.id, memberId, name: name ?? `${level} key`, level, expiresAt: expiry }
    return createApiKey(trx, row, systemActor)
  })
  return { id, key, level }
}

/**
 * `relay key list`, including revoked keys, of one workspace or of all.
 * @throws `UserError` if the workspace does not exist
 */
export const listKeys = async (db: Database, workspaceName?: string) => {
  const workspace = workspaceName === undefined ? undefined : await findWorkspace(db, workspaceName)
  const keys = await createApiKeys(db).listEverywhere(workspace?.id)
  return snakeCased(keys)
}

/** `relay key revoke`. @throws `UserError` if the key does not exist or is already revoked */
export const revokeKey = async (db: Database, id: string) => {
  await createApiKeys(db).revoke(id, systemActor)
  return { id, revoked: true }
}
