import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { verifyContents } from '../../src/content/verify.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { opaqueBytes } from '../support/source-system.ts'
import { startHomeScene } from './scene.ts'

const root = share(await createFolder())
const scene = share(await startHomeScene([root.path]))

let folders = 0
const folder = async () => {
  const path = join(root.path, `folder-${(folders += 1)}`)
  await mkdir(path)
  return path
}

test('a download, its ranges, a delivery to another destination and contents verify read what is at the home', async () => {
  const [path, other] = [await folder(), await folder()]
  const home = await scene.workspace({ connector: 'directory', config: { path } }, [
    { name: 'copy', connector: 'directory', config: { path: other } },
  ])
  await home.setHome()
  const bytes = opaqueBytes(20_000)
  await home.source.create('D1', bytes)
  await home.deliver()
  await home.move()
  expect([await home.storeOf('D1'), await home.bytesHere()]).toEqual(['home', 0])
  const { id } = await scene.db('documents').where({ doc_id: 'D1', workspace_id: home.workspaceId }).first('id')

  const download = async (headers: Record<string, string> = {}) => {
    const address = `${scene.api.baseUrl}/api/${home.name}/documents/${id}/content`
    const answer = await fetch(address, { headers: { authorization: `Bearer ${home.keys.admin}`, ...headers } })
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
  }
  expect(await download()).toEqual({ status: 200, bytes })
  expect(await download({ range: 'bytes=7-99' })).toEqual({ status: 206, bytes: bytes.subarray(7, 100) })

  await rm(join(other, 'Z1'), { recursive: true })
  await scene.db('deliveries').where({ document_id: id, destination_id: home.destinations['copy'] }).update({ status: 'pending', again: 1 })
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  expect((await readFile(join(other, 'Z1/D1/data'))).equals(bytes)).toBe(true)

  const stores = { postgres: createPostgresStore(scene.db), home: scene.homeStore }
  const verify = async () => {
    const damaged: (string | undefined)[] = []
    await verifyContents(scene.db, stores, {
      isRead: true,
      report: ({ documentId, problem }) => documentId === id && damaged.push(problem),
    })
    return damaged
  }
  expect(await verify()).toEqual([])
  await rm(join(path, 'Z1/D1/data'))
  expect(await verify()).toEqual([expect.stringMatching(/^not readable: home: .* it is not there$/)])
})

test('a document on legal hold keeps its content in the relay until the hold is lifted', async () => {
  const home = await scene.workspace({ connector: 'directory', config: { path: await folder() } })
  await home.setHome()
  await home.source.create('HELD', opaqueBytes(300))
  await home.source.create('FREE', opaqueBytes(300))
  await home.deliver()
  const { json } = await home.call('POST', '/legal-holds', { repo_id: 'Z1', doc_id: 'HELD', reason: 'Audit' })
  await home.move()
  expect([await home.storeOf('HELD'), await home.storeOf('FREE')]).toEqual(['postgres', 'home'])
  await home.call('POST', `/legal-holds/${json.data.id}/lift`, { reason: 'Over' })
  await home.move()
  expect(await home.storeOf('HELD')).toBe('home')
})
