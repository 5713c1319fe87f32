// Lays out who sends what where as a picture. Pure, so that it can be tested without a browser.
import type { components } from '../clients/typescript/src/schema.ts'

type Connection = components['schemas']['Connection']

/** `held`: the connection is inactive, and deliveries wait for it. */
export type ConnectionState = 'active' | 'inactive' | 'held'

export const stateOf = ({
  is_active: isActive,
  held_deliveries: held,
}: Pick<Connection, 'is_active' | 'held_deliveries'>): ConnectionState => {
  if (held > 0) return 'held'
  return isActive ? 'active' : 'inactive'
}

interface Node {
  id: string
  title: string
  subtitle: string
  /** Pixels from the upper edge to the middle. */
  y: number
}

interface Line {
  connectionId: string
  state: ConnectionState
  from: number
  to: number
}

export interface Wiring {
  height: number
  repositories: Node[]
  connections: (Node & { state: ConnectionState })[]
  destinations: Node[]
  /** Lines from repositories to connections. */
  incoming: Line[]
  /** Lines from connections to destinations. */
  outgoing: Line[]
}

export const nodeHeight = 46
const gap = 10

interface Unplaced {
  id: string
  title: string
  subtitle: string
  /** Order of what it is linked to. */
  links: number[]
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** Orders nodes by what they are linked to, so that few lines cross. Nodes without a link come last. */
const ordered = (nodes: Unplaced[]): Unplaced[] =>
  nodes.toSorted((one, other) => {
    if (one.links.length === 0 || other.links.length === 0) return one.links.length === 0 ? (other.links.length === 0 ? 0 : 1) : -1
    return mean(one.links) - mean(other.links)
  })

/** Gives each node its place. The nodes of a column are spread over the whole height. */
const place = (nodes: Unplaced[], height: number): Node[] =>
  nodes.map(({ id, title, subtitle }, index) => ({ id, title, subtitle, y: ((index + 0.5) * height) / nodes.length }))

/** Things that no connection links. */
export interface Unlinked {
  repositories: { id: string; repo_id: string; name: string }[]
  destinations: { id: string; name: string; type: string }[]
}

/** Lays out connections with repositories at the left and destinations at the right. `all` adds those that no connection links. */
export const layOutWiring = (connections: readonly Connection[], all: Unlinked = { repositories: [], destinations: [] }): Wiring => {
  const repositories = new Map<string, Unplaced>()
  const destinations = new Map<string, Unplaced>()
  const ensure = (nodes: Map<string, Unplaced>, id: string, title: string, subtitle: string) => {
    const node = nodes.get(id) ?? { id, title, subtitle, links: [] }
    nodes.set(id, node)
    return node
  }
  for (const [index, connection] of connections.entries()) {
    for (const { id, repo_id: repoId, description } of connection.repositories)
      ensure(repositories, id, repoId, description).links.push(index)
    for (const { id, name, type } of connection.destinations) ensure(destinations, id, name, type).links.push(index)
  }
  for (const { id, repo_id: repoId, name } of all.repositories) ensure(repositories, id, repoId, name)
  for (const { id, name, type } of all.destinations) ensure(destinations, id, name, type)

  const rows = Math.max(repositories.size, destinations.size, connections.length)
  const height = rows * (nodeHeight + gap)
  const left = place(ordered([...repositories.values()]), height)
  const leftOf = new Map(left.map((node) => [node.id, node]))
  const middle = place(
    ordered(
      connections.map(({ id, name, repositories: its }, index) => ({
        id,
        title: name,
        subtitle: '',
        links: its.length === 0 ? [index * (nodeHeight + gap)] : its.map((each) => leftOf.get(each.id)!.y),
      })),
    ),
    height,
  )
  const middleOf = new Map(middle.map((node) => [node.id, node]))
  const yOf = (index: number) => middleOf.get(connections[index]!.id)!.y
  const right = place(ordered([...destinations.values()].map((node) => ({ ...node, links: node.links.map(yOf) }))), height)
  const rightOf = new Map(right.map((node) => [node.id, node]))
  const byId = new Map(connections.map((connection) => [connection.id, connection]))
  const line = (connection: Connection, from: number, to: number): Line => ({
    connectionId: connection.id,
    state: stateOf(connection),
    from,
    to,
  })
  return {
    height,
    repositories: left,
    connections: middle.map((node) => ({ ...node, state: stateOf(byId.get(node.id)!) })),
    destinations: right,
    incoming: connections.flatMap((each) => each.repositories.map(({ id }) => line(each, leftOf.get(id)!.y, middleOf.get(each.id)!.y))),
    outgoing: connections.flatMap((each) => each.destinations.map(({ id }) => line(each, middleOf.get(each.id)!.y, rightOf.get(id)!.y))),
  }
}
