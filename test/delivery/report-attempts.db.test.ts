import { Registry } from 'prom-client'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt, type AttemptEnd } from '../../src/delivery/record-attempt.ts'
import { createAttemptReports } from '../../src/delivery/report-attempts.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

test('every attempt is one log line and is counted', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const received = await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  const { documentId, docId } = received.messages[0]!.input
  const delivery = { documentId, destinationId: routes.destinations['archive']! }
  const lines: string[] = []
  const { reporting, metrics } = createAttemptReports(logsTo(lines).log, () => 'document/w1')
  const recordAttempt = reporting(createRecordAttempt(db, testConfig()))
  const record = async (end: Pick<AttemptEnd, 'operation' | 'outcome'> & Partial<AttemptEnd>) => {
    const job = (await createLoadJob(db, testConfig())({ ...delivery, ...firstRound }))!
    return recordAttempt(delivery, job, { id: newId(), durationMs: 1_500, bytesSent: 5, ...end })
  }

  await record({
    operation: 'attemptRetryable',
    outcome: 'retryable',
    error: { code: 'http_503', message: 'HTTP 503', answer: { status: 503, body: 'canary' } },
    retryDelayMs: 10_000,
  })
  await record({ operation: 'attemptDelivered', outcome: 'delivered', retryDelayMs: 10_000 })

  const [failed, delivered] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const common = {
    event: 'delivery.attempted',
    level: 'info',
    request_id: (await db('documents').where({ id: documentId }).first('request_id'))!.request_id,
    workspace: `acme/${routes.workspaceSlug}`,
    document_id: documentId,
    destination_id: delivery.destinationId,
    destination: 'archive',
    connector: 'webhook',
    workflow_id: 'document/w1',
    repo_id: 'Z1',
    doc_id: docId,
    comp_id: 'data',
    duration_ms: 1_500,
    size_bytes: 5,
    sent_bytes: 5,
  }
  expect(failed).toMatchObject({
    ...common,
    attempt: 1,
    outcome: 'retryable',
    code: 'http_503',
    error_class: 'target',
    reason: 'HTTP 503',
    status: 'retrying',
    next_attempt_in_ms: 10_000,
  })
  expect(delivered).toMatchObject({ ...common, attempt: 2, outcome: 'delivered', status: 'delivered' })
  expect(delivered).not.toHaveProperty('next_attempt_in_ms')
  expect(lines.join('')).not.toContain('canary')

  const registry = new Registry()
  for (const metric of metrics) registry.registerMetric(metric)
  const text = await registry.metrics()
  for (const series of [
    'relay_attempts_total{connector="webhook",outcome="retryable",error_class="target"} 1',
    'relay_attempts_total{connector="webhook",outcome="delivered",error_class=""} 1',
    'relay_deliveries_total{connector="webhook",outcome="delivered"} 1',
    'relay_sent_bytes_total{connector="webhook"} 10',
    'relay_attempt_duration_seconds_sum{connector="webhook",outcome="delivered"} 1.5',
    'relay_delivery_duration_seconds_count{connector="webhook"} 1',
  ]) {
    expect(text.split('\n')).toContain(series)
  }
})
