import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, type RelayedDocument } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

// The commands of Temporal for the activity of a delivery that waits for its next attempt. docs/temporal.md says what they do.

const env = share(await startTemporalServer())
const relay = share(await startRelay(env))
const web = share(await startHttpTarget())
beforeEach(() => {
  web.arrivals.length = 0
})

const run = promisify(execFile)
const answerWith = (status: number) => web.answerWith((_, response) => response.writeHead(status).end())

/** Runs a scenario with a delivery whose first attempt has failed, and whose next one is due in an hour. */
const withBackOff = (
  scenario: (document: RelayedDocument, command: (verb: string, ...args: string[]) => Promise<unknown>) => Promise<void>,
) =>
  relay.run(async ({ createRoutes }) => {
    answerWith(503)
    const { receive } = await createRoutes([{ name: 'web', config: { url: web.origin } }], {
      workspaceSettings: { retry_initial_interval_seconds: 3_600 },
    })
    const document = await receive()
    await until('the first attempt has failed', async () => (await pendingOf(document))?.lastFailure)
    answerWith(200)
    const { workflowId } = document.handle('web')
    await scenario(document, (verb, ...args) =>
      run(process.env.TEST_TEMPORAL_BIN!, ['activity', verb, '--workflow-id', workflowId, '--activity-id', '1', ...args], {
        env: { ...process.env, ...temporalVariables(env) },
      }),
    )
  })

/** Returns the pending activity, as the Temporal UI shows it, or undefined before the workflow has started. */
const pendingOf = async (document: RelayedDocument) =>
  (
    await document
      .handle('web')
      .describe()
      .catch(() => undefined)
  )?.raw.pendingActivities?.[0]

const untilDelivered = (document: RelayedDocument) =>
  until('the document is delivered', async () => (await document.status()) === 'delivered')

test('the pending activity shows the number of the attempt, the last error and the time of the next attempt', async () => {
  await withBackOff(async (document) => {
    const pending = (await pendingOf(document))!
    expect(pending.attempt).toBe(2)
    expect(pending.lastFailure).toMatchObject({
      message: expect.stringMatching(/^http_503: .*the target answered .*503/),
      applicationFailureInfo: { type: 'http_503' },
    })
    const [{ next_attempt_at }] = await relay.db('deliveries').where({ document_id: document.id })
    const shown = Number(pending.nextAttemptScheduleTime!.seconds) * 1_000
    expect(Math.abs(shown - next_attempt_at.getTime())).toBeLessThan(10_000)
  })
})

test('reset makes the next attempt at once', async () => {
  await withBackOff(async (document, command) => {
    await command('reset')
    await untilDelivered(document)
    expect(web.arrivals).toHaveLength(2)
  })
})

test('POST /documents/:id/attempt makes the next attempt at once', async () => {
  await withBackOff(async (document) => {
    expect((await document.call('POST', `/documents/${document.id}/attempt`)).status).toBe(200)
    await untilDelivered(document)
    expect(web.arrivals).toHaveLength(2)
    expect((await document.call('POST', `/documents/${document.id}/attempt`)).status).toBe(409)
  })
})

test('POST /destinations/:id/attempt makes the next attempt of each of its deliveries at once', async () => {
  await withBackOff(async (document) => {
    const [{ destination_id: id }] = await relay.db('deliveries').where({ document_id: document.id })
    const { status, json } = await document.call('POST', `/destinations/${id}/attempt`)
    expect([status, json.data.attributes]).toEqual([202, { waiting_deliveries: 1 }])
    await untilDelivered(document)
    expect(web.arrivals).toHaveLength(2)
  })
})

test('pause holds the next attempt back until unpause, which makes it when it is due', async () => {
  await withBackOff(async (document, command) => {
    await command('pause', '--identity', 'operator')
    expect((await pendingOf(document))!.paused).toBe(true)
    await command('reset', '--keep-paused')
    await delay(2_000)
    expect(web.arrivals).toHaveLength(1)
    expect(await document.status()).toBe('retrying')
    await command('unpause', '--identity', 'operator')
    await untilDelivered(document)
    expect(web.arrivals).toHaveLength(2)
  })
})

test.each([
  ['--retry-initial-interval', '1s'],
  ['--retry-maximum-interval', '15s'],
  ['--retry-backoff-coefficient', '1'],
  ['--retry-initial-interval', '1s', '--retry-maximum-interval', '2s'],
])('update-options changes the time of the next attempt: %s %s', async (...options) => {
  await withBackOff(async (document, command) => {
    await command('update-options', ...options)
    await untilDelivered(document)
    expect(web.arrivals).toHaveLength(2)
  })
})
