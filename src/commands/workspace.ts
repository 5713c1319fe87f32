import type { Database } from '../db/database.ts'
import { createWorkspaces, type Workspace } from '../db/workspaces.ts'
import { workspaceSettings } from '../domain/settings.ts'
import { UserError } from '../errors.ts'

const slugPattern = /^[a-z0-9-]{1,63}$/

/** The two slugs of `user/workspace`. @throws UserError */
const readWorkspaceName = (text: string): { userSlug: string; workspaceSlug: string } => {
  const [userSlug, workspaceSlug, ...rest] = text.split('/')
  if (!userSlug || !workspaceSlug || rest.length > 0 || !slugPattern.test(userSlug) || !slugPattern.test(workspaceSlug)) {
    throw new UserError(`${JSON.stringify(text)} is no workspace name: it must be user/workspace, each 1 to 63 of a-z, 0-9 and "-"`)
  }
  return { userSlug, workspaceSlug }
}

/** What a workspace may have of its operator: in the compliance tier, an audit log without end. */
export const tiers = ['standard', 'compliance'] as const

const present = ({ id, userSlug, workspaceSlug }: Workspace) => ({ id, user_slug: userSlug, workspace_slug: workspaceSlug })

/** `relay workspace create`. @throws UserError where the name does not fit or is taken */
export const createWorkspace = async (db: Database, name: string) => {
  const { userSlug, workspaceSlug } = readWorkspaceName(name)
  const created = await createWorkspaces(db).insert(userSlug, workspaceSlug)
  if (!created) throw new UserError(`the workspace ${name} exists already`)
  return present(created)
}

/** @throws UserError where there is none of that name */
export const findWorkspace = async (db: Database, name: string): Promise<Workspace> => {
  const { userSlug, workspaceSlug } = readWorkspaceName(name)
  const workspace = await createWorkspaces(db).find(userSlug, workspaceSlug)
  if (!workspace) throw new UserError(`there is no workspace ${name}; make it with: relay workspace create ${name}`)
  return workspace
}

/** `relay workspace tier`. @throws UserError where there is no such workspace, or its settings need the tier that it has */
export const setTier = async (db: Database, name: string, tier: (typeof tiers)[number]) => {
  const workspace = await findWorkspace(db, name)
  await createWorkspaces(db).setComplianceTier(workspace.id, tier === 'compliance', ({ settings }) => {
    if (tier === 'standard' && workspaceSettings(settings).auditDays === null) {
      throw new UserError(`${name} keeps its audit log indefinitely: set audit_days to a number first`)
    }
  })
  return { ...present(workspace), tier }
}

/** `relay workspace list`, by name. */
export const listWorkspaces = async (db: Database) => (await createWorkspaces(db).list()).map(present)
