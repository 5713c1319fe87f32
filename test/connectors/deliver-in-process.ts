// A process of its own that delivers until the test kills it. Nothing is cleaned up, as when a machine fails.
import { Readable } from 'node:stream'
import type { Payload, Target } from '../../src/connectors/connector.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, largePayload, slowly } from './payloads.ts'
import type { Rig } from './rig.ts'

/** A delivery of a large payload. */
export interface Job {
  kind: string
  target: Target<unknown, unknown>
  processSettings?: unknown
  payload: Omit<Payload, 'open' | 'receivedAt'>
}

/** A message to the test. */
export type Report = { bytesSent: number } | { saved: unknown } | { failed: string }

const report = (message: Report) => process.send!(message)

const deliver = async ({ kind, target, processSettings, payload }: Job) => {
  // Loads this kind only: the SDKs of all kinds take two seconds.
  const { rig } = (await import(`./${kind}/rig.ts`)) as { rig: Rig }
  let reportedBytes = 0
  const context = contextOf(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] }), {
    onProgress: (bytesSent) => {
      reportedBytes = bytesSent
      report({ bytesSent })
    },
    save: (saved) => report({ saved }),
  })
  const whole = slowly(largePayload(payload.sizeBytes, payload), 5)
  // Falls silent once the test has been told enough, so that the delivery is not complete if the test kills the process late.
  async function* untilKilled(start = 0) {
    for await (const chunk of whole.open(start)) {
      if (reportedBytes > payload.sizeBytes * 0.7) await new Promise(() => {})
      yield chunk as Buffer
    }
  }
  const source: Payload = { ...whole, open: (start) => Readable.from(untilKilled(start), { objectMode: false }) }
  await rig.connectorIn(processSettings).deliver(source, target, context)
}

// Also keeps the process alive while it waits for its source.
process.once('disconnect', () => process.exit())

process.once('message', (job: Job) => {
  deliver(job).catch((thrown: unknown) => report({ failed: String(thrown) }))
})
