import { remedyFor } from '../connectors/error-codes.ts'
import type { DeliveryStatus } from '../domain/delivery-states.ts'

export interface DeliveryWithError {
  status: DeliveryStatus
  last_error: { code: string | null } | null
  destination_name: string
}

/** Returns what to do about the last error of a delivery. @returns undefined if there is nothing to do */
export const remedyOf = ({ status, last_error: error, destination_name: name }: DeliveryWithError): string | undefined => {
  if (!error || status === 'delivered' || status === 'cancelled') return undefined
  return remedyFor(error.code, name, status === 'failed' ? 'ended' : 'retried')
}
