import type { ConnectionSettings } from './connection-settings.ts'
import type { ConnectorType } from './connector-type.ts'
import { mediaTypeOf } from './content-type.ts'
import { fillTemplate, valuesOf } from './template.ts'

/** One way from a repository to a destination, through one connection. */
export interface Wire {
  connectionId: string
  isActive: boolean
  settings: ConnectionSettings
  destination: { id: string; name: string; connector: ConnectorType }
}

/** What a connection's filter and path template look at. */
export interface Arrival {
  repoId: string
  docId: string
  compId: string
  contentType: string
  sizeBytes: number
  arObject: string | null
  receivedAt: Date
}

export interface PlannedDelivery {
  destination: Wire['destination']
  connectionId: string
  status: 'pending' | 'held'
  path: string
}

const passes = ({ filter }: ConnectionSettings, arrival: Arrival): boolean => {
  if (filter.contentTypes && !filter.contentTypes.some((type) => type.toLowerCase() === mediaTypeOf(arrival.contentType))) return false
  if (filter.compIds && !filter.compIds.includes(arrival.compId)) return false
  if (filter.minBytes !== undefined && arrival.sizeBytes < filter.minBytes) return false
  return filter.maxBytes === undefined || arrival.sizeBytes <= filter.maxBytes
}

const unsafeInPath = /[\p{Cc}/\\\u202a-\u202e\u2066-\u2069]|%(?=[0-9a-f]{2})/giu

const percentEncoded = (text: string) =>
  [...new TextEncoder().encode(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

/** One value as one path segment: what could leave the folder or the line is percent-encoded, so that different names stay different. */
export const pathSegment = (text: string): string => {
  const safe = text.replaceAll(unsafeInPath, percentEncoded)
  return safe === '.' || safe === '..' ? percentEncoded(safe) : safe
}

/**
 * Which destinations get a document, and where it will lie there. A destination reached by several connections gets it once,
 * by an active one if there is any; only inactive ones hold it.
 */
export const planDeliveries = (wires: Wire[], arrival: Arrival): PlannedDelivery[] => {
  const planned = new Map<string, PlannedDelivery>()
  for (const wire of wires) {
    if (!passes(wire.settings, arrival)) continue
    const earlier = planned.get(wire.destination.id)
    if (earlier && (earlier.status === 'pending' || !wire.isActive)) continue
    planned.set(wire.destination.id, {
      destination: wire.destination,
      connectionId: wire.connectionId,
      status: wire.isActive ? 'pending' : 'held',
      path: fillTemplate(wire.settings.pathTemplate, valuesOf(arrival), pathSegment),
    })
  }
  return [...planned.values()]
}
