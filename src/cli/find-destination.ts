import { UserError } from '../base/errors.ts'
import { isId } from '../base/ids.ts'
import type { Database } from '../db/database.ts'
import { workspaceNameOf } from '../workspace/administration.ts'
import { createWorkspaces, type Workspace } from '../workspace/workspaces.ts'

interface FoundDestination {
  workspace: Workspace
  id: string
  name: string
}

/**
 * Finds a destination that is not deleted.
 * @param nameOrId what people call it by
 * @param workspace where it may be; any if undefined
 * @throws `UserError` if there is none, or if several workspaces have one of this name
 */
export const findDestination = async (db: Database, nameOrId: string, workspace: Workspace | undefined): Promise<FoundDestination> => {
  const rows = (await db('destinations')
    .select('id', 'name', 'workspace_id as workspaceId')
    .where({ [isId(nameOrId) ? 'id' : 'name']: nameOrId, ...(workspace && { workspace_id: workspace.id }) })
    .whereNull('deleted_at')) as { id: string; name: string; workspaceId: string }[]
  const workspaces = workspace ? [workspace] : await createWorkspaces(db).list()
  const found = rows.flatMap(({ id, name, workspaceId }) =>
    workspaces.filter((each) => each.id === workspaceId).map((each) => ({ workspace: each, id, name })),
  )
  if (found.length > 1) {
    const names = found.map((each) => workspaceNameOf(each.workspace)).toSorted()
    throw new UserError(`Several workspaces have a destination ${nameOrId}. Name one of them with --workspace: ${names.join(', ')}`)
  }
  const place = workspace ? `The workspace ${workspaceNameOf(workspace)} has` : 'There is'
  if (!found[0]) throw new UserError(`${place} no destination ${nameOrId}. relay failures lists those with failed deliveries.`)
  return found[0]
}
