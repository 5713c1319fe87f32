import { checkAgent } from '../../clients/check-source/src/http.ts'
import { newId } from '../../src/base/ids.ts'
import { refusedCodes } from '../../src/capture/latest-requests.ts'
import { refusals } from '../../src/domain/refusal-codes.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createNoticeLog } from '../../src/notifications/notice-log.ts'
import { insertDocument } from '../api/insert-document.ts'
import { createTestDatabase } from '../support/database.ts'
import { captureAt, createRoutes, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const hour = 3_600_000
const database = share(await createTestDatabase())
const { db } = database
const check = createCheckIncidents(db, testConfig({ RELAY_BASE_URL: 'https://relay.example.com' }), {
  onItsOwn: async (_, __, work) => work(),
})
// Only the workspace of one test has notifications and incidents at a time.
beforeEach(async () => {
  await db('notifications').delete()
  await db('incidents').delete()
})

const start = Date.now()
const at = (hours: number) => new Date(start + hours * hour)

const createScene = async (event: string) => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { workspaceId } = routes
  const notificationId = newId()
  await db('notifications').insert({
    id: notificationId,
    workspace_id: workspaceId,
    name: 'All',
    events: [event],
    destination_id: routes.destinations['archive']!,
    quiet_seconds: 0,
    silence_hours: 1,
  })
  return {
    ...routes,
    notices: async () => (await createNoticeLog(db).list(notificationId, { perPage: 100 })).items.toReversed(),
    hold: async (since: Date) => {
      const id = await insertDocument(db, {
        workspaceId,
        repositoryId: routes.repositoryId,
        repoId: routes.repoId,
        status: 'pending',
        deliveries: [{ destinationId: routes.destinations['archive']!, connectionId: routes.connections['archive']!, status: 'held' }],
      })
      await db('deliveries').where({ document_id: id }).update({ status_since: since })
    },
    activate: (isActive: boolean) => db('connections').where({ id: routes.connections['archive']! }).update({ is_active: isActive }),
    /** Captures requests of the source system, one after the other. */
    request: async (...requests: (string | null | { code: string | null; agent: string })[]) => {
      for (const request of requests) {
        const { code, agent } = typeof request === 'object' && request !== null ? request : { code: request, agent: 'SAP' }
        const id = await captureAt(db, workspaceId, new Date())
        await db('captured_requests')
          .where({ id })
          .update({ repo_id: routes.repoId, error_code: code, request_headers: { 'user-agent': agent } })
      }
    },
  }
}

test('an inactive connection that has held its oldest document for a day is announced, until it is active or holds nothing', async () => {
  const scene = await createScene('connection.holding')
  await scene.hold(at(0))
  await scene.hold(at(20))
  // It does not wait for an operator: the release is under way.
  expect(await check(at(30))).toMatchObject({ opened: 0 })
  await scene.activate(false)
  expect(await check(at(23))).toMatchObject({ opened: 0 })
  expect(await check(at(25))).toMatchObject({ opened: 1, notices: 1 })
  expect(await check(at(26))).toMatchObject({ opened: 0, closed: 0, notices: 0 })
  const [connection] = await db('connections').where({ id: scene.connections['archive']! })
  expect((await scene.notices())[0]).toMatchObject({
    noticeType: 'relay.connection.holding',
    data: {
      summary: `Connection ${connection.name} is inactive and holds 2 deliveries, the oldest for more than 24 hours.`,
      openedAt: at(0).toISOString(),
      connection: { id: connection.id, name: connection.name },
      consoleUrl: `https://relay.example.com/console/connections/${connection.id}?workspace=acme/${scene.workspaceSlug}`,
      remedy: expect.stringContaining('Activate the connection'),
    },
  })
  await scene.activate(true)
  expect(await check(at(27))).toMatchObject({ closed: 1, notices: 1 })
  expect((await scene.notices())[1]).toMatchObject({ noticeType: 'relay.connection.recovered' })

  await scene.activate(false)
  await db('deliveries').where({ workspace_id: scene.workspaceId }).update({ status: 'cancelled' })
  expect(await check(at(60))).toMatchObject({ opened: 0 })
})

test('a source system whose latest requests were all refused is announced, until one is accepted', async () => {
  const scene = await createScene('source.refused')
  await scene.request('signature_invalid', 'signature_invalid', 'url_expired', 'signature_invalid')
  expect(await check(at(1))).toMatchObject({ opened: 0 })
  await scene.request('certificate_inactive')
  expect(await check(at(1))).toMatchObject({ opened: 1, notices: 1 })
  await scene.request('certificate_inactive')
  expect(await check(at(2))).toMatchObject({ opened: 0, closed: 0, notices: 0 })
  expect((await scene.notices())[0]).toMatchObject({
    noticeType: 'relay.source.refused',
    data: {
      summary: `Repository ${scene.repoId} has refused the latest 5 requests of its source system, the last one with certificate_inactive.`,
      error: { code: 'certificate_inactive' },
      remedy: refusals.certificate_inactive.remedy,
    },
  })
  await scene.request(null)
  expect(await check(at(3))).toMatchObject({ closed: 1, notices: 1 })
  expect((await scene.notices())[1]).toMatchObject({ noticeType: 'relay.source.accepted' })
})

test('each code by which a request is refused counts, and none of those that answer what was asked', async () => {
  const answers = [
    'document_exists',
    'document_not_found',
    'component_not_found',
    'component_offline',
    'document_locked',
    'document_on_hold',
  ]
  expect(Object.keys(refusals).filter((code) => !refusedCodes.includes(code))).toEqual(expect.arrayContaining(answers))
  expect(refusedCodes).toHaveLength(Object.keys(refusals).length - answers.length)
  const scene = await createScene('source.refused')
  await scene.request('signature_missing', 'signature_missing', 'signature_missing', 'signature_missing', 'document_not_found')
  expect(await check(at(1))).toMatchObject({ opened: 0 })
})

test('the requests of a check count neither as refused nor as accepted, and an inactive repository refuses on purpose', async () => {
  const scene = await createScene('source.refused')
  const check5 = Array.from({ length: 5 }, () => ({ code: 'signature_missing', agent: checkAgent }))
  await scene.request(...check5)
  expect(await check(at(1))).toMatchObject({ opened: 0 })
  await scene.request(...Array<string>(5).fill('address_not_allowed'), { code: null, agent: checkAgent }, ...check5)
  expect(await check(at(1))).toMatchObject({ opened: 1 })
  await db('repositories').where({ id: scene.repositoryId }).update({ status: 'inactive' })
  expect(await check(at(2))).toMatchObject({ closed: 1 })
})
