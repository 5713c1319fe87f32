import { sendHeartbeats } from '../../src/delivery/progress.ts'
import { until } from '../support/until.ts'

test('the lease is renewed until the sending has ended, and a renewal under way is waited for; the heartbeats go on', async () => {
  const { promise: renewed, resolve: endRenewal } = Promise.withResolvers<void>()
  const counts = { heartbeats: 0, renewals: 0 }
  const heartbeats = sendHeartbeats(
    { attemptId: 'A', content: 'C', bytesSent: 0 },
    {
      heartbeat: () => (counts.heartbeats += 1),
      intervalMs: 5,
      renew: () => {
        counts.renewals += 1
        return renewed
      },
    },
  )
  await until('the lease is renewed', () => counts.renewals > 0)

  let hasStopped = false
  const stopping = heartbeats.stopRenewing().then(() => (hasStopped = true))
  const { heartbeats: heartbeatsBefore, renewals } = counts
  await until('the heartbeats go on', () => counts.heartbeats > heartbeatsBefore + 1)
  expect(hasStopped).toBe(false)
  endRenewal()
  await stopping
  expect(counts.renewals).toBe(renewals)
  heartbeats.stop()
})
