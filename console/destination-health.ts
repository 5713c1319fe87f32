// Makes one sign of the status and the circuit of a destination. Pure, so that it can be tested without a browser.
import type { components } from '../clients/typescript/src/schema.ts'

type Attributes = Pick<components['schemas']['Destination']['attributes'], 'status' | 'circuit' | 'last_delivered_at'>

/**
 * `paused`: deliveries wait, because too many have failed. `trying`: one delivery tries the target. `failing`: the last delivery has
 * failed. `unused`: nothing has been delivered yet.
 */
export type Health = 'healthy' | 'unused' | 'failing' | 'paused' | 'trying'

export const healthOf = ({ status, circuit, last_delivered_at: lastDeliveredAt }: Attributes): Health => {
  if (circuit === 'open') return 'paused'
  if (circuit === 'half_open') return 'trying'
  if (status === 'failing') return 'failing'
  return lastDeliveredAt === null ? 'unused' : 'healthy'
}
