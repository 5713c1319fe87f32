import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { createKey } from '../src/access/key-administration.ts'
import { createRoutes } from './support/factories.ts'
import { fullOr } from './support/full-run.ts'
import { startHttpTarget } from './support/http-target.ts'
import { createInstallation } from './support/installation.ts'
import { startOtlpCollector } from './support/otlp-collector.ts'
import { startPrometheus } from './support/prometheus.ts'
import { saveTarget, type RelayProcess } from './support/relay-process.ts'
import { repeatJob } from './support/repeat-job.ts'
import { share } from './support/share.ts'
import { startMailServer } from './support/smtp-server.ts'
import { until } from './support/until.ts'

// A target is down under load, and returns. Logs, metrics, alerts and traces show it. Operators get one mail and one webhook message at
// the beginning, and one of each at the end.

const checkIntervalMs = 1_000
const deadlineMs = 240_000
const downMs = fullOr(60_000, 10_000)
const documentsPerSecond = 4

// Untyped JSON.
type Json = ReturnType<typeof JSON.parse>

const archive = share(await startHttpTarget())
const alerts = share(await startHttpTarget())
const collector = share(await startOtlpCollector())
const mailServer = share(await startMailServer({ authOptional: true, disabledCommands: ['STARTTLS'] }))
const { db, env, start } = share(
  await createInstallation({
    DELIVERY_CIRCUIT_FAILURES: '3',
    // The longest pause is six times as long.
    DELIVERY_CIRCUIT_PAUSE_MS: '400',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
  }),
)
for (const job of ['sweep-outbox', 'check-incidents', 'compute-metrics']) await repeatJob(env.client, job, checkIntervalMs)

interface Alerts {
  alerts?: { state: string; labels: Record<string, string> }[]
}

test('a target is down under load: log, metrics, alerts and trace show it, one notice says so, and one that it has recovered', async () => {
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'mailbox', connector: 'email' }, { name: 'alerts' }], {
    // Documents go to the archive only.
    inactive: ['mailbox', 'alerts'],
    workspaceSettings: { retry_initial_interval_seconds: 1, retry_max_interval_seconds: 1, max_retries: 100 },
  })
  const { workspaceId, workspaceSlug, destinations } = routes
  const save = (name: string, kind: string, config: object) => saveTarget(db, { workspaceId, id: destinations[name]! }, kind, config, {})
  await save('archive', 'webhook', { url: `${archive.origin}/in` })
  await save('alerts', 'webhook', { url: `${alerts.origin}/alerts` })
  const mailbox = { host: '127.0.0.1', port: mailServer.port, tls: 'none', from: 'relay@acme.example', to: 'ops@acme.example' }
  await save('mailbox', 'email', mailbox)
  await db('connections').where({ workspace_id: workspaceId, is_active: false }).delete()

  const api = await start('api')
  const worker = await start('worker')
  const lines: string[] = []
  createInterface({ input: worker.child.stderr! }).on('line', (line) => lines.push(line))
  // The rules wait for minutes. Here, they wait for as many seconds.
  await using prometheus = await startPrometheus(
    { 'relay-api': new URL(api.probesUrl).host, 'relay-worker': new URL(worker.probesUrl).host },
    (rules) => rules.replaceAll(/^( +for: \d+)m$/gm, '$1s'),
  )

  const { key } = await createKey(db, { workspace: `acme/${workspaceSlug}`, level: 'member' })
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${api.baseUrl}/api/acme/${workspaceSlug}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    expect(response.status).toBeLessThan(300)
    return (await response.json()) as { data: Json }
  }
  const notify = async (name: string) => {
    const rule = {
      name,
      events: ['destination.failing', 'delivery.failed', 'repository.not_connected'],
      destination_id: destinations[name],
    }
    return (await call('POST', '/notifications', rule)).data.id as string
  }
  const rules = [await notify('mailbox'), await notify('alerts')]

  archive.answerWith((_, response) => response.writeHead(503).end())
  // The first mail is refused for the time being, and sent again.
  let refusals = 0
  mailServer.answerWith({
    onMailFrom: (_address, _session, done) => {
      refusals += 1
      done(refusals === 1 ? Object.assign(new Error('try again later'), { responseCode: 451 }) : null)
    },
  })
  let sent = 0
  const send = async () => {
    sent += 1
    const url = `${api.baseUrl}/receiver/acme/${workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=DOC${sent}&compId=data`
    const response = await fetch(url, { method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body: 'hello' })
    expect(response.status).toBe(201)
  }
  for (const endsAt = Date.now() + downMs; Date.now() < endsAt;) {
    await send()
    await delay(1_000 / documentsPerSecond)
  }
  await until(
    'the incident is announced',
    () => [mailServer.mails.length, alerts.arrivals.length],
    (counts) => Math.min(...counts) > 0,
    deadlineMs,
  )
  const firing = async () => {
    const { alerts: found = [] } = await prometheus.get<Alerts>('alerts')
    return found.filter(({ state }) => state === 'firing').map(({ labels }) => labels['alertname']!)
  }
  const expectedAlerts = ['RelayAttemptsFailing', 'RelayCircuitsOpen']
  await until('the alerts fire', firing, (names) => expectedAlerts.every((name) => names.includes(name)), deadlineMs)

  const metrics = async ({ probesUrl }: RelayProcess) => (await fetch(`${probesUrl}/metrics`)).text()
  const circuits = async () => /^relay_circuits\{state="(open|half_open)"\} 1$/m.test(await metrics(api))
  await until('a metric shows the circuit', circuits, Boolean, deadlineMs)
  const attempts = /^relay_attempts_total\{(?=[^}]*outcome="retryable")(?=[^}]*error_class="target")[^}]*\} \d+$/m
  expect(await metrics(worker)).toMatch(attempts)
  const attempted = lines.filter((line) => line.includes('"event":"delivery.attempted"')).map((line) => JSON.parse(line))
  expect(attempted[0]).toMatchObject({ outcome: 'retryable', code: 'http_503', destination_id: destinations['archive'] })
  const failedSpans = () => collector.spans.filter(({ name, isError }) => name === 'delivery.attempt' && isError)
  const [failed] = await until('the failing span is exported', failedSpans, (spans) => spans.length > 0, deadlineMs)
  expect(failed!.attributes).toMatchObject({ 'error.type': 'http_503', 'relay.destination_id': destinations['archive'] })
  expect(attempted.map(({ trace_id }) => trace_id as string)).toContain(failed!.traceId)

  archive.answerWith((_, response) => response.end())
  const statuses = async () => {
    const answers = await Promise.all(rules.map((id) => call('GET', `/notifications/${id}/notices`)))
    return answers.map(
      ({ data }) => data.map(({ attributes }: Json): string => `${attributes.notice_type} ${attributes.status}`) as string[],
    )
  }
  const expected = ['relay.destination.recovered delivered', 'relay.destination.failing delivered']
  await until(
    'the end of the incident is announced',
    statuses,
    (lists) => lists.every((list) => list.length >= 2 && list.every((text) => text.endsWith(' delivered'))),
    deadlineMs,
  )
  const delivered = async () => (await db('documents').where({ workspace_id: workspaceId, status: 'delivered' }).select('id')).length
  await until('all documents are delivered', delivered, (count) => count === sent, deadlineMs)
  await until('the alert for the circuit has ended', firing, (names) => !names.includes('RelayCircuitsOpen'), deadlineMs)
  await delay(3 * checkIntervalMs)

  expect(await statuses()).toEqual([expected, expected])
  expect(mailServer.mails.map(({ parsed }) => parsed.subject)).toEqual([
    expect.stringMatching(/^Incident in acme\/\w+: Destination archive \(webhook\) fails: \d+ attempts in a row without success\.$/),
    `Recovered in acme/${workspaceSlug}: Destination archive (webhook) no longer fails.`,
  ])
  expect(mailServer.mails[0]!.parsed.text).toMatch(/Last error: +http_503: the target answered 503/)
  expect(alerts.arrivals.map(({ body }) => JSON.parse(body.toString()).type)).toEqual([
    'relay.destination.failing',
    'relay.destination.recovered',
  ])
  const { data: notices } = await call('GET', `/notifications/${rules[0]}/notices`)
  expect(notices[1].attributes.attempts).toBe(2)
}, 900_000)
