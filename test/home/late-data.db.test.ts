import { readFile, writeFile } from 'node:fs/promises'
import type { Connector, DeliveredCopy } from '../../src/connectors/connector.ts'
import { connectorTypes, createConnectors } from '../../src/connectors/index.ts'
import { updateCopies } from '../../src/delivery/late-data.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { opaqueBytes } from '../support/source-system.ts'
import { atHome, createFolderHomes } from './folder-home.ts'
import { startHomeScene, type HomeWorkspace } from './scene.ts'

// A kind that writes properties into the document, as SharePoint does with Office files.

const root = share(await createFolder())
const { find } = createConnectors(testConfig({ RELAY_DIRECTORY_ROOTS: root.path }))
const isRewriting = { is: true }
const directory = find('directory')!
const connector: Connector = {
  ...directory,
  get updateRewrites() {
    return isRewriting.is
  },
  updateMetadata: async ({ location }: DeliveredCopy) => writeFile(location, Buffer.concat([await readFile(location), Buffer.from('!')])),
}
const findConnector = () => connector
const scene = share(await startHomeScene([root.path], { findConnector }))
const createHome = createFolderHomes(scene, root.path)

/** Tells the file name of a document. @returns how bringing it to the copy ends */
const tell = async ({ workspaceId, destinationId }: HomeWorkspace) => {
  const { db } = scene
  await db('connections')
    .where({ workspace_id: workspaceId })
    .update({ settings: JSON.stringify({ properties: { Title: '{file_name}' } }) })
  const ids: string[] = await db('documents').where({ workspace_id: workspaceId }).pluck('id')
  await db('documents').whereIn('id', ids).update({ file_name: 'Offer.docx' })
  await db.transaction((trx) => updateCopies(trx, ids, { findConnector }))
  const bring = async () => {
    await db('late_data')
      .whereIn('document_id', ids)
      .where({ status: 'pending' })
      .update({ next_try_at: new Date(0) })
    await scene.bringLateData({ queueId: destinationId, workspaceId }, new AbortController().signal)
    return db('late_data').whereIn('document_id', ids).first('status', 'error')
  }
  return { bring }
}

test('SharePoint is the kind that may rewrite bytes', () => {
  expect(connectorTypes.filter((kind) => find(kind)!.updateRewrites)).toEqual(['teamsite'])
})

beforeEach(() => {
  isRewriting.is = true
})

test('data that is set later in what only the home has brings it back first, if the kind may rewrite bytes', async () => {
  const home = await createHome()
  await home.setHome()
  const bytes = await atHome(home, 'D1', 1_000)
  const { bring } = await tell(home)
  expect(await bring()).toEqual({ status: 'updated', error: null })
  expect(await home.storeOf('D1')).toBe('postgres')
  expect((await home.source.get('D1')).body).toEqual(bytes)
  expect(await readFile(home.fileOf('D1'))).toHaveLength(bytes.length + 1)
})

test('a kind that does not rewrite bytes gets the data where it is', async () => {
  isRewriting.is = false
  const home = await createHome()
  await home.setHome()
  await atHome(home, 'D1', 1_000)
  const { bring } = await tell(home)
  expect(await bring()).toEqual({ status: 'updated', error: null })
  expect(await home.storeOf('D1')).toBe('home')
})

test('what is lost at its home gets no data, and is not made worse', async () => {
  const home = await createHome()
  await home.setHome()
  const { length } = await atHome(home, 'D1', 1_000)
  await home.spoil('D1', 7)
  const { bring } = await tell(home)
  expect(await bring()).toEqual({ status: 'pending', error: expect.stringMatching(/^content_altered: it may change the document/) })
  expect(await readFile(home.fileOf('D1'))).toHaveLength(length)
})

test('a content stays while data is on its way to its home', async () => {
  const home = await createHome()
  await home.setHome()
  await home.source.create('D1', opaqueBytes(1_000))
  await home.deliver()
  const { bring } = await tell(home)
  await home.move()
  expect(await home.storeOf('D1')).toBe('postgres')
  isRewriting.is = false
  await bring()
  await home.move()
  // The bytes there are other ones now.
  expect(await home.storeOf('D1')).toBe('postgres')
  await writeFile(home.fileOf('D1'), (await home.source.get('D1')).body)
  await home.move()
  expect(await home.storeOf('D1')).toBe('home')
})
