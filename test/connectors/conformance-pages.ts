import { DeliveryError, type Payload } from '../../src/connectors/connector.ts'
import type { OutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from './payloads.ts'
import type { RunningTarget } from './rig.ts'

// Each kind sends one in several parts.
const twoPartsBytes = 11 * MiB
// More than any kind needs for it.
const requestsMax = 20

/** Tests of something between the relay and the target that answers with a page and a status of success. */
export const describePages = (get: () => { running: RunningTarget; outbound: OutboundGuard }) => {
  test.each([200, 202, 204])('a page that is answered with %i by something in between is a failed attempt', async (status) => {
    const { running, outbound } = get()
    const startPages = running.network!.pages!
    /** @returns false if there are fewer requests */
    const answersOne = async (payload: Payload, which: number): Promise<boolean> => {
      await running.reset()
      const pages = await startPages(status, which)
      const connector = running.network!.connectorAt?.(pages.port) ?? running.connector
      const thrown: unknown = await connector.deliver(payload, running.target(pages.port), contextOf(outbound)).then(
        () => undefined,
        (error: unknown) => error,
      )
      const wasAnswered = pages.answered() > 0
      await pages.stop()
      expect([which, wasAnswered, thrown instanceof DeliveryError && !thrown.permanent]).toEqual([which, wasAnswered, wasAnswered])
      return wasAnswered
    }
    for (const sizeBytes of [1_000, twoPartsBytes]) {
      let which = 0
      while (which < requestsMax && (await answersOne(largePayload(sizeBytes), which))) which += 1
      expect(which).toBeGreaterThan(0)
      expect(which).toBeLessThan(requestsMax)
    }

    await running.reset()
    const pages = await startPages(status, 'all')
    const connector = running.network!.connectorAt?.(pages.port) ?? running.connector
    const target = running.target(pages.port)
    expect(await failure(connector.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound)))).toMatchObject({ permanent: false })
    await failure(connector.probe(target, contextOf(outbound)))
    await pages.stop()
    expect(await running.documents()).toEqual([])
  })
}
