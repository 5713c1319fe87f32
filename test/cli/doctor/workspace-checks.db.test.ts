import { findUnreadableCredentials } from '../../../src/access/sealing-keys.ts'
import { diagnose } from '../../../src/cli/doctor/doctor.ts'
import { createConnectors } from '../../../src/connectors/index.ts'
import { credentialsOwner } from '../../../src/connectors/target.ts'
import { createKeyRing } from '../../../src/security/seal.ts'
import { insertDocument } from '../../api/insert-document.ts'
import { createTestDatabase } from '../../support/database.ts'
import { createRoutes, testConfig } from '../../support/factories.ts'
import { share } from '../../support/share.ts'

const database = share(await createTestDatabase())

const keyOf = (fill: number) => `key${fill}:${Buffer.alloc(32, fill).toString('base64')}`
const ring = (fill: number) => createKeyRing([keyOf(fill)])

/** Returns what `relay doctor` finds with a sealing key. */
const examine = async (fill = 1) => {
  const config = testConfig({ DATABASE_URL: database.url, RELAY_SECRET_KEYS: keyOf(fill) })
  const findings = await diagnose({ ...config, TEMPORAL_START_TIMEOUT_MS: 100 })
  return (name: string) => findings.find((finding) => finding.name === name)!
}

test('doctor finds destinations of different workspaces that name one place, if one of them is a home', async () => {
  const { db } = database
  const folder = (path: string) => [{ name: path, connector: 'directory', config: { path } }]
  const home = await createRoutes(db, folder('/srv/archive'))
  // One after the other: destinations are listed in the order of their ids.
  const same = await createRoutes(db, folder('/srv/archive/'))
  const inside = await createRoutes(db, folder('/srv/Archive/in'))
  await createRoutes(db, folder('/srv/archive-2'))
  const free = { status: 'ok', message: 'no other destination names the place of one' }
  expect((await examine())('homes')).toMatchObject(free)
  await db('repositories').where({ id: home.repositoryId }).update({ home_destination_id: home.destinations['/srv/archive'] })
  const twins = `acme/${same.workspaceSlug} /srv/archive/, acme/${inside.workspaceSlug} /srv/Archive/in`
  expect((await examine())('homes')).toMatchObject({
    status: 'warning',
    warnings: [`acme/${home.workspaceSlug} /srv/archive is a home of contents, and its place is also that of ${twins}.`],
  })
  await db('repositories').where({ id: home.repositoryId }).update({ home_destination_id: null })
  expect((await examine())('homes')).toMatchObject(free)
})

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

  const before = await examine()
  expect(['destinations', 'documents', 'credentials'].map((name) => before(name).message)).toEqual([
    'none is failing',
    'none is failed',
    'every sealed credential opens',
  ])

  await db('destinations').where({ id: archive }).update({ status: 'failing' })
  await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'failed' })
  await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'discarded' })
  const found = await examine()
  expect(found('destinations').warnings).toEqual([`1 are failing: ${workspace} archive (${archive}).`])
  expect(found('documents').warnings).toEqual([`failed: ${workspace} 1.`])
  expect((await findUnreadableCredentials(db, ring(2))).toSorted()).toEqual([archive, dms].toSorted())
  expect((await examine(2))('credentials')).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/^No key in RELAY_SECRET_KEYS opens the credentials of 2 destinations or workspaces: /),
  })
})
