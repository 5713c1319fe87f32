import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openOperatorTarget } from '../../src/app/operator-notices.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createInstallation, ensureInstallation } from '../../src/db/installation.ts'
import type { RelayStatus } from '../../src/domain/relay-state.ts'
import { createStallCheck } from '../../src/notifications/stalled.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { insertDocument } from '../api/insert-document.ts'
import { openContract } from '../support/contract.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'
import { startMailServer } from '../support/smtp-server.ts'

const minute = 60_000
const database = share(await createTestDatabase())
const { db } = database
await ensureInstallation(db)
const folder = share(await createFolder())
const hook = share(await startHttpTarget())
const mailServer = share(await startMailServer({ authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'] }))
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (guard) => guard.close()))
const config = testConfig({ RELAY_BASE_URL: 'https://relay.example.com' })
const routes = await createRoutes(db, [{ name: 'archive' }])

const start = Date.now()
const at = (minutes: number) => new Date(start + minutes * minute)

beforeEach(async () => {
  hook.arrivals.length = 0
  hook.answerWith((_, response) => void response.end('ok'))
  await db('installation').update({ stall: null })
  await db('deliveries').delete()
  await db('documents').delete()
})

const openTarget = async (content: object, variables: NodeJS.ProcessEnv = {}) => {
  const path = join(folder.path, 'notices.json')
  await writeFile(path, JSON.stringify(content))
  return openOperatorTarget(path, { db, config, outbound, findConnector: createConnectors().find }, variables)
}

const webhook = () => ({
  connector_type: 'webhook',
  config: { url: `${hook.origin}/hook` },
  credentials: { secret: { env: 'HOOK_SECRET' } },
})
const variables = { HOOK_SECRET: 'a-secret-of-the-operator-1' }

/** Adds a delivery that is due at a time: it waits for the dispatcher, or its workflow should have made an attempt. */
const insertDue = async (due: Date, waitsFor: 'dispatcher' | 'attempt' = 'dispatcher') => {
  const id = await insertDocument(db, {
    workspaceId: routes.workspaceId,
    repositoryId: routes.repositoryId,
    repoId: routes.repoId,
    status: 'pending',
    deliveries: [{ destinationId: routes.destinations['archive']!, connectionId: routes.connections['archive']!, status: 'pending' }],
  })
  const times = waitsFor === 'dispatcher' ? { begin_at: due, begin_as: 'document' } : { begin_at: null, next_attempt_at: due }
  await db('deliveries').where({ document_id: id }).update(times)
}

/** Returns the check of one process, whose watch shows what is set. */
const openCheck = async (content: object = webhook()) => {
  const send = await openTarget(content, variables)
  const watch = { status: 'working' as RelayStatus, since: at(-60) }
  const lines: object[] = []
  const check = createStallCheck({
    db,
    relayWatch: { read: () => watch },
    installation: createInstallation(db),
    send: (message) => send(message, new AbortController().signal),
    config,
    log: { info: () => {}, warn: (line: object) => void lines.push(line) } as never,
  })
  return {
    lines,
    check: (minutes: number) => check(at(minutes)),
    set: (status: RelayStatus, minutes: number) => void Object.assign(watch, { status, since: at(minutes) }),
  }
}

const contract = await openContract()

/** Returns the messages that the webhook has got, which are as openapi.json describes them. */
const told = () =>
  hook.arrivals.map(({ body }) => {
    const message = JSON.parse(body.toString())
    const schema = ['webhooks', message.type, 'post', 'requestBody', 'content', 'application/json', 'schema']
    expect({ message, isDescribed: contract.allows(schema, message) }).toEqual({ message, isDescribed: true })
    return message
  })

test.each([
  ['dispatcher', 'no_worker', 'No worker is running: documents are received and wait.'],
  ['attempt', 'temporal_unavailable', 'Temporal does not answer: documents are received and wait.'],
] as const)(
  'a delivery that waits for 5 minutes for its %s is told once, by one of two processes, and so is the end',
  async (waitsFor, cause, summary) => {
    const [one, other] = [await openCheck(), await openCheck()]
    const checkBoth = (minutes: number) => Promise.all([one.check(minutes), other.check(minutes)])
    const setBoth = (status: RelayStatus, minutes: number) => [one, other].map(({ set }) => set(status, minutes))
    await insertDue(at(0), waitsFor)
    await checkBoth(6)
    setBoth(cause, 0)
    await checkBoth(4)
    expect(told()).toEqual([])
    for (const minutes of [6, 7, 20]) await checkBoth(minutes)
    const [opened] = told()
    expect(told()).toEqual([
      {
        type: 'relay.stalled',
        timestamp: at(6).toISOString(),
        data: {
          installation_id: await createInstallation(db).id(),
          incident_id: expect.any(String),
          cause,
          summary,
          remedy: expect.any(String),
          opened_at: at(0).toISOString(),
          console_url: 'https://relay.example.com/console/overview',
        },
      },
    ])
    expect(hook.arrivals[0]!.headers).toMatchObject({
      'x-relay-event-type': 'relay.stalled',
      'webhook-signature': expect.stringMatching(/^v1,/),
    })
    expect(hook.arrivals[0]!.headers).not.toHaveProperty('x-relay-workspace')

    setBoth('working', 21)
    await checkBoth(21.5)
    expect(told()).toHaveLength(1)
    for (const minutes of [22.5, 23, 40]) await checkBoth(minutes)
    expect(told().slice(1)).toEqual([
      {
        type: 'relay.recovered',
        timestamp: at(22.5).toISOString(),
        data: expect.objectContaining({ incident_id: opened.data.incident_id, closed_at: at(22.5).toISOString() }),
      },
    ])
  },
)

test('what nothing waits for is not told', async () => {
  const { check, set } = await openCheck()
  set('no_worker', 0)
  await check(60)
  await insertDue(at(50))
  await insertDue(at(120), 'attempt')
  await check(54)
  expect(told()).toEqual([])
})

test('a target that fails is told again, and nothing if the stall is over by then', async () => {
  const { check, set, lines } = await openCheck()
  await insertDue(at(0))
  set('no_worker', 0)
  hook.answerWith((_, response) => void response.writeHead(503).end())
  await check(6)
  await check(6.5)
  expect(hook.arrivals).toHaveLength(1)
  await check(7.5)
  expect(hook.arrivals).toHaveLength(2)
  expect(lines).toMatchObject([{ event: 'relay.stalled' }, { event: 'relay.stalled' }])
  expect(new Set(hook.arrivals.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  set('working', 8)
  await check(9.5)
  await check(11)
  expect(hook.arrivals).toHaveLength(2)
  expect((await db('installation').first('stall')).stall).toBeNull()
})

test('a stall that begins again before its end could be told goes on, and causes no notice', async () => {
  const { check, set } = await openCheck()
  await insertDue(at(0))
  set('no_worker', 0)
  await check(6)
  hook.answerWith((_, response) => void response.writeHead(503).end())
  set('working', 7)
  await check(8.5)
  hook.answerWith((_, response) => void response.end())
  set('no_worker', 9)
  await check(10)
  await check(20)
  expect(told().map(({ type }) => type)).toEqual(['relay.stalled', 'relay.recovered'])
  set('working', 21)
  await check(23)
  expect(told().map(({ type }) => type)).toEqual(['relay.stalled', 'relay.recovered', 'relay.recovered'])
})

test('a mailbox gets a mail for people', async () => {
  const { check, set } = await openCheck({
    connector_type: 'email',
    config: { host: '127.0.0.1', port: mailServer.port, tls: 'none', from: 'relay@example.com', to: ['operator@example.com'] },
  })
  await insertDue(at(0))
  set('no_worker', 0)
  await check(6)
  const [mail] = mailServer.mails
  expect(mail!.parsed.subject).toBe('Document Relay has stalled: No worker is running: documents are received and wait.')
  expect(mail!.parsed.text).toContain('Start relay worker')
  expect(mail!.parsed.headers.map(({ key }) => key)).not.toContain('x-relay-workspace')
})

test.each<[string, object, RegExp]>([
  ['an unknown kind', { connector_type: 'pigeon', config: {} }, /connector_type must be a kind of destination that takes notices/],
  [
    'a kind that takes no notices',
    { connector_type: 'sftp', config: {} },
    /connector_type must be a kind of destination that takes notices/,
  ],
  ['a config that does not fit', { connector_type: 'webhook', config: { url: 'x' } }, /is invalid: config\.url/],
  [
    'a secret that is missing',
    { ...webhook(), credentials: { secret: { env: 'MISSING' } } },
    /secret: the environment variable MISSING is not set/,
  ],
  [
    'a secret in the file',
    { ...webhook(), credentials: { secret: 'canary-1f2e' } },
    /credentials\.secret must be \{ env: NAME \} or \{ file: PATH \}/,
  ],
])('the start is refused with %s', async (_, content, message) => {
  const error = await openTarget(content).catch((thrown: Error) => thrown.message)
  expect(error).toMatch(/^RELAY_NOTICES_FILE: /)
  expect(error).toMatch(message)
  expect(error).not.toContain('canary-1f2e')
})

test('the file of the documentation is valid', async () => {
  const [, yaml] = /```yaml\n([\s\S]*?)```/.exec(await readFile('docs/notifications.md', 'utf8'))!
  const path = join(folder.path, 'notices.yaml')
  await writeFile(path, yaml!)
  await writeFile(join(folder.path, 'mail-password'), 'secret-of-the-mailbox')
  const deps = { db, config, outbound, findConnector: createConnectors().find }
  expect(await openOperatorTarget(path, deps, { MAIL_USER: 'relay' })).toBeInstanceOf(Function)
})
