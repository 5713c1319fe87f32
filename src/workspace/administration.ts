import { UserError } from '../base/errors.ts'
import { workspaceNamePattern } from '../base/workspace-name.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { Tier } from '../domain/bounds.ts'
import { createWorkspaces, type Workspace } from './workspaces.ts'

/** Splits `user/workspace` into its slugs. @throws `UserError` if the name is invalid */
export const readWorkspaceName = (text: string): { userSlug: string; workspaceSlug: string } => {
  const [userSlug, workspaceSlug] = text.split('/')
  if (!userSlug || !workspaceSlug || !workspaceNamePattern.test(text)) {
    throw new UserError(
      `${JSON.stringify(text)} is not a valid workspace name. Use user/workspace, each part with 1 to 63 characters of a-z, 0-9 and "-".`,
    )
  }
  return { userSlug, workspaceSlug }
}

const toOutput = ({ id, userSlug, workspaceSlug }: Workspace) => ({ id, user_slug: userSlug, workspace_slug: workspaceSlug })

/** `relay workspace create`. @throws `UserError` if the name is invalid or already taken */
export const createWorkspace = async (db: Database, name: string) => {
  const { userSlug, workspaceSlug } = readWorkspaceName(name)
  return toOutput(await createWorkspaces(db).insert(userSlug, workspaceSlug))
}

/** Returns the name of a workspace: `user/workspace`. */
export const workspaceNameOf = ({ userSlug, workspaceSlug }: Pick<Workspace, 'userSlug' | 'workspaceSlug'>): string =>
  `${userSlug}/${workspaceSlug}`

/** Workspaces that an error names. */
const namedMax = 10

/** Finds a workspace by its name. @throws `UserError` if it does not exist, which names those that do */
export const findWorkspace = async (db: Database, name: string): Promise<Workspace> => {
  const { userSlug, workspaceSlug } = readWorkspaceName(name)
  const workspace = await createWorkspaces(db).find(userSlug, workspaceSlug)
  if (workspace) return workspace
  const names = (await createWorkspaces(db).list()).map(workspaceNameOf)
  const others = names.length > namedMax ? `, and ${names.length - namedMax} more, which relay workspace list lists` : ''
  throw new UserError(
    names.length === 0
      ? `There is no workspace ${name}. Create it with: relay workspace create ${name}`
      : `There is no workspace ${name}. There is: ${names.slice(0, namedMax).join(', ')}${others}`,
  )
}

/** `relay workspace tier`. @throws `UserError` if the workspace does not exist */
export const setTier = async (db: Database, name: string, tier: Tier) => {
  const workspace = await findWorkspace(db, name)
  await createWorkspaces(db).setTier(workspace.id, tier, systemActor)
  return { ...toOutput(workspace), tier }
}
