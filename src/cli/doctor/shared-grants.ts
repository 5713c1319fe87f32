import type { Database } from '../../db/database.ts'
import { createWorkspaces } from '../../workspace/workspaces.ts'
import type { CheckDeps } from './check.ts'

const variables = ['RELAY_DIRECTORY_ROOTS', 'RELAY_TOKEN_FILE_ROOTS', 'RELAY_S3_ROLES'] as const

/** Finds what several workspaces share because an entry names none of them, and entries for a workspace that does not exist. */
export const findSharedGrants = async ({ db, config }: Pick<CheckDeps, 'config'> & { db: Database }): Promise<string[]> => {
  if (variables.every((variable) => config[variable].length === 0)) return []
  const workspaces = await createWorkspaces(db).list()
  const names = new Set(workspaces.map(({ userSlug, workspaceSlug }) => `${userSlug}/${workspaceSlug}`))
  return variables.flatMap((variable) =>
    config[variable].flatMap(({ workspace, value }) => {
      if (workspace !== undefined) return names.has(workspace) ? [] : [`${variable} names ${workspace}, which is no workspace.`]
      return names.size < 2 || value.includes('{workspace}') ? [] : [`${variable} allows ${value} to each of ${names.size} workspaces.`]
    }),
  )
}
