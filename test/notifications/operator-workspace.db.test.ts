import { newId } from '../../src/base/ids.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { incidentEventNames } from '../../src/domain/notices.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createNoticeLog } from '../../src/notifications/notice-log.ts'
import { createSendNotice } from '../../src/notifications/send-notice.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { insertDocument } from '../api/insert-document.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { captureAt, createRoutes, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { saveTarget } from '../support/relay-process.ts'
import { share } from '../support/share.ts'

// The notifications of the workspace that RELAY_OPERATOR_WORKSPACE names announce what happens in all workspaces.

const hourMs = 3_600_000
const database = share(await createTestDatabase())
const { db } = database
const target = share(await startHttpTarget())
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: testConfig().RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
beforeEach(async () => {
  target.arrivals.length = 0
  await db('workspaces').delete()
})

const checkFor = (name?: string) =>
  createCheckIncidents(db, testConfig(name === undefined ? {} : { RELAY_OPERATOR_WORKSPACE: name }), {
    // A kind that cannot be checked fails the test.
    onItsOwn: async (_, __, work) => work(),
  })

const notify = async (workspaceId: string, destinationId: string, change: object = {}) => {
  const id = newId()
  const terms = { name: 'All', events: [...incidentEventNames], quiet_seconds: 0, silence_hours: 2, ...change }
  await db('notifications').insert({ id, workspace_id: workspaceId, destination_id: destinationId, ...terms })
  return id
}

/** Creates a workspace whose webhook fails, with failed deliveries, and without a notification. */
const createTrouble = async () => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { workspaceId, repositoryId, repoId } = routes
  const destinationId = routes.destinations['archive']!
  await db('destination_gates').insert({ destination_id: destinationId, circuit: 'open', failures: 9 })
  const delivery = { destinationId, connectionId: routes.connections['archive']!, status: 'failed' as const }
  await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'failed', deliveries: [delivery] })
  return { ...routes, name: `acme/${routes.workspaceSlug}`, destinationId }
}

const createOperator = async () => {
  const routes = await createRoutes(db, [{ name: 'mailbox' }])
  const destinationId = routes.destinations['mailbox']!
  return {
    ...routes,
    destinationId,
    name: `acme/${routes.workspaceSlug}`,
    heard: async (id: string) =>
      (await createNoticeLog(db).list(id, { perPage: 100 })).items
        .map(({ noticeType, data: { workspace } }) => `${workspace} ${noticeType}`)
        .toSorted(),
  }
}

test('incidents of all workspaces reach the operator and no other workspace, and so do their ends', async () => {
  const [one, other, operator] = [await createTrouble(), await createTrouble(), await createOperator()]
  const own = await notify(one.workspaceId, one.destinationId)
  const all = await notify(operator.workspaceId, operator.destinationId, { events: ['destination.failing'] })
  const check = checkFor(operator.name)
  await check(new Date())
  expect(await operator.heard(all)).toEqual([`${one.name} relay.destination.failing`, `${other.name} relay.destination.failing`].toSorted())
  expect(await operator.heard(own)).toEqual([`${one.name} relay.delivery.failed`, `${one.name} relay.destination.failing`])
  // Once only.
  expect(await check(new Date(Date.now() + 60_000))).toMatchObject({ opened: 0, closed: 0, notices: 0 })

  await db('destination_gates').where({ destination_id: other.destinationId }).update({ circuit: 'closed', failures: 0 })
  expect(await check(new Date(Date.now() + 120_000))).toMatchObject({ closed: 1, notices: 1 })
  expect(await operator.heard(all)).toContain(`${other.name} relay.destination.recovered`)
  // What has happened is in the audit log of the workspace where it has happened.
  const audited = await db('audit_logs').where({ workspace_id: other.workspaceId }).orderBy('id').pluck('event')
  expect(audited).toEqual(['incident.opened', 'incident.closed'])
})

test.each([undefined, 'acme/gone'])(
  'without a workspace of the operator (%s), a notification announces its own workspace',
  async (name) => {
    const [one, operator] = [await createTrouble(), await createOperator()]
    const all = await notify(operator.workspaceId, operator.destinationId)
    expect(await checkFor(name)(new Date())).toMatchObject({ opened: 0, notices: 0 })
    expect(await operator.heard(all)).toEqual([])
    // What the operator was told about is not told any more, once the variable is gone.
    await checkFor(operator.name)(new Date())
    expect(await operator.heard(all)).toEqual([`${one.name} relay.delivery.failed`, `${one.name} relay.destination.failing`])
    expect(await checkFor(name)(new Date())).toMatchObject({ closed: 2, notices: 0 })
  },
)

test('a silent source is announced to its workspace and to the operator after the hours of each', async () => {
  const [one, operator] = [await createTrouble(), await createOperator()]
  const start = Date.now()
  const id = await captureAt(db, one.workspaceId, new Date(start))
  await db('captured_requests').where({ id }).update({ repo_id: one.repoId })
  await db('documents').delete()
  const events = ['source.silent']
  const own = await notify(one.workspaceId, one.destinationId, { events, silence_hours: 5 })
  const all = await notify(operator.workspaceId, operator.destinationId, { events, silence_hours: 3 })
  const check = checkFor(operator.name)
  const heardAt: [number, string[], string[]][] = []
  for (const hours of [2, 3, 4, 5]) {
    await check(new Date(start + hours * hourMs))
    heardAt.push([hours, await operator.heard(all), await operator.heard(own)])
  }
  const silent = [`${one.name} relay.source.silent`]
  expect(heardAt).toEqual([
    [2, [], []],
    [3, silent, []],
    [4, silent, []],
    [5, silent, silent],
  ])
})

test('a notice to the operator is sent with the credentials of the operator, and names the workspace where it has happened', async () => {
  const [one, operator] = [await createTrouble(), await createOperator()]
  const stored = { workspaceId: operator.workspaceId, id: operator.destinationId }
  await saveTarget(db, stored, 'webhook', { url: `${target.origin}/alerts` }, { bearer_token: 'canary-77aa' })
  await notify(operator.workspaceId, operator.destinationId, { events: ['delivery.failed'] })
  const { messages } = await checkFor(operator.name)(new Date())
  expect(messages).toMatchObject([{ input: { workspace: operator.name } }])
  const { sendNotice } = createSendNotice({
    db,
    findConnector: createConnectors().find,
    keyRing: createKeyRing(testConfig().RELAY_SECRET_KEYS),
    outbound,
    installation: createInstallation(db),
    config: testConfig(),
  })
  const { noticeId } = messages[0]!.input
  expect(await sendNotice(noticeId, 60_000, new AbortController().signal)).toEqual({ status: 'delivered' })
  const [{ headers, body }] = target.arrivals as [(typeof target.arrivals)[0]]
  expect(headers).toMatchObject({ authorization: 'Bearer canary-77aa', 'x-relay-workspace': one.name })
  expect(JSON.parse(body.toString())).toMatchObject({ type: 'relay.delivery.failed', data: { workspace: one.name } })
  const audited = await db('audit_logs').where({ subject_id: noticeId }).select('workspace_id', 'event')
  expect(audited).toEqual([{ workspace_id: operator.workspaceId, event: 'notice.delivered' }])
})
