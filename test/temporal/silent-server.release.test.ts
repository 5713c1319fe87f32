import { startHttpTarget } from '../support/http-target.ts'
import { createInstallation } from '../support/installation.ts'
import { routeToWebhook } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { startLossyPath } from '../support/tcp-proxy.ts'

const { database, start, variables } = share(await createInstallation())
const target = share(await startHttpTarget())
const temporalPort = Number(new URL(`http://${variables['TEMPORAL_ADDRESS']}`).port)
// The SDK waits for 30 seconds.
const stopMaxMs = 20_000

/** Starts a worker with a way to Temporal that can be lost. */
const startWorker = async () => {
  const path = await startLossyPath(temporalPort)
  const worker = await start('worker', { TEMPORAL_ADDRESS: `127.0.0.1:${path.port}` })
  const stop = async () => {
    const since = performance.now()
    const status = await worker.stop()
    return { status, isSoon: performance.now() - since < stopMaxMs }
  }
  return { path, stop, [Symbol.asyncDispose]: path.stop }
}

test('a worker whose Temporal has gone silent ends within seconds', async () => {
  await using worker = await startWorker()
  worker.path.lose()
  expect(await worker.stop()).toEqual({ status: 0, isSoon: true })
})

test.each([['answers', false] as const, ['has gone silent', true] as const])(
  'a worker whose Temporal %s finishes and records a running attempt before it ends',
  async (_, isLost) => {
    await using worker = await startWorker()
    const [api, route] = await Promise.all([start('api'), routeToWebhook(database, target.origin)])
    const arrived = Promise.withResolvers<() => void>()
    target.answerWith((__, response) => arrived.resolve(() => void response.end()))
    await route.send(api, 'D1', 'an invoice')
    const answer = await arrived.promise
    if (isLost) worker.path.lose()
    const stopped = worker.stop()
    setTimeout(answer, 4_000)
    expect(await stopped).toEqual({ status: 0, isSoon: true })
    const deliveries = database.db('deliveries').where({ workspace_id: route.workspaceId })
    expect(await deliveries.select('status', 'attempts')).toEqual([{ status: 'delivered', attempts: 1 }])
  },
)
