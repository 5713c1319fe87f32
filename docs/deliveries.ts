import { readFileSync } from 'node:fs'
import { deliveryStatuses, transitions, type DeliveryStatus } from '../src/domain/delivery-states.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns `attempt delivered` for `attemptDelivered`. */
const words = (operation: string) => operation.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** Returns a Mermaid state diagram with one arrow for each pair of statuses, labeled with the operations that lead from one to the other. */
const diagram = (): string => {
  const arrows = new Map<string, string[]>()
  for (const [operation, { from, to }] of Object.entries(transitions)) {
    for (const status of from) arrows.set(`${status} --> ${to}`, [...(arrows.get(`${status} --> ${to}`) ?? []), words(operation)])
  }
  const lines = [...arrows].map(([arrow, operations]) => `    ${arrow}: ${operations.join(', ')}`)
  return ['', '```mermaid', 'stateDiagram-v2', '    [*] --> pending', '    [*] --> held', ...lines, '```', ''].join('\n')
}

const statusList = (statuses: readonly DeliveryStatus[]) =>
  deliveryStatuses
    .filter((status) => statuses.includes(status))
    .map((status) => `\`${status}\``)
    .join(', ')

/** Returns docs/deliveries.md with its diagram and its table of transitions generated from src/domain/delivery-states.ts. */
export const deliveriesPage = (): string => {
  const rows = Object.entries(transitions).map(([operation, { from, to, cause }]) => [
    words(operation),
    statusList(from),
    `\`${to}\``,
    cause,
  ])
  const page = readFileSync(new URL('deliveries.md', import.meta.url), 'utf8')
  const table = markdownTable(['operation', 'from', 'to', 'cause'], rows)
  return withGenerated(withGenerated(page, 'diagram', diagram()), 'transitions', `\n${table}`)
}
