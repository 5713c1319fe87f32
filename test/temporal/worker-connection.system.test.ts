import { readConfig } from '../../src/config/config.ts'
import { temporalOver } from '../../src/temporal/client.ts'
import { isUnavailable } from '../../src/temporal/errors.ts'
import { connectWorker } from '../../src/temporal/worker.ts'
import { share } from '../support/share.ts'
import { startLossyPath, startTcpProxy } from '../support/tcp-proxy.ts'
import { temporalCluster } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

const env = share(await startTemporalServer())
const port = Number(new URL(`http://${env.address}`).port)

const startMs = 1_000
// The native client alone repeats calls for ten seconds.
const soonMs = 4_000

/** Calls Temporal at this port over the connection of a worker, as its dispatcher does. */
const callsOver = async (portOfPath: number) => {
  const config = readConfig({
    ...temporalCluster()?.variables,
    TEMPORAL_ADDRESS: `127.0.0.1:${portOfPath}`,
    TEMPORAL_NAMESPACE: env.namespace ?? 'default',
  })
  const connection = await connectWorker(config.temporal)
  const temporal = temporalOver(connection, { ...config, TEMPORAL_START_TIMEOUT_MS: startMs })
  const input = { workspaceId: 'W1', workspace: 'acme/invoices', queueId: 'Q1', name: 'Invoices' }
  /** Starts a workflow. @returns how it has failed, and whether soon enough */
  const start = async () => {
    const since = performance.now()
    const outcome = await temporal.startSideWork('enrichment', input).then(
      () => 'started',
      (thrown: unknown) => (isUnavailable(thrown) ? 'unavailable' : thrown),
    )
    return { outcome, isSoon: performance.now() - since < soonMs }
  }
  return { start, [Symbol.asyncDispose]: () => connection.close() }
}

test('a start over the connection of a worker fails at its deadline while Temporal refuses connections, and works when it is back', async () => {
  await using proxy = await startTcpProxy(port)
  await using calls = await callsOver(proxy.port)
  expect(await calls.start()).toEqual({ outcome: 'started', isSoon: true })
  proxy.close()
  expect(await calls.start()).toEqual({ outcome: 'unavailable', isSoon: true })
  proxy.open()
  expect((await calls.start()).outcome).toBe('started')
})

test('a start over the connection of a worker fails at its deadline while Temporal is silent', async () => {
  const path = await startLossyPath(port)
  await using calls = await callsOver(path.port)
  expect(await calls.start()).toEqual({ outcome: 'started', isSoon: true })
  path.lose()
  expect(await calls.start()).toEqual({ outcome: 'unavailable', isSoon: true })
  await path.stop()
})
