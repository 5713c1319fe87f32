import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startMigration } from '../../src/cli/document-migrations.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createDocumentMigrations } from '../../src/migration/migrations.ts'
import { createFolder } from '../support/folder.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const scene = share(await startScene())
const folder = share(await createFolder())
const list = join(folder.path, 'TOA01.csv')
await writeFile(list, 'ARCHIV_ID;ARC_DOC_ID\nZ1;D1\n')

const upstream = { url: 'https://archive.example/archive', cont_rep: 'Y1' }
const options = { repoId: 'Z1', paths: [list], mode: 'copy', documentsPerMinute: null } as const

/** Opens a workspace whose repository Z1 was deleted. */
const open = async () => {
  const workspace = await scene.workspace()
  expect((await workspace.ask('DELETE', `/repositories/${workspace.repositoryId}`)).status).toBeLessThan(300)
  return workspace
}

describe('a migration of a repository that was deleted', () => {
  test('is one of the repository that was created in its place', async () => {
    const { name, call } = await open()
    const { json } = await call('POST', '/repositories', { repo_id: 'Z1', name: 'Invoices', upstream })
    expect(await startMigration(scene.db, { workspace: name, ...options })).toMatchObject({ repositoryId: json.data.id, rows: 1 })
  })

  test('is not started if there is none', async () => {
    const { name, workspaceId, repositoryId } = await open()
    await expect(startMigration(scene.db, { workspace: name, ...options })).rejects.toThrow(`Workspace ${name} has no repository Z1.`)
    const request = { workspaceId, repositoryId, mode: 'copy', documentsPerMinute: null, files: [] } as const
    await expect(createDocumentMigrations(scene.db).start(request, systemActor)).rejects.toMatchObject({ code: 'not_found' })
  })
})
