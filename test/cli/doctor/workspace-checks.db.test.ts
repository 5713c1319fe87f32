import { countFailedDocuments, listFailingDestinations } from '../../../src/cli/doctor/workspace-checks.ts'
import { createConnectors } from '../../../src/connectors/index.ts'
import { credentialsOwner } from '../../../src/connectors/target.ts'
import { createKeyRing } from '../../../src/security/seal.ts'
import { findUnreadableCredentials } from '../../../src/workspace/sealing-keys.ts'
import { insertDocument } from '../../api/insert-document.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { createRoutes } from '../../support/factories.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const ring = (fill: number) => createKeyRing([`key${fill}:${Buffer.alloc(32, fill).toString('base64')}`])

test('doctor finds failing destinations, failed documents and credentials that no key opens', async () => {
  const { db } = database
  const { workspaceId, repositoryId, repoId, destinations } = await createRoutes(db, [{ name: 'archive' }, { name: 'dms' }])
  const [archive, dms] = [destinations['archive']!, destinations['dms']!]
  const { find } = createConnectors()
  for (const id of [archive, dms]) {
    const { config, connector_type: kind } = await db('destinations').where({ id }).first(['config', 'connector_type'])
    const owner = credentialsOwner(find(kind)!, { workspaceId, id, config })
    await db('destinations')
      .where({ id })
      .update({ credentials_sealed: ring(1).seal({}, owner) })
  }
  const { user_slug, workspace_slug } = await db('workspaces').where({ id: workspaceId }).first('user_slug', 'workspace_slug')
  const workspace = `${user_slug}/${workspace_slug}`

  expect(await listFailingDestinations(db)).toEqual([])
  expect(await countFailedDocuments(db)).toEqual([])
  expect(await findUnreadableCredentials(db, ring(1))).toEqual([])

  await db('destinations').where({ id: archive }).update({ status: 'failing' })
  await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'failed' })
  await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'discarded' })
  expect(await listFailingDestinations(db)).toEqual([{ id: archive, name: 'archive', workspace }])
  expect(await countFailedDocuments(db)).toEqual([{ workspace, count: 1, more: false }])
  expect((await findUnreadableCredentials(db, ring(2))).toSorted()).toEqual([archive, dms].toSorted())
})
