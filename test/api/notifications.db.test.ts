import type { WorkspaceClient } from '../support/client.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { startMailServer } from '../support/smtp-server.ts'
import { objstore } from './objstore.ts'

const { acme, other } = share(await startScene())
const target = share(await startHttpTarget())
const mailServer = share(await startMailServer({ authOptional: true, disabledCommands: ['STARTTLS'] }))

const destination = async (tenant: WorkspaceClient, body: object): Promise<string> =>
  (await tenant.call('POST', '/destinations', { name: 'Operators', credentials: {}, ...body })).json.data.id
const webhook = (tenant = acme) => destination(tenant, { connector_type: 'webhook', config: { url: 'https://example.com/in' } })
const email = (tenant = acme) =>
  destination(tenant, { connector_type: 'email', config: { host: 'smtp.example.com', from: 'relay@example.com', to: 'ops@example.com' } })

const create = (body: object, key = acme.keys.admin, tenant = acme) =>
  tenant.call('POST', '/notifications', { name: 'All', ...body }, { key })
const refusalOf = ({ status, json }: Awaited<ReturnType<typeof create>>) => ({ status, details: json.error.details })

test('a notification has defaults, and no notices at first', async () => {
  const body = { events: ['destination.failing', 'source.silent', 'source.silent'], destination_id: await email() }
  const { id, type, attributes } = (await create(body)).json.data
  expect({ type, attributes }).toMatchObject({
    type: 'notification',
    attributes: { events: ['destination.failing', 'source.silent'], quiet_seconds: 900, silence_hours: 72, is_active: true },
  })
  expect((await acme.call('GET', `/notifications/${id}/notices`)).json).toEqual({ data: [], meta: { per_page: 25, next_cursor: null } })
  expect((await acme.call('DELETE', `/notifications/${id}`)).status).toBe(204)
  expect((await acme.call('GET', `/notifications/${id}/notices`)).status).toBe(404)
})

test.each([
  ['no events', { events: [] }, 'events'],
  ['an unknown event', { events: ['destination.sleeping'] }, 'events.0'],
  ['a negative quiet time', { quiet_seconds: -1 }, 'quiet_seconds'],
  ['a silence of no hour', { silence_hours: 0 }, 'silence_hours'],
  ['a silence of more than 30 days', { silence_hours: 721 }, 'silence_hours'],
  ['a quiet time of more than a week', { quiet_seconds: 7 * 86_400 + 1 }, 'quiet_seconds'],
])('%s is refused with 422', async (_, change, path) => {
  const refused = refusalOf(await create({ events: ['delivery.failed'], destination_id: await webhook(), ...change }))
  expect(refused).toMatchObject({ status: 422, details: [{ path }] })
})

test('only a webhook or a mail server of the same workspace takes notices', async () => {
  const bucket = (await acme.call('POST', '/destinations', objstore('Bucket'))).json.data.id
  const message = 'must be a destination of the type email or webhook; this one is of the type objstore'
  const refusal = { status: 422, details: [{ path: 'destination_id', message }] }
  expect(refusalOf(await create({ events: ['delivery.failed'], destination_id: bucket }))).toEqual(refusal)
  const { id } = (await create({ events: ['delivery.failed'], destination_id: await webhook() })).json.data
  expect(refusalOf(await acme.call('PATCH', `/notifications/${id}`, { destination_id: bucket }))).toEqual(refusal)
  for (const unknown of [await webhook(other), 'unknown']) {
    expect((await create({ events: ['delivery.failed'], destination_id: unknown })).status).toBe(422)
  }
})

test('a destination is deleted together with the notifications that are sent to it', async () => {
  const [first, second] = [await webhook(), await webhook()]
  const deleted = (await create({ name: 'First', events: ['delivery.failed'], destination_id: first })).json.data.id
  const kept = (await create({ name: 'Second', events: ['delivery.failed'], destination_id: second })).json.data.id
  const dryRun = await acme.call('DELETE', `/destinations/${first}?dry_run=true`)
  expect(dryRun.json.data).toEqual({
    removed_connections: [],
    unlinked_connections: [],
    removed_notifications: [{ id: deleted, name: 'First' }],
    unwired_repositories: [],
    affected_destinations: [],
    failed_documents_delivered: 0,
  })
  expect((await acme.call('DELETE', `/destinations/${first}`)).status).toBe(204)
  expect((await acme.call('GET', `/notifications/${deleted}`)).status).toBe(404)
  expect((await acme.call('GET', `/notifications/${kept}`)).status).toBe(200)
})

describe('a test of a notification', () => {
  const testOf = async (destinationId: string, isActive = true) => {
    const created = await create({ events: ['source.silent'], destination_id: destinationId, is_active: isActive })
    return { id: created.json.data.id, ...(await acme.call('POST', `/notifications/${created.json.data.id}/test`)) }
  }
  const hook = (credentials: object) =>
    destination(acme, { connector_type: 'webhook', config: { url: `${target.origin}/alerts?key=canary-4711` }, credentials })

  test('reaches a webhook as a message of a type of its own, also if the notification is inactive', async () => {
    target.arrivals.length = 0
    target.answerWith((_, response) => void response.end())
    const { id, status, json } = await testOf(await hook({ bearer_token: 'canary-5f1c' }), false)
    expect({ status, json }).toEqual({
      status: 200,
      json: { data: { status: 'success', message: 'Destination Operators has accepted the test message.' } },
    })
    const [arrival, ...more] = target.arrivals
    expect(more).toEqual([])
    expect(arrival!.headers).toMatchObject({ 'x-relay-event-type': 'relay.notification.test', authorization: 'Bearer canary-5f1c' })
    const message = JSON.parse(arrival!.body.toString())
    expect(message).toMatchObject({
      type: 'relay.notification.test',
      data: {
        workspace: 'acme/prod',
        incident_id: arrival!.headers['webhook-id'],
        summary: 'This is a test of the notification All of Document Relay. No incident has begun.',
        count: 0,
      },
    })
    expect((await acme.call('GET', `/notifications/${id}/notices`)).json.data).toEqual([])
  })

  test('reaches a mailbox', async () => {
    const mail = { host: '127.0.0.1', port: mailServer.port, tls: 'none', from: 'relay@acme.example', to: ['ops@acme.example'] }
    const { json } = await testOf(await destination(acme, { connector_type: 'email', config: mail }))
    expect(json.data).toMatchObject({ status: 'success' })
    expect(mailServer.mails[0]!.parsed.subject).toBe(
      'Test in acme/prod: This is a test of the notification All of Document Relay. No incident has begun.',
    )
  })

  test('says what the target has answered, without secrets', async () => {
    target.answerWith((_, response) => void response.writeHead(403).end('no canary-5f1c here'))
    const { status, json } = await testOf(await hook({ bearer_token: 'canary-5f1c' }))
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        data: {
          status: 'failed',
          error_code: 'http_403',
          message: expect.stringMatching(/^POST of \S+ to http:\S+: the target answered 403 Forbidden$/) as string,
        },
      },
    })
  })
})
