// A process of its own that delivers until the test kills it: no clean-up of any kind, as when a machine dies.
import type { Connector, Parcel, Target } from '../../src/connectors/connector.ts'
import { createDrive } from '../../src/connectors/drive.ts'
import { findConnector } from '../../src/connectors/index.ts'
import type { ConnectorType } from '../../src/domain/connector-type.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, largeParcel, slowly } from './parcels.ts'
import { teamsiteAt } from './teamsite-rig.ts'

/** What the process is to deliver: a large parcel, by its length. */
export interface Job {
  kind: ConnectorType
  target: Target<unknown, unknown>
  /** Of the double that stands in for hosts which the product itself names. */
  double?: { root: string; scope?: string } | undefined
  parcel: Omit<Parcel, 'open' | 'receivedAt'>
}

/** What it tells as it goes. */
export type News = { bytesSent: number } | { saved: unknown } | { failed: string }

const tell = (news: News) => process.send!(news)

const connectorOf = ({ kind, double }: Job): Connector => {
  if (double === undefined) return findConnector(kind)!
  return kind === 'drive' ? createDrive(double.root) : teamsiteAt(double.root, double.scope ?? '')
}

process.once('message', (job: Job) => {
  const { target, parcel } = job
  const context = contextOf(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] }), {
    onProgress: (bytesSent) => tell({ bytesSent }),
    save: (saved) => tell({ saved }),
  })
  connectorOf(job)
    .deliver(slowly(largeParcel(parcel.sizeBytes, parcel), 5), target, context)
    .catch((thrown: unknown) => tell({ failed: String(thrown) }))
})
