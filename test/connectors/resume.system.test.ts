import { Interruption, type Payload } from '../../src/connectors/connector.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { fullOr } from '../support/full-run.ts'
import { until } from '../support/until.ts'
import { startDrive } from './drive/rig.ts'
import { contextOf, largePayload, MiB, pausedAt, watched } from './payloads.ts'
import { loadRigs, type ResumableTarget } from './rig.ts'

// objstore, which can tell more about its uploads, has tests of its own in objstore/resume.system.test.ts.
const resumable = (await loadRigs()).flatMap(({ kind, startResumable }) => (startResumable ? [{ kind, start: startResumable }] : []))
const uploadBytes = fullOr(40 * MiB, 20 * MiB)

describe.each(resumable)('an upload to $kind', ({ start }) => {
  let running: ResumableTarget
  let outbound: OutboundGuard
  beforeAll(async () => {
    running = await start()
    outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
  })
  afterAll(async () => {
    await outbound.close()
    await running.stop()
  })

  const interrupt = async (payload: Payload, reason: Error = new Interruption()): Promise<unknown> => {
    const stop = new AbortController()
    let saved: unknown
    const context = contextOf(outbound, {
      signal: stop.signal,
      save: (state) => {
        saved = JSON.parse(JSON.stringify(state))
      },
    })
    // A target that takes parts in parallel may have read 60 % of the document without having completed a part.
    const source = pausedAt(payload, payload.sizeBytes * 0.6, async () => {
      await until('the connector saves its state', () => saved !== undefined)
      stop.abort(reason)
    })
    await expect(running.connector.deliver(source, running.target, context)).rejects.toThrow(reason.message)
    return saved
  }
  const resume = async (document: Payload, saved: unknown) => {
    const { payload, starts } = watched(document)
    const result = await running.connector.deliver(payload, running.target, contextOf(outbound, { saved }))
    expect(await running.stored(result)).toEqual(running.expected(payload))
    expect(result.bytesSent).toBe(payload.sizeBytes - starts.at(-1)!)
    return starts
  }

  test('stays at the target when the worker stops, and resumes from what the target has', async () => {
    const payload = largePayload(uploadBytes)
    const before = await running.documentCount()

    const starts = await resume(payload, await interrupt(payload))

    expect(Math.min(...starts)).toBeGreaterThan(0)
    expect((await running.documentCount()) - before).toBe(1)
    expect(running.unfinished() ?? 0).toBe(0)
  })

  test('is aborted when the delivery is cancelled', async () => {
    await interrupt(largePayload(uploadBytes), new Error('cancelled'))
    expect(running.unfinished() ?? 0).toBe(0)
  })

  test('starts again if the document has been appended to since', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interrupt(payload)

    const { sizeBytes, sha256, open } = largePayload(uploadBytes + MiB)
    expect(await resume({ ...payload, sizeBytes, sha256, open }, saved)).toEqual([0])
    expect(running.unfinished() ?? 0).toBe(0)
  })

  test('starts again if the target has forgotten it', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interrupt(payload)
    await running.forget()

    expect((await resume(payload, saved)).at(-1)).toBe(0)
  })

  test('starts again if the saved state cannot be parsed', async () => {
    expect(await resume(largePayload(9 * MiB), { uploadUrl: 7 })).toEqual([0])
  })
})

test('a file of drive that was created just before its worker was lost is found by the saved id, before a search finds it', async () => {
  const { double, connector, connectorAt, target, stop } = await startDrive()
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
  const payload = largePayload(9 * MiB)
  let saved: unknown
  const save = (state: unknown) => {
    saved = state
  }
  await connector.deliver(payload, target(), contextOf(outbound, { save }))
  for (const id of double.files.keys()) double.unsearchable.add(id)

  // A new connector, as in another worker, has no caches.
  const { bytesSent } = await connectorAt().deliver(payload, target(), contextOf(outbound, { saved }))

  expect([bytesSent, double.files.size]).toEqual([0, 1])
  await outbound.close()
  await stop()
})
