// A process of its own that delivers until the test kills it. Nothing is cleaned up, as when a machine fails.
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
  const context = contextOf(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] }), {
    onProgress: (bytesSent) => report({ bytesSent }),
    save: (saved) => report({ saved }),
  })
  await rig.connectorIn(processSettings).deliver(slowly(largePayload(payload.sizeBytes, payload), 5), target, context)
}

process.once('message', (job: Job) => {
  deliver(job).catch((thrown: unknown) => report({ failed: String(thrown) }))
})
