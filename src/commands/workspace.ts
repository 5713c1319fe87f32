import type { Database } from '../db/database.ts'
import { createWorkspaces, type Workspace } from '../db/workspaces.ts'
import { UserError } from '../errors.ts'

const slugPattern = /^[a-z0-9-]{1,63}$/

/** The two slugs of `user/workspace`. @throws UserError */
export const readWorkspaceName = (text: string): { userSlug: string; workspaceSlug: string } => {
  const [userSlug, workspaceSlug, ...rest] = text.split('/')
  if (!userSlug || !workspaceSlug || rest.length > 0 || !slugPattern.test(userSlug) || !slugPattern.test(workspaceSlug)) {
    throw new UserError(`${JSON.stringify(text)} is no workspace name: it must be user/workspace, each 1 to 63 of a-z, 0-9 and "-"`)
  }
  return { userSlug, workspaceSlug }
}

const present = ({ id, userSlug, workspaceSlug }: Workspace) => ({ id, user_slug: userSlug, workspace_slug: workspaceSlug })

/** `relay workspace create`. @throws UserError where the name does not fit or is taken */
export const createWorkspace = async (db: Database, name: string) => {
  const { userSlug, workspaceSlug } = readWorkspaceName(name)
  const created = await createWorkspaces(db).insert(userSlug, workspaceSlug)
  if (!created) throw new UserError(`the workspace ${name} exists already`)
  return present(created)
}

/** `relay workspace list`, by name. */
export const listWorkspaces = async (db: Database) => (await createWorkspaces(db).list()).map(present)
