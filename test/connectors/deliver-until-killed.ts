// A process of its own that delivers until the test kills it: no clean-up of any kind, as when a machine dies.
import { findConnector } from '../../src/connectors/index.ts'
import type { Parcel, Target } from '../../src/connectors/connector.ts'
import type { ConnectorType } from '../../src/domain/connector-type.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, largeParcel, slowly } from './parcels.ts'

/** What the process is to deliver: a large parcel, by its length. */
export interface Job {
  kind: ConnectorType
  target: Target<unknown, unknown>
  parcel: Omit<Parcel, 'open' | 'receivedAt'>
}

/** What it tells as it goes. */
export type News = { bytesSent: number } | { saved: unknown } | { failed: string }

const tell = (news: News) => process.send!(news)

process.once('message', ({ kind, target, parcel }: Job) => {
  const context = contextOf(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] }), {
    onProgress: (bytesSent) => tell({ bytesSent }),
    save: (saved) => tell({ saved }),
  })
  findConnector(kind)!
    .deliver(slowly(largeParcel(parcel.sizeBytes, parcel), 5), target, context)
    .catch((thrown: unknown) => tell({ failed: String(thrown) }))
})
