import { readFile } from 'node:fs/promises'
import { parse, stringify } from 'yaml'
import { diagnose } from '../../src/cli/doctor/doctor.ts'
import { dataDirMetricName } from '../../src/observe/metrics.ts'
import { readServerTime } from '../../src/temporal/pollers.ts'
import { testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startInstallation } from '../support/installation.ts'
import { dashboardFile, promtoolOn, rulesFile, startPrometheus } from '../support/prometheus.ts'
import { routeToWebhook, type RelayProcess } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { until } from '../support/until.ts'

const target = share(await startHttpTarget())
const { database, env, api, worker } = share(await startInstallation())
const prometheus = share(
  await startPrometheus({ 'relay-api': new URL(api.probesUrl).host, 'relay-worker': new URL(worker.probesUrl).host }),
)

const { workspaceSlug } = await routeToWebhook(database, target.origin)
const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
await source.create('D1', 'text')
await source.close()
await until('the document has arrived', () => target.arrivals.length > 0)

const metricsOf = async ({ probesUrl }: RelayProcess) => (await fetch(`${probesUrl}/metrics`)).text()
const namesIn = (text: string) => [...text.matchAll(/^# HELP (\w+)/gm)].map(([, name]) => name!)
const path = (name: string) => new URL(`../../${name}`, import.meta.url)

interface Dashboard {
  panels: { id: number; title: string; targets?: { expr: string }[] }[]
}

const expressionsOfDashboard = async (): Promise<string[]> => {
  const { panels } = JSON.parse(await readFile(dashboardFile, 'utf8')) as Dashboard
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  // Grafana replaces its variable by a duration.
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m')))
}

const expressionsOfRules = async (): Promise<string[]> => {
  const { groups } = parse(await readFile(rulesFile, 'utf8')) as { groups: { rules: { expr: string }[] }[] }
  return groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))
}

const metricName = /\b(?:relay|temporal|nodejs|process)_[a-z0-9_]+\b/g

/** Returns the names of metrics in a page, except the files and fields that are called alike. */
const namesInPage = async (page: string) =>
  [...(await readFile(path(page), 'utf8')).matchAll(/`((?:relay|temporal|nodejs|process)_[a-z0-9_]+)(?:\{[a-z_,]*\})?`/g)].map(
    ([, name]) => name!,
  )

// The SDK creates a metric when it has the first value. Its source has the names without prefix and unit.
const sdkSources = ['sdk-core/src/telemetry/metrics.rs', 'client/src/metrics.rs']
const namesOfSdk = async () => {
  const crates = path('node_modules/@temporalio/core-bridge/sdk-core/crates/')
  const sources = await Promise.all(sdkSources.map((file) => readFile(new URL(file, crates), 'utf8')))
  return new Set(sources.flatMap((code) => [...code.matchAll(/"([a-z_]+)"/g)].map(([, name]) => name!)))
}
const withoutSuffixes = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '')
const nameInSdk = (name: string) =>
  withoutSuffixes(name)
    .replace(/^temporal_/, '')
    .replace(/_(?:total|seconds)$/, '')

test('Prometheus scrapes the API and the worker, and evaluates every rule', async () => {
  interface Targets {
    activeTargets?: { scrapePool: string; health: string; lastError: string }[]
  }
  await until(
    'both targets are up',
    () => prometheus.get<Targets>('targets'),
    ({ activeTargets = [] }) => activeTargets.length === 2 && activeTargets.every(({ health }) => health === 'up'),
  )
  interface Rules {
    groups?: { rules: { name: string; health: string; lastError?: string }[] }[]
  }
  const { groups } = await until(
    'all rules were evaluated',
    () => prometheus.get<Rules>('rules'),
    ({ groups: found = [] }) => found.length > 0 && found.every(({ rules }) => rules.every(({ health }) => health !== 'unknown')),
  )
  for (const { name, health, lastError } of groups!.flatMap(({ rules }) => rules))
    expect({ name, health, lastError }).toEqual({ name, health: 'ok' })
})

test('the metrics of the Temporal SDK are part of those of a worker, under the documented names', async () => {
  const text = await until(
    'the activity was measured',
    () => metricsOf(worker),
    (found) => found.includes('temporal_activity_execution_latency_seconds_bucket'),
  )
  const names = new Set(namesIn(text))
  for (const name of [
    'temporal_worker_task_slots_available',
    'temporal_num_pollers',
    'temporal_workflow_task_schedule_to_start_latency_seconds',
    'temporal_request_total',
    'temporal_sticky_cache_size',
  ])
    expect(names).toContain(name)
  expect(text).toMatch(/^temporal_worker_task_slots_available\{[^}]*worker_type="ActivityWorker"[^}]*\} \d+$/m)
  expect(text).not.toContain('service_name')
  // Prometheus refuses a scrape in which a metric is described twice.
  expect(names.size).toBe(namesIn(text).length)
})

test('the API counts the workers that poll, and both processes count their database connections', async () => {
  const [ofApi, ofWorker] = [await metricsOf(api), await metricsOf(worker)]
  expect(ofApi).toMatch(/^relay_task_queue_pollers\{task_queue="document-relay"\} 1$/m)
  for (const text of [ofApi, ofWorker])
    expect(text).toMatch(/^relay_database_pool_connections\{state="used"\} \d+\nrelay_database_pool_connections\{state="free"\} \d+\n/m)
})

test('counters whose first increase raises an alert begin at 0', async () => {
  const ofApi = await metricsOf(api)
  expect(ofApi).toMatch(/^relay_captures_lost_total\{reason="full"\} 0$/m)
  expect(ofApi).toMatch(/^relay_receiver_refusals_total\{code="quota_exceeded"\} 0$/m)
  expect(await metricsOf(worker)).toMatch(/^relay_deliveries_total\{connector="sftp",outcome="failed"\} 0$/m)
})

test('promtool accepts every expression of the dashboard', async () => {
  const rules = (await expressionsOfDashboard()).map((expr, index) => ({ record: `panel_${index}`, expr }))
  expect(rules.length).toBeGreaterThan(40)
  const output = await promtoolOn(['check', 'rules'], stringify({ groups: [{ name: 'dashboard', rules }] }))
  expect(output).toContain(`SUCCESS: ${rules.length} rules found`)
})

test('every metric that the dashboard, the rules and the docs use is registered', async () => {
  const registered = new Set([...namesIn(await metricsOf(api)), ...namesIn(await metricsOf(worker)), dataDirMetricName])
  const ofSdk = await namesOfSdk()
  const isKnown = (name: string) =>
    registered.has(name) || registered.has(withoutSuffixes(name)) || (name.startsWith('temporal_') && ofSdk.has(nameInSdk(name)))
  const used = [...(await expressionsOfRules()), ...(await expressionsOfDashboard())].flatMap((expr) => expr.match(metricName) ?? [])
  expect(used.length).toBeGreaterThan(80)
  const named = [...(await namesInPage('docs/observability.md')), ...(await namesInPage('docs/runbook.md'))]
  expect([...new Set([...used, ...named])].filter((name) => !isKnown(name))).toEqual([])
})

test('every rule has a section in docs/runbook.md, and every section a rule', async () => {
  const { groups } = parse(await readFile(rulesFile, 'utf8')) as { groups: { rules: { alert: string }[] }[] }
  const sections = [...(await readFile(path('docs/runbook.md'), 'utf8')).matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
  expect(sections).toEqual(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)))
})

test('relay doctor finds the worker, and the clock of Temporal', async () => {
  const findings = await diagnose(testConfig({ DATABASE_URL: database.url, ...temporalVariables(env), TEMPORAL_START_TIMEOUT_MS: '60000' }))
  const byName = new Map(findings.map((finding) => [finding.name, finding]))
  for (const name of ['workers', 'Temporal clock', 'Temporal settings', 'search attributes', 'schedules'])
    expect(byName.get(name)).toMatchObject({ name, status: 'ok', remedy: null })
  expect(byName.get('workers')!.message).toContain('1 poll the task queue')
  expect(byName.get('Temporal settings')!.message).toMatch(/^Temporal 1\.\d+\.\d+\. Its API does not show/)
})

test('the clock of Temporal is read between two readings of the own clock, and a namespace that does not exist is an error', async () => {
  const { before, theirs, after } = await readServerTime(env.connection, env.namespace ?? 'default', 60_000)
  // Both processes of this test read the clock of the same machine. Temporal rounds to nanoseconds.
  expect(theirs).toBeGreaterThanOrEqual(before - 1)
  expect(theirs).toBeLessThanOrEqual(after + 1)
  await expect(readServerTime(env.connection, 'missing', 60_000)).rejects.toThrow(/missing/)
})

// Stops the worker, so it is the last one.
test('the alert about an absent worker becomes active when the worker is killed', async () => {
  interface Alerts {
    alerts?: { labels: { alertname: string }; state: string }[]
  }
  const isActive = ({ alerts = [] }: Alerts) => alerts.some(({ labels }) => labels.alertname === 'RelayWorkerAbsent')
  // Before the first scrape, both were absent.
  await until(
    'the worker is not absent',
    () => prometheus.get<Alerts>('alerts'),
    (found) => found.alerts !== undefined && !isActive(found),
  )
  worker.child.kill('SIGKILL')
  expect(isActive(await until('the worker is absent', () => prometheus.get<Alerts>('alerts'), isActive))).toBe(true)
})
