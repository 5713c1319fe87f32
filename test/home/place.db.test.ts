import { startOldContentServer } from '../support/old-content-server.ts'
import { share } from '../support/share.ts'
import { opaqueBytes } from '../support/source-system.ts'
import { atHome } from './folder-home.ts'
import { startHomeScene } from './scene.ts'

const scene = share(await startHomeScene())

// The path has no effect there: a document lies under its ids.
test('a content server brings back what lies under the ids of a document, whatever the paths are', async () => {
  const server = await startOldContentServer({})
  try {
    const home = await scene.workspace({ connector: 'content-server', config: { url: server.url, repository: 'Z1', document_ids: 'source' } })
    await home.setHome()
    const bytes = await atHome(home, 'D1', 3_000)
    expect((await home.call('POST', '/legal-holds', { repo_id: 'Z1', doc_id: 'D1', reason: 'Tax audit' })).status).toBe(201)
    const { id } = await scene.db('connections').where({ workspace_id: home.workspaceId }).first('id')
    const path_template = 'later/{repo_id}/{doc_id}/{comp_id}'
    expect((await home.call('PATCH', `/connections/${id}`, { settings: { path_template } })).status).toBe(200)
    expect((await home.source.update('D1', opaqueBytes(500))).status).toBe(200)
    expect(await home.deliver()).toEqual([{ status: 'delivered' }])
    const [first] = await scene.db('documents').where({ workspace_id: home.workspaceId }).orderBy('id').pluck('id')
    const answer = await fetch(`${scene.api.baseUrl}/api/${home.name}/documents/${first}/content`, {
      headers: { authorization: `Bearer ${home.keys.admin}` },
    })
    expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(bytes)]).toEqual([200, true])
  } finally {
    await server.stop()
  }
})
