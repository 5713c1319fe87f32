import { readFile } from 'node:fs/promises'
import { parse, stringify } from 'yaml'
import { prometheusConfigFile, promtool, promtoolOn, rulesFile } from '../support/prometheus.ts'

interface Rule {
  alert: string
  expr: string
  for?: string
  labels: { severity: string }
  annotations: { summary: string; description: string; runbook_url: string }
}

interface Rules {
  groups: { name: string; rules: Rule[] }[]
}

interface Case {
  /** Values of each series, one per minute. */
  fires: Record<string, string>
  /** Time at which the rule fires with these series, and does not fire with the others. */
  at: string
  /** Labels of the alert, beside its severity. */
  labels?: Record<string, string>
  summary: string
  quiet: Record<string, string>
}

const api = 'job="relay-api",instance="api:8080"'
const worker = 'job="relay-worker",instance="worker:8081"'
const apiLabels = { job: 'relay-api', instance: 'api:8080' }
const day = 86_400
// promtool knows no repetition of NaN.
const nan = 'NaN NaN NaN NaN NaN NaN NaN'
const certificate = 'relay_certificate_not_after_timestamp_seconds{workspace="acme/invoices",repo_id="Z1",auth_id="CN=TST"}'
const certificateLabels = { workspace: 'acme/invoices', repo_id: 'Z1', auth_id: 'CN=TST' }
const lastRequest = 'relay_repository_last_request_timestamp_seconds{workspace="acme/invoices",repo_id="Z1"}'
const receiverRequests = (status: string) => `relay_receiver_request_duration_seconds_count{${api},command="create",status="${status}"}`
const oldestOpen = (connector: string) => `relay_oldest_open_delivery_seconds{${api},workspace="acme/invoices",connector="${connector}"}`
const documentsFailed = (workspace: string) => `relay_documents_failed{${api},workspace="${workspace}"}`
const attempts = (outcome: string) => `relay_attempts_total{${worker},connector="sftp",outcome="${outcome}"}`

const cases: Record<string, Case> = {
  RelayApiAbsent: {
    fires: { [`up{${api}}`]: '1 0x10', [`up{${worker}}`]: '1x10' },
    at: '5m',
    summary: 'No API process of the relay answers',
    quiet: { [`up{${api}}`]: '0x10', 'up{job="relay-api",instance="other:8080"}': '1x10' },
  },
  RelayWorkerAbsent: {
    fires: { [`up{${api}}`]: '1x10' },
    at: '5m',
    summary: 'No worker of the relay answers',
    quiet: { [`up{${worker}}`]: '1 0 1x10' },
  },
  RelayProcessDown: {
    fires: { [`up{${api}}`]: '0x10', 'up{job="other",instance="other:80"}': '0x10' },
    at: '8m',
    labels: apiLabels,
    summary: 'relay-api api:8080 does not answer',
    quiet: { [`up{${api}}`]: '0 0 0 1 0 0 0 0 0', 'up{job="other",instance="other:80"}': '0x10' },
  },
  RelayDatabaseUnavailable: {
    fires: { [`relay_waiting{${api}}`]: nan },
    at: '5m',
    labels: apiLabels,
    summary: 'api:8080 cannot read the database',
    quiet: { [`relay_waiting{${api}}`]: '7x10' },
  },
  RelayTemporalUnavailable: {
    fires: { [`relay_task_queue_pollers{${api},task_queue="document-relay"}`]: nan },
    at: '5m',
    labels: { ...apiLabels, task_queue: 'document-relay' },
    summary: 'api:8080 gets no answer from Temporal',
    quiet: { [`relay_task_queue_pollers{${api},task_queue="document-relay"}`]: '0x10' },
  },
  RelayNoPollers: {
    fires: { [`relay_task_queue_pollers{${api},task_queue="document-relay"}`]: '0x10' },
    at: '5m',
    labels: { task_queue: 'document-relay' },
    summary: 'No worker polls the task queue document-relay',
    quiet: { [`relay_task_queue_pollers{${api},task_queue="document-relay"}`]: '0 0 1x10' },
  },
  RelayWorkflowTasksFailing: {
    fires: { [`temporal_workflow_task_execution_failed_total{${worker},workflow_type="delivery"}`]: '0+1x30' },
    at: '25m',
    labels: { workflow_type: 'delivery' },
    summary: 'Workers fail to continue workflows of type delivery',
    quiet: { [`temporal_workflow_task_execution_failed_total{${worker},workflow_type="delivery"}`]: '5x30' },
  },
  RelayWorkersBusy: {
    fires: {
      [`temporal_worker_task_slots_available{${worker},worker_type="ActivityWorker"}`]: '0x30',
      [`temporal_worker_task_slots_available{${worker},worker_type="WorkflowWorker"}`]: '40x30',
    },
    at: '20m',
    summary: 'All workers are busy',
    quiet: {
      [`temporal_worker_task_slots_available{${worker},worker_type="ActivityWorker"}`]: '0x30',
      'temporal_worker_task_slots_available{job="relay-worker",instance="other:8081",worker_type="ActivityWorker"}': '1x30',
    },
  },
  RelayEventLoopBlocked: {
    fires: { [`nodejs_eventloop_lag_p99_seconds{${api}}`]: '0.5x20' },
    at: '15m',
    labels: apiLabels,
    summary: 'relay-api api:8080 reacts 500ms late',
    quiet: { [`nodejs_eventloop_lag_p99_seconds{${api}}`]: '0.5 0.5 0.1 0.5x6 0.1x10' },
  },
  RelayDatabasePoolExhausted: {
    fires: {
      [`relay_database_pool_connections{${api},state="waiting"}`]: '3x10',
      [`relay_database_pool_connections{${api},state="used"}`]: '10x10',
    },
    at: '5m',
    labels: { ...apiLabels, state: 'waiting' },
    summary: '3 statements of api:8080 wait for a database connection',
    quiet: {
      [`relay_database_pool_connections{${api},state="waiting"}`]: '0x10',
      [`relay_database_pool_connections{${api},state="used"}`]: '10x10',
    },
  },
  RelayStartsDelayed: {
    fires: { [`relay_waiting_oldest_seconds{${api}}`]: '0+60x10' },
    at: '6m',
    summary: 'Documents wait 6m 0s for the start of their delivery',
    quiet: { [`relay_waiting_oldest_seconds{${api}}`]: '0 60 120 0 60 120 20' },
  },
  RelayDeliveriesDelayed: {
    fires: {
      [oldestOpen('sftp')]: '4000+60x20',
      [oldestOpen('email')]: '10x20',
    },
    at: '15m',
    labels: { workspace: 'acme/invoices', connector: 'sftp' },
    summary: 'A delivery of acme/invoices by sftp has been open for 1h 21m 40s',
    quiet: { [oldestOpen('sftp')]: '3600x20' },
  },
  RelayDeliveriesNearExpiry: {
    fires: { [oldestOpen('sftp')]: '75600x20' },
    at: '15m',
    labels: { workspace: 'acme/invoices', connector: 'sftp' },
    summary: 'A delivery of acme/invoices by sftp has been open for 21h 0m 0s and fails soon',
    quiet: { [oldestOpen('sftp')]: '72000x20' },
  },
  RelayDeliveriesFailed: {
    fires: {
      [documentsFailed('acme/invoices')]: '2x20 5x20',
      [documentsFailed('acme/orders')]: '9x40',
    },
    at: '30m',
    labels: { workspace: 'acme/invoices' },
    summary: '5 failed documents of acme/invoices need attention: more than 15 minutes ago',
    quiet: {
      [documentsFailed('acme/invoices')]: '3x40',
      [documentsFailed('acme/orders')]: '5x20 2x20',
    },
  },
  RelayAttemptsFailing: {
    fires: { [attempts('retryable')]: '0+2x30', [attempts('permanent')]: '0+1x30', [attempts('delivered')]: '0+1x30' },
    at: '25m',
    labels: { connector: 'sftp' },
    summary: '75% of the attempts by sftp fail',
    // All fail, but they are few.
    quiet: { [attempts('retryable')]: '0x20 1x10', [attempts('delivered')]: '0x30' },
  },
  RelayCircuitsOpen: {
    fires: {
      [`relay_circuits{${api},state="open"}`]: '2x20',
      [`relay_circuits{${api},state="half_open"}`]: '1x20',
      [`relay_circuits{${api},state="closed"}`]: '5x20',
      // Each API process serves the same numbers.
      'relay_circuits{job="relay-api",instance="other:8080",state="open"}': '2x20',
    },
    at: '15m',
    summary: '3 destinations have an open circuit',
    quiet: { [`relay_circuits{${api},state="open"}`]: '0x20', [`relay_circuits{${api},state="closed"}`]: '5x20' },
  },
  RelayDeliveriesOverdue: {
    fires: { [`relay_deliveries_overdue{${api}}`]: '4x20' },
    at: '15m',
    summary: '4 deliveries are overdue, and nobody has checked them',
    quiet: { [`relay_deliveries_overdue{${api}}`]: '4x5 0 4x8' },
  },
  RelayEventsHeldBack: {
    fires: { [`relay_events_held_back_seconds{${api}}`]: '0+60x20' },
    at: '15m',
    summary: 'Programs that follow events are 15m 0s behind',
    quiet: { [`relay_events_held_back_seconds{${api}}`]: '0 60 120 180 240 300 0+60x6 0x10' },
  },
  RelayObjectsPassedOver: {
    fires: { [`relay_passed_over_total{${worker},loop="retention"}`]: '0 1x60' },
    at: '40m',
    labels: { loop: 'retention' },
    summary: 'The loop retention passes objects over',
    quiet: { [`relay_passed_over_total{${worker},loop="retention"}`]: '7x60' },
  },
  RelayManifestLate: {
    fires: {
      [`relay_manifest_late_seconds{${api}}`]: '7260x20',
      'relay_manifest_late_seconds{job="relay-api",instance="other:8080"}': '0x20',
    },
    at: '15m',
    summary: 'A day has been over for 2h 1m 0s and has no manifest',
    quiet: { [`relay_manifest_late_seconds{${api}}`]: '6000x20' },
  },
  RelayManifestCopyLate: {
    fires: { [`relay_manifest_copy_late_seconds{${api}}`]: '7260x20' },
    at: '15m',
    summary: 'A destination of PROOF_DESTINATIONS lacks a manifest that is 2h 1m 0s old',
    quiet: { [`relay_manifest_copy_late_seconds{${api}}`]: '900x20' },
  },
  RelayHomeAltered: {
    fires: {
      [`relay_home_reads_total{${worker},outcome="altered"}`]: '0x5 1x20',
      [`relay_home_reads_total{${worker},outcome="read"}`]: '0+9x25',
    },
    at: '10m',
    summary: 'Contents that only their home has were found altered or missing',
    quiet: {
      [`relay_home_reads_total{${worker},outcome="altered"}`]: '1x25',
      [`relay_home_reads_total{${worker},outcome="failed"}`]: '0+1x25',
    },
  },
  RelayStatisticsStale: {
    fires: { [`relay_statistics_computed_timestamp_seconds{${api}}`]: '0x30' },
    at: '20m',
    summary: 'The statistics are 20m 0s old',
    quiet: { [`relay_statistics_computed_timestamp_seconds{${api}}`]: '0+60x30' },
  },
  RelayReceiverErrors: {
    fires: { [receiverRequests('5xx')]: '0+6x20', [receiverRequests('2xx')]: '0+54x20' },
    at: '15m',
    summary: '10% of the requests of source systems end with an error of the relay',
    quiet: { [receiverRequests('4xx')]: '0+60x20', [receiverRequests('5xx')]: '0+1x20', [receiverRequests('2xx')]: '0+60x20' },
  },
  RelayCapturesLost: {
    fires: { [`relay_captures_lost_total{${api},reason="full"}`]: '0x10 3x10' },
    at: '15m',
    labels: { reason: 'full' },
    summary: '3 requests were not captured (full)',
    // The budget of refused requests is meant to be used up by an attack.
    quiet: { [`relay_captures_lost_total{${api},reason="full"}`]: '3x20', [`relay_captures_lost_total{${api},reason="budget"}`]: '0+9x20' },
  },
  RelayCapturesDelayed: {
    fires: { [`relay_capture_oldest_seconds{${api}}`]: '90x20' },
    at: '10m',
    labels: { instance: 'api:8080' },
    summary: 'Captured requests of api:8080 have waited 1m 30s to be stored',
    quiet: { [`relay_capture_oldest_seconds{${api}}`]: '1 90 1 90x3 1x10' },
  },
  RelayCertificateExpiring: {
    fires: { [certificate]: `${29 * day}x70` },
    at: '65m',
    labels: certificateLabels,
    summary: 'A certificate of acme/invoices Z1 expires in 28d 22h 55m 0s',
    // One has expired long ago, and its source system works with it nevertheless.
    quiet: { [certificate]: `${31 * day}x70`, [certificate.replace('Z1', 'Z2')]: `-${8 * day}x70` },
  },
  RelayRepositorySilent: {
    // Minute 0 of a test is time 0.
    fires: { [lastRequest]: `-${3 * day}x40` },
    at: '30m',
    labels: { workspace: 'acme/invoices', repo_id: 'Z1' },
    summary: 'acme/invoices Z1 has received no request for 3d 0h 30m 0s',
    quiet: { [lastRequest]: `-${2 * day}x40` },
  },
  RelayRepositoryNotConnected: {
    fires: { [`relay_repository_warnings{${api},code="not_connected"}`]: '2x30' },
    at: '20m',
    summary: '2 repositories discard what they receive',
    quiet: { [`relay_repository_warnings{${api},code="similar_name"}`]: '2x30' },
  },
  RelayEnrichmentFailing: {
    fires: { [`relay_enrichment_failing{${api},workspace="acme/invoices",enrichment="MM invoices"}`]: '1x30' },
    at: '20m',
    labels: { workspace: 'acme/invoices', enrichment: 'MM invoices' },
    summary: 'The enrichment MM invoices of acme/invoices fails',
    quiet: { [`relay_enrichment_failing{${api},workspace="acme/invoices",enrichment="MM invoices"}`]: '0x30' },
  },
  RelayQuotaNearlyUsed: {
    fires: { [`relay_workspace_quota_used_ratio{${api}}`]: '0.95x30' },
    at: '20m',
    summary: 'A workspace has used 95% of its quota',
    quiet: { [`relay_workspace_quota_used_ratio{${api}}`]: '0.9x30' },
  },
  RelayQuotaReached: {
    fires: { [`relay_receiver_refusals_total{${api},code="quota_exceeded"}`]: '0x10 3x10' },
    at: '15m',
    labels: { code: 'quota_exceeded' },
    summary: '3 requests of source systems were refused (quota_exceeded)',
    quiet: {
      [`relay_receiver_refusals_total{${api},code="quota_exceeded"}`]: '3x20',
      [`relay_receiver_refusals_total{${api},code="signature_invalid"}`]: '0+9x20',
    },
  },
  RelayUpstreamFailing: {
    fires: { [`relay_upstream_requests_total{${api},outcome="failed"}`]: '0x10 4x20' },
    at: '20m',
    summary: 'An upstream has not answered 4 questions for a document',
    quiet: {
      [`relay_upstream_requests_total{${api},outcome="failed"}`]: '4x30',
      [`relay_upstream_requests_total{${api},outcome="found"}`]: '0+9x30',
      [`relay_upstream_requests_total{${api},outcome="missing"}`]: '0+9x30',
    },
  },
  RelayRetentionLate: {
    fires: {
      [`relay_retention_late_seconds{${api},step="events"}`]: '25200x20',
      [`relay_retention_late_seconds{${api},step="contents"}`]: '10x20',
    },
    at: '15m',
    labels: { step: 'events' },
    summary: 'Retention of events was last done 7h 0m 0s ago',
    quiet: { [`relay_retention_late_seconds{${api},step="events"}`]: '3600x20' },
  },
  RelayPartitionsShort: {
    fires: {
      [`relay_partitions_ahead_seconds{${api},table="captured_bodies"}`]: `${6 * day}x70`,
      [`relay_partitions_ahead_seconds{${api},table="audit_logs"}`]: `${90 * day}x70`,
    },
    at: '65m',
    labels: { table: 'captured_bodies' },
    summary: 'The partitions of captured_bodies end in 6d 0h 0m 0s',
    quiet: { [`relay_partitions_ahead_seconds{${api},table="captured_bodies"}`]: `${14 * day}x70` },
  },
  RelayPartitionsMissing: {
    fires: { [`relay_partitions_ahead_seconds{${api},table="captured_bodies"}`]: '3600x20' },
    at: '15m',
    labels: { table: 'captured_bodies' },
    summary: 'The partitions of captured_bodies end within a day',
    quiet: { [`relay_partitions_ahead_seconds{${api},table="captured_bodies"}`]: `${2 * day}x20` },
  },
  RelayDataDirFilling: {
    // 100 GiB, of which 30 MiB are used up each minute: full in 57 hours.
    fires: { [`relay_data_dir_free_bytes{${api}}`]: '107374182400-31457280x200' },
    at: '180m',
    labels: apiLabels,
    summary: 'The disk of api:8080 will be full within 3 days',
    quiet: { [`relay_data_dir_free_bytes{${api}}`]: '107374182400-1048576x200' },
  },
  RelayDataDirFull: {
    fires: { [`relay_data_dir_free_bytes{${api}}`]: '1073741824x20' },
    at: '10m',
    labels: apiLabels,
    summary: 'The disk of api:8080 has 1GiB left',
    quiet: { [`relay_data_dir_free_bytes{${api}}`]: '5368709120x20' },
  },
}

const { groups } = parse(await readFile(rulesFile, 'utf8')) as Rules
const rules = groups.flatMap((group) => group.rules)

const seriesOf = (series: Record<string, string>) => Object.entries(series).map(([name, values]) => ({ series: name, values }))

/** Returns tests of promtool: one in which the rule fires, and one in which it does not. */
const testsOf = ({ alert, labels: { severity }, annotations }: Rule, { fires, quiet, at, labels, summary }: Case) => {
  const expected = { exp_labels: { severity, ...labels }, exp_annotations: { ...annotations, summary } }
  return [
    {
      name: `${alert} fires`,
      interval: '1m',
      input_series: seriesOf(fires),
      alert_rule_test: [{ alertname: alert, eval_time: at, exp_alerts: [expected] }],
    },
    {
      name: `${alert} does not fire`,
      interval: '1m',
      input_series: seriesOf(quiet),
      alert_rule_test: [{ alertname: alert, eval_time: at, exp_alerts: [] }],
    },
  ]
}

test('promtool accepts the rules and the example configuration', async () => {
  expect(await promtool('check', 'rules', rulesFile)).toContain(`SUCCESS: ${rules.length} rules found`)
  expect(await promtool('check', 'config', prometheusConfigFile)).toContain('SUCCESS')
})

test('every rule has a case, and no other', () => {
  expect(Object.keys(cases)).toEqual(rules.map(({ alert }) => alert))
})

test('every rule fires when it should, with its labels and its summary, and does not fire when it should not', async () => {
  const tests = rules.flatMap((rule) => testsOf(rule, cases[rule.alert]!))
  const output = await promtoolOn(['test', 'rules'], stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }))
  expect(output).toContain('SUCCESS')
})

test('every rule says how urgent it is, what it means, and where to read on', () => {
  for (const { alert, labels, annotations } of rules) {
    expect({ alert, severity: labels.severity }).toEqual({ alert, severity: expect.stringMatching(/^(critical|warning)$/) })
    expect({ alert, annotations }).toEqual({
      alert,
      annotations: {
        summary: expect.any(String),
        description: expect.stringMatching(/\.$/),
        runbook_url: `/docs/runbook#${alert.toLowerCase()}`,
      },
    })
  }
})
