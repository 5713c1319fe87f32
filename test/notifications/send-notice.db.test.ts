import { Webhook } from 'standardwebhooks'
import { createNoticeActivities } from '../../activities/notices.ts'
import { newId } from '../../src/base/ids.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createSendNotice } from '../../src/notifications/send-notice.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { insertDocument } from '../api/insert-document.ts'
import { expectSame, runActivity } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { saveTarget } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { startMailServer } from '../support/smtp-server.ts'

const config = testConfig({ RELAY_BASE_URL: 'https://relay.example.com/', TEMPORAL_UI_URL: 'https://temporal.example.com' })
const secret = 'whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ=='
const attemptTimeoutMs = 60_000
const never = new AbortController().signal

const database = share(await createTestDatabase())
const { db } = database
const target = share(await startHttpTarget())
const mailServer = share(await startMailServer({ authOptional: true, disabledCommands: ['STARTTLS'] }))
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const noticesWith = (secretKeys = config.RELAY_SECRET_KEYS) =>
  createSendNotice({
    db,
    findConnector: createConnectors().find,
    keyRing: createKeyRing(secretKeys),
    outbound,
    installation: createInstallation(db),
    config,
  })
const notices = noticesWith()
beforeEach(async () => {
  target.arrivals.length = 0
  mailServer.mails.length = 0
  target.answerWith((_, response) => void response.end())
  mailServer.answerWith({})
  await db('notifications').delete()
  await db('incidents').delete()
})

/** Writes a notice about a failing destination, to a destination of this kind. */
const writeNotice = async (kind: 'email' | 'webhook', workspaceSettings: object = {}) => {
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'operators', connector: kind }], { workspaceSettings })
  const destinationId = routes.destinations['operators']!
  const targets = {
    webhook: [
      { url: `${target.origin}/alerts?key=canary-4711`, format: 'multipart' },
      { secret, bearer_token: 'canary-5f1c' },
    ],
    email: [{ host: '127.0.0.1', port: mailServer.port, tls: 'none', from: 'relay@acme.example', to: ['ops@acme.example'] }, {}],
  } as const
  const [targetConfig, credentials] = targets[kind]
  await saveTarget(db, { workspaceId: routes.workspaceId, id: destinationId }, kind, targetConfig, credentials)
  const row = { workspace_id: routes.workspaceId, name: 'On call', events: ['destination.failing'], quiet_seconds: 0, silence_hours: 72 }
  await db('notifications').insert({ id: newId(), ...row, destination_id: destinationId })
  await db('destination_gates').insert({ destination_id: routes.destinations['archive'], circuit: 'open', failures: 10 })
  const delivery = {
    destinationId: routes.destinations['archive']!,
    connectionId: routes.connections['archive']!,
    status: 'retrying' as const,
  }
  const { workspaceId, repositoryId, repoId } = routes
  const documentId = await insertDocument(db, { workspaceId, repositoryId, repoId, status: 'retrying', deliveries: [delivery] })
  await db('deliveries').where({ document_id: documentId }).update({ last_error: 'HTTP 500', last_error_code: 'http_500' })
  await db('documents').where({ id: documentId }).update({ erp_object_type: 'BKPF', erp_object_id: '100019000047112026' })
  const check = createCheckIncidents(db, config)
  const { messages } = await check(new Date())
  const [{ input }] = messages as [(typeof messages)[0]]
  return {
    ...routes,
    documentId,
    workspace: input.workspace,
    noticeId: input.noticeId,
    /** Runs the activity for the nth time. */
    run: (attempt: number) =>
      runActivity(attempt, () => createNoticeActivities(notices).sendNotice({ noticeId: input.noticeId, attemptTimeoutMs })),
    /** Every retry is due. */
    send: () => notices.sendNotice(input.noticeId, attemptTimeoutMs, never, 'infinity'),
    row: () => db('notices').where({ id: input.noticeId }).first(),
    audited: () =>
      db('audit_logs').where({ workspace_id: routes.workspaceId, subject_id: input.noticeId }).orderBy('id').select('event', 'metadata'),
    checkAgain: () => check(new Date()),
    recover: async () => {
      await db('destination_gates').where({ destination_id: routes.destinations['archive'] }).update({ circuit: 'closed', failures: 0 })
      return (await check(new Date())).messages[0]!.input.noticeId
    },
  }
}

test('a webhook gets a signed message of the Standard Webhooks', async () => {
  const scene = await writeNotice('webhook')
  expect(await scene.send()).toEqual({ status: 'delivered' })
  const [arrival, ...more] = target.arrivals
  expect(more).toEqual([])
  expect(arrival).toMatchObject({
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': scene.noticeId,
      'x-relay-event-type': 'relay.destination.failing',
      'x-relay-workspace': scene.workspace,
      authorization: 'Bearer canary-5f1c',
    },
  })
  const message = new Webhook(secret).verify(arrival!.body.toString(), arrival!.headers as Record<string, string>)
  const { data, created_at } = await scene.row()
  expect(message).toEqual({ type: 'relay.destination.failing', timestamp: created_at.toISOString(), data })
  expect(data).toMatchObject({
    workspace: scene.workspace,
    summary: 'Destination archive (webhook) fails: 10 attempts in a row without success.',
    destination: { id: scene.destinations['archive'], name: 'archive', type: 'webhook' },
    count: 10,
  })
  expect(await scene.row()).toMatchObject({ status: 'delivered', attempts: 1, last_error: null, next_attempt_at: null })
  expect(await scene.audited()).toMatchObject([{ event: 'notice.delivered', metadata: { attempts: 1 } }])
  // A second run of the activity, after its worker was lost.
  expect(await scene.send()).toEqual({ status: 'delivered' })
  expect(target.arrivals).toHaveLength(1)
})

test('a mail says in plain text what has happened and what to do, and another one that it has ended', async () => {
  const scene = await writeNotice('email')
  expect(await scene.send()).toEqual({ status: 'delivered' })
  const recoveredId = await scene.recover()
  expect(await notices.sendNotice(recoveredId, attemptTimeoutMs, never)).toEqual({ status: 'delivered' })
  const [failing, recovered, ...more] = mailServer.mails
  expect(more).toEqual([])
  const summary = 'Destination archive (webhook) fails: 10 attempts in a row without success.'
  expect(failing!.to).toEqual(['ops@acme.example'])
  expect(failing!.parsed).toMatchObject({
    subject: `Incident in ${scene.workspace}: ${summary}`,
    messageId: `<${scene.noticeId}@acme.example>`,
  })
  expect(Object.fromEntries(failing!.parsed.headers.map(({ key, value }) => [key, value]))).toMatchObject({
    'x-relay-event-type': 'relay.destination.failing',
    'x-relay-workspace': scene.workspace,
  })
  const id = scene.destinations['archive']
  const lines = failing!.parsed.text!.split('\n').map((line) => line.trimEnd())
  expect(lines).toEqual(
    expect.arrayContaining([
      summary,
      `Workspace:   ${scene.workspace}`,
      `Destination: archive, webhook, ${id}`,
      `Console:     https://relay.example.com/console/destinations/${id}?workspace=${scene.workspace}`,
      'About:       Invoice 1900004711, company 1000, 2026',
      `Its page:    https://relay.example.com/console/documents/${scene.documentId}?workspace=${scene.workspace}`,
      'What to do:',
      '  Check that destination archive is reachable and accepts requests. The relay tries again by itself.',
      'Last error:  http_500: HTTP 500',
      'Sent by the notification On call of Document Relay.',
    ]),
  )
  // Lines for programs are not for a mailbox.
  expect(failing!.parsed.text).not.toMatch(/^ *(GET|POST|PATCH|relay) /m)
  expect(recovered!.parsed.subject).toBe(`Recovered in ${scene.workspace}: Destination archive (webhook) no longer fails.`)
  expect(recovered!.parsed.text).toContain('Ended:')
  expect(recovered!.parsed.text).not.toContain('What to do')
})

test('a notice is sent again until its destination accepts it, with the same id, and shows the error without secrets', async () => {
  const scene = await writeNotice('webhook', { retry_initial_interval_seconds: 60 })
  target.answerWith((_, response) => void response.writeHead(503).end('key=canary-4711'))
  const outcome = await scene.send()
  const error = expect.stringMatching(/^POST of \S+ to http:\S+: the target answered 503 Service Unavailable$/) as string
  expect(outcome).toMatchObject({ status: 'retrying', errorCode: 'http_503', error })
  expect((outcome as { delayMs: number }).delayMs).toBeGreaterThanOrEqual(60_000)
  expect(await scene.row()).toMatchObject({ status: 'pending', attempts: 1, last_error_code: 'http_503', delivered_at: null })
  expect(JSON.stringify(await scene.row())).not.toContain('canary')
  expect(await scene.audited()).toEqual([])
  target.answerWith((_, response) => void response.end())
  expect(await scene.send()).toEqual({ status: 'delivered' })
  expect(target.arrivals.map(({ headers }) => headers['webhook-id'])).toEqual([scene.noticeId, scene.noticeId])
  expect(await scene.row()).toMatchObject({ status: 'delivered', attempts: 2, last_error: null })
})

test.each([
  ['the retry settings of the workspace allow no further attempt', { max_retries: 0 }, 503, 'http_503'],
  ['no retry can mend the error', {}, 404, 'http_404'],
])('a notice fails when %s, and is itself no incident', async (_, settings, status, code) => {
  const scene = await writeNotice('webhook', settings)
  target.answerWith((__, response) => void response.writeHead(status).end())
  expect(await scene.send()).toMatchObject({ status: 'failed' })
  expect(await scene.row()).toMatchObject({ status: 'failed', attempts: 1, last_error_code: code, next_attempt_at: null })
  expect(await scene.audited()).toMatchObject([{ event: 'notice.failed', metadata: { error_code: code } }])
  expect(await scene.checkAgain()).toMatchObject({ opened: 0, notices: 0, messages: [] })
})

test('a notice of a deleted notification is not sent, and one whose workflow was cancelled fails', async () => {
  const deleted = await writeNotice('webhook')
  await db('notifications').where({ workspace_id: deleted.workspaceId }).delete()
  expect(await deleted.send()).toEqual({ status: 'cancelled' })
  const cancelled = await writeNotice('webhook')
  await notices.cancelNotice(cancelled.noticeId)
  expect(await cancelled.send()).toMatchObject({ status: 'failed' })
  expect(await cancelled.row()).toMatchObject({ status: 'failed', last_error: 'an operator cancelled the workflow' })
  expect(target.arrivals).toEqual([])
})

test('a target that does not answer in time is tried again', async () => {
  const scene = await writeNotice('webhook')
  target.answerWith(() => {})
  expect(await notices.sendNotice(scene.noticeId, 500, never)).toMatchObject({
    status: 'retrying',
    errorCode: 'attempt_timeout',
    error: 'the attempt took longer than 0.5 s',
  })
})

test('a notice whose destination has credentials that no key opens says so', async () => {
  const scene = await writeNotice('webhook')
  const { sendNotice } = noticesWith([`other:${Buffer.alloc(32, 7).toString('base64')}`])
  const error = expect.stringContaining('RELAY_SECRET_KEYS')
  expect(await sendNotice(scene.noticeId, attemptTimeoutMs, never)).toMatchObject({ status: 'retrying', error })
  expect(await scene.row()).toMatchObject({ status: 'pending', attempts: 1, last_error_code: 'unexpected', last_error: error })
})

test("a failure of the relay's own database is no attempt to send a notice", async () => {
  const scene = await writeNotice('webhook')
  await db.raw('alter table installation rename to gone')
  try {
    await expect(noticesWith().sendNotice(scene.noticeId, attemptTimeoutMs, never)).rejects.toThrow(/installation/)
  } finally {
    await db.raw('alter table gone rename to installation')
  }
  expect(target.arrivals).toEqual([])
  expect(await scene.row()).toMatchObject({ status: 'pending', attempts: 0, last_error: null })
})

test.each([
  ['delivered', 200, {}, { outcome: { status: 'delivered' } }],
  ['retrying', 503, {}, { message: expect.stringContaining('503'), isFinal: false, delayMs: expect.any(Number) }],
  ['failed for good', 422, {}, { message: expect.stringContaining('422'), isFinal: true }],
  ['failed by the number of retries', 503, { max_retries: 0 }, { message: expect.stringContaining('503'), isFinal: true }],
])('an attempt whose answer was lost is not made again: %s', async (_, status, workspaceSettings, told) => {
  target.answerWith((__, response) => void response.writeHead(status).end())
  const notice = await writeNotice('webhook', workspaceSettings)
  const first = await notice.run(1)
  expect(first).toEqual(told)
  const before = [await notice.row(), await notice.audited()]
  target.answerWith((__, response) => void response.end())
  expectSame(await notice.run(2), first)
  expect(target.arrivals).toHaveLength(1)
  expect([await notice.row(), await notice.audited()]).toEqual(before)
})
