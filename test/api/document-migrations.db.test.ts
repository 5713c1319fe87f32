import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocumentMigration } from './insert-document-migration.ts'

const scene = share(await startScene())

describe('the migrations of a workspace', () => {
  test('are listed newest first, with their progress', async () => {
    const { workspaceId, repositoryId, ask } = await scene.workspace()
    const ids = [
      await insertDocumentMigration(scene.db, workspaceId, repositoryId),
      await insertDocumentMigration(scene.db, workspaceId, repositoryId),
    ]
    const { json } = await ask('GET', '/document-migrations')
    expect(json.data.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
    expect(json.data[0].attributes).toMatchObject({
      repo_id: 'Z1',
      mode: 'copy',
      status: 'running',
      rows: 10,
      copied: 4,
      missing: 0,
      lists: [{ name: 'TOA01.csv', rows: 10, other_rows: 0 }],
      waiting_reason: null,
      ended_at: null,
    })
  })

  test('are listed for one repository, whatever others there are', async () => {
    const { workspaceId, repositoryId, ask, call } = await scene.workspace()
    const { json: other } = await call('POST', '/repositories', { repo_id: 'Z2', name: 'Another' })
    const id = await insertDocumentMigration(scene.db, workspaceId, repositoryId)
    await insertDocumentMigration(scene.db, workspaceId, other.data.id)
    const { json } = await ask('GET', `/document-migrations?repository_id=${repositoryId}`)
    expect(json.data.map((each: { id: string }) => each.id)).toEqual([id])
    expect(json.meta.total).toBe(1)
    expect(await ask('GET', '/document-migrations?repository_id=x')).toMatchObject({ status: 400 })
  })

  test('are paused, resumed and cancelled by an admin, each only in a state that allows it', async () => {
    const { workspaceId, repositoryId, ask, keys } = await scene.workspace()
    const id = await insertDocumentMigration(scene.db, workspaceId, repositoryId)
    const outcome = async (verb: string, key = keys.admin) => {
      const { status, json } = await ask('POST', `/document-migrations/${id}/${verb}`, key)
      return [status, json.data?.attributes.status ?? json.error.message]
    }
    expect(await outcome('pause', keys.member)).toEqual([403, expect.any(String)])
    expect(await outcome('pause')).toEqual([200, 'paused'])
    expect(await outcome('pause')).toEqual([409, 'This migration does not run.'])
    expect(await outcome('resume')).toEqual([200, 'running'])
    expect(await outcome('resume')).toEqual([409, 'This migration is not paused.'])
    expect(await outcome('cancel')).toEqual([200, 'cancelled'])
    expect(await outcome('cancel')).toEqual([409, 'This migration has already ended.'])
    const { json } = await ask('GET', `/document-migrations/${id}`)
    expect(json.data.attributes.ended_at).toEqual(expect.any(String))
  })
})
