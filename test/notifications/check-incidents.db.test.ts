import { newId } from '../../src/base/ids.ts'
import { createAcknowledge } from '../../src/delivery/acknowledge.ts'
import type { IncidentEvent } from '../../src/domain/notices.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createNoticeLog, type Notice } from '../../src/notifications/notice-log.ts'
import { insertDocument } from '../api/insert-document.ts'
import { createTestDatabase } from '../support/database.ts'
import { captureAt, createRoutes, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const minute = 60_000
const config = testConfig({
  TEMPORAL_UI_URL: 'https://temporal.example.com/',
  RELAY_BASE_URL: 'https://relay.example.com/',
})

const database = share(await createTestDatabase())
const check = createCheckIncidents(database.db, config, {
  destinationFailures: 3,
  maxCount: 5,
  // A kind that cannot be checked fails the test.
  onItsOwn: async (_, __, work) => work(),
})
// Only the workspace of one test has notifications and incidents at a time.
beforeEach(async () => {
  await database.db('notifications').delete()
  await database.db('incidents').delete()
})

const start = Date.now()
const at = (ms: number) => new Date(start + ms)

/** Creates a workspace with a repository, a webhook and a notification about these events, which is sent to another webhook. */
const createScene = async (events: IncidentEvent[], quietSeconds = 0, silenceHours = 1) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'operators' }])
  const workspace = { workspace_id: routes.workspaceId }
  // The clock of this file stands still, so its repositories are as old as the file.
  await db('repositories')
    .where({ id: routes.repositoryId })
    .update({ created_at: at(0) })
  const notify = async (quiet: number, silence = silenceHours) => {
    const id = newId()
    const destination_id = routes.destinations['operators']!
    await db('notifications').insert({
      id,
      ...workspace,
      name: 'All',
      events,
      destination_id,
      quiet_seconds: quiet,
      silence_hours: silence,
    })
    return id
  }
  const notificationId = await notify(quietSeconds)
  const destinationId = routes.destinations['archive']!
  return {
    ...routes,
    workspace: `acme/${routes.workspaceSlug}`,
    notificationId,
    destinationId,
    notify,
    /** Returns the notices of a notification, oldest first. */
    notices: async (id = notificationId): Promise<Notice[]> => (await createNoticeLog(db).list(id, { perPage: 100 })).items.toReversed(),
    types: async (id = notificationId) =>
      (await createNoticeLog(db).list(id, { perPage: 100 })).items.toReversed().map(({ noticeType }) => noticeType),
    setGate: (gate: object) =>
      db('destination_gates')
        .insert({ destination_id: destinationId, ...gate })
        .onConflict('destination_id')
        .merge(),
    fail: async (code: string | null, status: 'failed' | 'retrying' = 'failed') => {
      const connectionId = routes.connections['archive']!
      const id = await insertDocument(db, {
        workspaceId: routes.workspaceId,
        repositoryId: routes.repositoryId,
        repoId: routes.repoId,
        docId: 'DOC1',
        status,
        deliveries: [{ destinationId, connectionId, status }],
      })
      await db('deliveries').where({ document_id: id }).update({ last_error: 'the target answered 500', last_error_code: code })
      return id
    },
    audited: async () =>
      await db('audit_logs').where(workspace).whereLike('event', 'incident.%').orderBy('id').select('event', 'description', 'actor_type'),
  }
}

describe('one notice at the beginning of an incident, and one at its end', () => {
  test('an open circuit is announced once, and once more when it is closed', async () => {
    const scene = await createScene(['destination.failing'])
    const documentId = await scene.fail('http_500', 'retrying')
    await database.db('documents').where({ id: documentId }).update({ erp_object_type: 'BKPF', erp_object_id: '100019000047112026' })
    await scene.setGate({ circuit: 'open', failures: 12, failing_since: at(-16 * minute) })
    expect(await check(at(0))).toMatchObject({ opened: 1, closed: 0, notices: 1 })
    await scene.setGate({ circuit: 'half_open', failures: 13 })
    expect(await check(at(minute))).toMatchObject({ opened: 0, closed: 0, notices: 0 })
    await scene.setGate({ circuit: 'closed', failures: 0 })
    expect(await check(at(2 * minute))).toMatchObject({ opened: 0, closed: 1, notices: 1 })
    expect(await check(at(3 * minute))).toMatchObject({ opened: 0, closed: 0, notices: 0 })

    const [failing, recovered, ...more] = await scene.notices()
    expect(more).toEqual([])
    const workflowId = `document/${scene.workspace}/Z1/DOC1/data/${documentId}/${scene.destinationId}`
    const details = {
      workspace: scene.workspace,
      destination: { id: scene.destinationId, name: 'archive', type: 'webhook' },
      error: { code: 'http_500', message: 'the target answered 500' },
      remedy: 'Check that destination archive is reachable and accepts requests. The relay tries again by itself.',
      document: {
        id: documentId,
        repoId: 'Z1',
        docId: 'DOC1',
        compId: 'data',
        businessObject: 'Invoice 1900004711, company 1000, 2026',
        consoleUrl: `https://relay.example.com/console/documents/${documentId}?workspace=${scene.workspace}`,
        workflowId,
        workflowUrl: `https://temporal.example.com/namespaces/default/workflows/${encodeURIComponent(workflowId)}`,
      },
    }
    expect(failing).toMatchObject({
      noticeType: 'relay.destination.failing',
      status: 'pending',
      data: {
        ...details,
        summary: 'Destination archive (webhook) fails: 12 attempts in a row without success.',
        openedAt: at(-16 * minute).toISOString(),
        consoleUrl: `https://relay.example.com/console/destinations/${scene.destinationId}?workspace=${scene.workspace}`,
        count: 12,
      },
    })
    expect(recovered).toMatchObject({
      noticeType: 'relay.destination.recovered',
      incidentId: failing!.incidentId,
      data: { ...details, summary: 'Destination archive (webhook) no longer fails.', closedAt: at(2 * minute).toISOString(), count: 13 },
    })
    const messages = await database
      .db('outbox')
      .whereIn('key', [`notice/${failing!.id}`, `notice/${recovered!.id}`])
      .select('message')
    expect(messages).toHaveLength(2)
    expect(messages[0].message).toMatchObject({ kind: 'startNotice', input: { workspace: scene.workspace } })
    expect(await scene.audited()).toEqual([
      { event: 'incident.opened', description: failing!.data.summary, actor_type: 'system' },
      { event: 'incident.closed', description: recovered!.data.summary, actor_type: 'system' },
    ])
  })

  test('checks at the same time write one notice', async () => {
    const scene = await createScene(['destination.failing'])
    await scene.setGate({ failures: 3 })
    await Promise.all(Array.from({ length: 8 }, () => check(at(0))))
    await scene.setGate({ failures: 0 })
    await Promise.all(Array.from({ length: 8 }, () => check(at(minute))))
    expect(await scene.types()).toEqual(['relay.destination.failing', 'relay.destination.recovered'])
  })

  test('a failure that leaves the circuit closed and is not repeated is no incident', async () => {
    const scene = await createScene(['destination.failing'])
    await scene.setGate({ failures: 2 })
    expect(await check(at(0))).toMatchObject({ opened: 0 })
  })

  test('an incident of a workspace without an active notification is not looked for, and an open one ends unannounced', async () => {
    const scene = await createScene(['destination.failing'])
    await scene.setGate({ circuit: 'open' })
    await check(at(0))
    await database.db('notifications').update({ is_active: false })
    expect(await check(at(minute))).toMatchObject({ opened: 0, closed: 1, notices: 0 })
    const elsewhere = await createScene(['source.silent'])
    await elsewhere.setGate({ circuit: 'open' })
    expect(await check(at(2 * minute))).toMatchObject({ opened: 0, notices: 0 })
  })

  test('a new notification announces what is open already', async () => {
    const scene = await createScene(['destination.failing'])
    await scene.setGate({ circuit: 'open' })
    await check(at(0))
    const second = await scene.notify(0)
    expect(await check(at(minute))).toMatchObject({ opened: 0, notices: 1 })
    expect(await scene.types(second)).toEqual(['relay.destination.failing'])
  })
})

describe('quiet time', () => {
  test('an incident soon after another one of the same subject is announced only if it is still open afterwards', async () => {
    const scene = await createScene(['destination.failing'], 600)
    const flap = async (fromMs: number) => {
      await scene.setGate({ circuit: 'open' })
      await check(at(fromMs))
      await scene.setGate({ circuit: 'closed', failures: 0 })
      await check(at(fromMs + minute))
    }
    await flap(0)
    await flap(3 * minute)
    const pair = ['relay.destination.failing', 'relay.destination.recovered']
    expect(await scene.types()).toEqual(pair)
    await scene.setGate({ circuit: 'open' })
    expect(await check(at(6 * minute))).toMatchObject({ opened: 1, notices: 0 })
    expect(await check(at(10 * minute))).toMatchObject({ notices: 0 })
    expect(await check(at(12 * minute))).toMatchObject({ notices: 1 })
    await scene.setGate({ circuit: 'closed', failures: 0 })
    await check(at(13 * minute))
    expect(await scene.types()).toEqual([...pair, ...pair])
  })

  test('another subject is announced meanwhile', async () => {
    const scene = await createScene(['delivery.failed'], 600)
    await scene.fail('http_500')
    await check(at(0))
    await scene.fail('http_503')
    expect(await check(at(minute))).toMatchObject({ opened: 1, notices: 1 })
  })
})

describe('failed deliveries', () => {
  test('are one incident per destination and error code, until they are retried or acknowledged', async () => {
    const scene = await createScene(['delivery.failed'])
    const first = [await scene.fail('credentials_refused'), await scene.fail('credentials_refused')]
    const second = await scene.fail(null)
    const { db } = database
    const failedAt = at(-30 * minute)
    await db('deliveries').where({ document_id: first[0] }).update({ status_since: failedAt })
    expect(await check(at(0))).toMatchObject({ opened: 2, notices: 2 })
    const refused = (await scene.notices()).find(({ data }) => data.error?.code === 'credentials_refused')
    expect(refused!.data).toMatchObject({
      openedAt: failedAt.toISOString(),
      consoleUrl: `https://relay.example.com/console/attention?workspace=${scene.workspace}`,
    })
    await scene.fail('credentials_refused')
    expect(await check(at(minute))).toMatchObject({ opened: 0, closed: 0, notices: 0 })
    expect(await db('incidents').where({ workspace_id: scene.workspaceId }).orderBy('count').select('count', 'subject')).toEqual([
      { count: 1, subject: `${scene.destinationId}/` },
      { count: 3, subject: `${scene.destinationId}/credentials_refused` },
    ])
    expect((await scene.notices()).map(({ data }) => `${data.summary} ${data.remedy}`).toSorted()).toEqual([
      '1 delivery to destination archive (webhook) failed without an error code. ' +
        'Retry what is still needed there; acknowledge the rest.',
      '2 deliveries to destination archive (webhook) failed with credentials_refused. ' +
        'Save valid credentials for destination archive, then retry the deliveries.',
    ])

    await createAcknowledge(db)(scene.workspaceId, second, { type: 'system', userId: null })
    expect(await check(at(2 * minute))).toMatchObject({ closed: 1, notices: 1 })
    await db('deliveries').whereNot({ document_id: second }).update({ status: 'delivered' })
    expect(await check(at(3 * minute))).toMatchObject({ closed: 1, notices: 1 })
    expect(first).toHaveLength(2)
  })

  test('are counted up to a limit', async () => {
    const scene = await createScene(['delivery.failed'])
    for (let index = 0; index < 7; index += 1) await scene.fail('http_500')
    await check(at(0))
    const [notice] = await scene.notices()
    expect(notice!.data).toMatchObject({
      count: 5,
      summary: 'at least 5 deliveries to destination archive (webhook) failed with http_500.',
    })
  })
})

describe('a silent source', () => {
  const request = async (workspaceId: string, ms: number) => {
    const id = await captureAt(database.db, workspaceId, at(ms))
    await database.db('captured_requests').where({ id }).update({ repo_id: 'Z1' })
  }

  test('is announced when nothing has come for the hours of the notification, and so is its end', async () => {
    const scene = await createScene(['source.silent'], 0, 2)
    const { workspaceId } = scene
    const changed: number[] = []
    const run = async (minutes: number) => {
      const { opened, closed } = await check(at(minutes * minute))
      if (opened + closed > 0) changed.push(minutes)
    }
    await request(workspaceId, -60 * minute)
    await request(workspaceId, 0)
    for (let minutes = 0; minutes <= 180; minutes += 5) await run(minutes)
    expect(changed).toEqual([120])
    const [notice] = await scene.notices()
    expect(notice!.data).toMatchObject({
      summary: `Repository Z1 has received no request since ${at(0).toISOString()}.`,
      repository: { id: scene.repositoryId, repoId: 'Z1' },
      openedAt: at(0).toISOString(),
      lastRequestAt: at(0).toISOString(),
      consoleUrl: `https://relay.example.com/console/requests?repo_id=Z1&workspace=${scene.workspace}`,
    })
    await request(workspaceId, 181 * minute)
    await run(185)
    expect(changed).toEqual([120, 185])
    expect(await scene.types()).toEqual(['relay.source.silent', 'relay.source.recovered'])
  })

  test('is announced by each notification after its own hours', async () => {
    const scene = await createScene(['source.silent'], 0, 1)
    const patient = await scene.notify(0, 3)
    await request(scene.workspaceId, 0)
    expect(await check(at(60 * minute))).toMatchObject({ opened: 1, notices: 1 })
    expect(await check(at(179 * minute))).toMatchObject({ opened: 0, notices: 0 })
    expect(await scene.types(patient)).toEqual([])
    expect(await check(at(180 * minute))).toMatchObject({ opened: 0, notices: 1 })
    await request(scene.workspaceId, 181 * minute)
    expect(await check(at(182 * minute))).toMatchObject({ closed: 1, notices: 2 })
    expect(await scene.types(patient)).toEqual(['relay.source.silent', 'relay.source.recovered'])
  })

  test('stays silent when retention has removed its last captured request but not its document', async () => {
    const scene = await createScene(['source.silent'])
    await scene.fail('http_500')
    await database
      .db('documents')
      .where({ workspace_id: scene.workspaceId })
      .update({ received_at: at(0) })
    await request(scene.workspaceId, 0)
    expect(await check(at(120 * minute))).toMatchObject({ opened: 1 })
    await database.db('captured_requests').delete()
    expect(await check(at(121 * minute))).toMatchObject({ opened: 0, closed: 0 })
  })

  test('is not one that never sent anything', async () => {
    const scene = await createScene(['source.silent'])
    for (let minutes = 0; minutes <= 120; minutes += 5) expect(await check(at(minutes * minute))).toMatchObject({ opened: 0 })
    expect(await scene.notices()).toEqual([])
  })
})

test('a certificate that expires is announced until a newer one is active', async () => {
  const scene = await createScene(['certificate.expiring'])
  const { db } = database
  const day = 86_400_000
  const certificate = async (days: number, isActive = true) => {
    const id = newId()
    await db('certificates').insert({
      id,
      workspace_id: scene.workspaceId,
      repository_id: scene.repositoryId,
      auth_id: 'CN=SAP',
      received: Buffer.from('x'),
      der: Buffer.from('x'),
      subject: 'CN=SAP',
      issuer: 'CN=SAP',
      serial_number: id,
      valid_from: at(-day),
      valid_to: at(days * day),
      key_algorithm: 'RSA',
      signature_algorithm: '1.2.840.113549.1.1.11',
      fingerprint_sha1: id,
      fingerprint_sha256: id,
      signer_id: id,
      is_active: isActive,
    })
    return id
  }
  const id = await certificate(20)
  await certificate(400, false)
  expect(await check(at(0))).toMatchObject({ opened: 0 })
  await db('repositories').where({ id: scene.repositoryId }).update({ signature_verification: true })
  expect(await check(at(minute))).toMatchObject({ opened: 1, notices: 1 })
  expect((await scene.notices())[0]!.data).toMatchObject({
    certificate: { id, authId: 'CN=SAP', validTo: at(20 * day).toISOString() },
    summary: `Certificate CN=SAP of repository Z1 expires on ${at(20 * day)
      .toISOString()
      .slice(0, 10)}.`,
  })
  await certificate(300)
  expect(await check(at(2 * minute))).toMatchObject({ closed: 1, notices: 1 })
  expect(await scene.types()).toEqual(['relay.certificate.expiring', 'relay.certificate.recovered'])
})

test('a destination whose client certificate expires is announced until its credentials are renewed', async () => {
  const scene = await createScene(['certificate.expiring'])
  const day = 86_400_000
  const expireAt = (days: number) =>
    database
      .db('destinations')
      .where({ id: scene.destinationId })
      .update({ credentials_expire_at: at(days * day) })
  await expireAt(31)
  expect(await check(at(0))).toMatchObject({ opened: 0 })
  await expireAt(20)
  expect(await check(at(minute))).toMatchObject({ opened: 1, notices: 1 })
  const [{ data }] = (await scene.notices()) as [Notice]
  expect(data).toMatchObject({
    destination: { id: scene.destinationId, name: 'archive', type: 'webhook' },
    credentialsExpireAt: at(20 * day).toISOString(),
    summary: `The client certificate of destination archive (webhook) expires on ${at(20 * day)
      .toISOString()
      .slice(0, 10)}.`,
  })
  expect(data.remedy).toContain('new client certificate')
  expect(data).not.toHaveProperty('certificate')
  await expireAt(-1)
  expect(await check(at(2 * minute))).toMatchObject({ opened: 0, closed: 0 })
  await expireAt(365)
  expect(await check(at(3 * minute))).toMatchObject({ closed: 1, notices: 1 })
  expect(await scene.types()).toEqual(['relay.certificate.expiring', 'relay.certificate.recovered'])
})

test('a repository that receives and is wired to nothing is announced until it is wired or its documents are acknowledged', async () => {
  const scene = await createScene(['repository.not_connected'])
  const { db } = database
  const linked = await db('connection_repositories').where({ repository_id: scene.repositoryId }).select()
  await db('connection_repositories').where({ repository_id: scene.repositoryId }).delete()
  expect(await check(at(0))).toMatchObject({ opened: 0 })
  const discard = async () => {
    const { workspaceId, repositoryId } = scene
    const id = await insertDocument(db, { workspaceId, repositoryId, repoId: 'Z1', status: 'discarded', receivedAt: at(minute) })
    await db('documents').where({ id }).update({ is_unconnected: true })
  }
  await discard()
  await discard()
  expect(await check(at(minute))).toMatchObject({ opened: 1, notices: 1 })
  expect((await scene.notices())[0]!.data).toMatchObject({
    summary: 'Repository Z1 has no connection to a destination and has discarded 2 documents.',
    openedAt: at(minute).toISOString(),
    consoleUrl: `https://relay.example.com/console/attention?workspace=${scene.workspace}`,
  })
  await db('connection_repositories').insert(linked)
  expect(await check(at(2 * minute))).toMatchObject({ closed: 1, notices: 1 })

  await db('connection_repositories').where({ repository_id: scene.repositoryId }).delete()
  await db('documents')
    .where({ repository_id: scene.repositoryId })
    .update({ acknowledged_at: at(3 * minute) })
  expect(await check(at(3 * minute))).toMatchObject({ opened: 0, notices: 0 })
})

test('an event subscription that a 410 has stopped is announced at once, until it is activated again or its destination is deleted', async () => {
  const scene = await createScene(['event_subscription.failing'])
  const { db } = database
  await db('event_subscriptions').insert({
    id: newId(),
    workspace_id: scene.workspaceId,
    name: 'Data',
    events: ['document.failed'],
    destination_id: scene.destinationId,
    is_active: false,
    epoch: 1,
    transaction: 1,
    number: 1,
    attempts: 1,
    failing_since: new Date(),
    last_error: 'the target answered 410 Gone',
    last_error_code: 'http_410',
  })
  await check(new Date())
  const { data } = await db('notices').where({ workspace_id: scene.workspaceId }).first('data')
  expect(data).toMatchObject({
    summary: expect.stringMatching(/^Event subscription Data was stopped: .* answered 410 Gone\.$/),
    remedy: expect.stringContaining('Activate it'),
    error: { code: 'http_410', message: 'the target answered 410 Gone' },
  })
  await check(new Date())
  expect(await scene.types()).toEqual(['relay.event_subscription.failing'])
  await db('destinations').where({ id: scene.destinationId }).update({ deleted_at: new Date() })
  await check(new Date())
  expect(await scene.types()).toEqual(['relay.event_subscription.failing', 'relay.event_subscription.recovered'])
  await db('event_subscriptions').where({ workspace_id: scene.workspaceId }).delete()
})

test('an event subscription whose receiver fails is announced after 15 minutes, until an event is accepted', async () => {
  const scene = await createScene(['event_subscription.failing'])
  const [id, position] = [newId(), { epoch: 1, transaction: 1, number: 1 }]
  const { db } = database
  const { destinationId } = scene
  const row = { id, workspace_id: scene.workspaceId, name: 'Data', events: ['document.failed'], destination_id: destinationId, ...position }
  await db('event_subscriptions').insert({
    ...row,
    attempts: 3,
    failing_since: new Date(Date.now() - 10 * 60_000),
    last_error: 'HTTP 500',
    last_error_code: 'http_500',
  })
  await check(new Date())
  expect(await scene.types()).toEqual([])
  await db('event_subscriptions').update({ failing_since: new Date(Date.now() - 16 * 60_000) })
  await check(new Date())
  expect(await scene.types()).toEqual(['relay.event_subscription.failing'])
  const { data } = await db('notices').where({ workspace_id: scene.workspaceId }).first('data')
  expect(data).toMatchObject({
    summary: expect.stringMatching(/^Event subscription Data is behind: .* has not accepted the next event in 3 attempts\.$/),
    subscription: { id, name: 'Data' },
    destination: { id: destinationId },
    error: { code: 'http_500', message: 'HTTP 500' },
    count: 3,
    console_url: `https://relay.example.com/console/subscriptions/${id}?workspace=${scene.workspace}`,
  })
  await db('event_subscriptions').update({ attempts: 0, failing_since: null, last_error: null, last_error_code: null })
  await check(new Date())
  expect(await scene.types()).toEqual(['relay.event_subscription.failing', 'relay.event_subscription.recovered'])
})

test('an enrichment whose latest documents got no answer is announced until one is enriched', async () => {
  const scene = await createScene(['enrichment.failing'])
  const { db } = database
  const { workspaceId, repositoryId } = scene
  const enrichmentId = newId()
  await db('enrichments').insert({
    id: enrichmentId,
    workspace_id: workspaceId,
    name: 'MM invoices',
    wait_seconds: 60,
    late_days: 7,
    steps: '[]',
  })
  const enrich = async (status: string, step: object, { waits = false } = {}) => {
    const id = await insertDocument(db, { workspaceId, repositoryId, repoId: 'Z1', docId: 'DOC1' })
    await db('document_enrichments').insert({
      document_id: id,
      workspace_id: workspaceId,
      enrichment_id: enrichmentId,
      status,
      attempts: 1,
      steps: JSON.stringify([{ name: 'link', error: null, ...step }]),
      waits_until: waits ? new Date(Date.now() + 60 * minute) : new Date(Date.now() - minute),
      ends_at: new Date(Date.now() + 60 * minute),
    })
    return id
  }
  const unanswered = { status: 'failed', error: 'the system did not answer in time' }
  const unlinked = { status: 'incomplete', error: 'erp_object_id is not in the answer' }
  // A document that is waited for, and one that the source system has not linked yet.
  await enrich('pending', unanswered, { waits: true })
  await enrich('pending', unlinked)
  expect(await check(at(0))).toMatchObject({ opened: 0 })
  for (let count = 0; count < 4; count++) await enrich('pending', unanswered)
  expect(await check(at(minute))).toMatchObject({ opened: 0 })
  const documentId = await enrich('failed', unlinked)
  expect(await check(at(2 * minute))).toMatchObject({ opened: 1, notices: 1 })
  await enrich('partial', unanswered)
  expect(await check(at(3 * minute))).toMatchObject({ opened: 0, notices: 0 })
  const [{ data }] = (await scene.notices()) as [Notice]
  expect(data).toMatchObject({
    summary: 'Enrichment MM invoices fails: its latest 5 documents lack business data.',
    enrichment: { id: enrichmentId, name: 'MM invoices' },
    error: { message: 'link: erp_object_id is not in the answer' },
    document: { id: documentId, workflowId: `document/${scene.workspace}/Z1/DOC1/data/${documentId}` },
    count: 5,
  })
  await enrich('complete', { status: 'done' })
  expect(await check(at(4 * minute))).toMatchObject({ closed: 1, notices: 1 })
  expect(await scene.types()).toEqual(['relay.enrichment.failing', 'relay.enrichment.recovered'])

  for (let count = 0; count < 5; count++) await enrich('failed', unanswered)
  await db('enrichments').where({ id: enrichmentId }).update({ is_active: false })
  expect(await check(at(5 * minute))).toMatchObject({ opened: 0 })
})

test('a notice whose workflow was lost is started again', async () => {
  const scene = await createScene(['destination.failing'])
  await scene.setGate({ circuit: 'open' })
  const { messages } = await check(at(0))
  expect(messages).toHaveLength(1)
  expect(await check(at(minute))).toMatchObject({ messages: [] })
  expect((await check(at(5 * minute))).messages).toEqual(messages)
})
