import { readFileSync } from 'node:fs'
import { deliveryStatuses, transitions, type DeliveryStatus } from '../src/domain/delivery-states.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns `attempt delivered` for `attemptDelivered`. */
const words = (operation: string) => operation.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

const statusList = (statuses: readonly DeliveryStatus[]) =>
  deliveryStatuses
    .filter((status) => statuses.includes(status))
    .map((status) => `\`${status}\``)
    .join(', ')

/** Returns docs/deliveries.md with its table of transitions generated from src/domain/delivery-states.ts. */
export const deliveriesPage = (): string => {
  const rows = Object.entries(transitions).map(([operation, { from, to, cause }]) => [
    words(operation),
    statusList(from),
    `\`${to}\``,
    cause,
  ])
  const page = readFileSync(new URL('deliveries.md', import.meta.url), 'utf8')
  const table = markdownTable(['operation', 'from', 'to', 'cause'], rows)
  return withGenerated(page, 'transitions', `\n${table}`)
}
