import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { updateCopies } from '../../src/delivery/late-data.ts'
import { createRedeliverNewer } from '../../src/delivery/redeliver.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const { db } = share(await createTestDatabase())
const config = testConfig()
const { find } = createConnectors()

interface Case {
  kind: string
  /** Whether the connection planned the newer document with the same path. */
  samePath: boolean
  compId: string
  isReplaced: boolean
}

const cases: Case[] = [
  { kind: 'sftp', samePath: true, compId: 'data', isReplaced: true },
  { kind: 'sftp', samePath: false, compId: 'data', isReplaced: false },
  { kind: 'content-server', samePath: true, compId: 'data', isReplaced: true },
  { kind: 'content-server', samePath: false, compId: 'data', isReplaced: true },
  { kind: 'content-server', samePath: true, compId: 'note', isReplaced: false },
]

test.each(cases)('at $kind, a newer $compId with the same path ($samePath) replaces data: $isReplaced', async (each) => {
  const routes = await createRoutes(db, [{ name: 'target', connector: each.kind }])
  const destinationId = routes.destinations['target']!
  const ofWorkspace = { workspace_id: routes.workspaceId }
  const { documents } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }, 'D1'))
  const { documentId } = documents[0]!
  await createUpdate(db, config)({ ...(await receivedDocument(routes, { [each.compId]: 'newer' }, 'D1')), whole: true })
  await db('documents').where({ id: documentId }).update({ superseded_at: new Date(), file_name: 'Offer.pdf' })
  await db('deliveries').where(ofWorkspace).update({ path: 'in/1.pdf', status: 'delivered', begin_at: null })
  const newer = () => db('deliveries').where(ofWorkspace).whereNot({ document_id: documentId })
  if (!each.samePath) await newer().update({ path: 'in/2.pdf' })

  const job = await createLoadJob(db, config)({ documentId, destinationId, ...firstRound })
  expect(job).toMatchObject({ superseded: true, overtaken: each.isReplaced })
  await db.transaction((trx) => updateCopies(trx, [documentId], { findConnector: () => find('webhook') }))
  expect(await db('late_data').where({ document_id: documentId })).toHaveLength(each.isReplaced ? 0 : 1)
  await createRedeliverNewer(db)({ documentId, destinationId })
  expect(await newer().first('status')).toEqual({ status: each.isReplaced ? 'pending' : 'delivered' })
})
