import { layOutWiring, nodeHeight, stateOf } from '../../console/wiring.ts'

const connection = (id: string, from: string[], to: string[], { isActive = true, held = 0 } = {}) => ({
  id,
  name: `Connection ${id}`,
  is_active: isActive,
  held_deliveries: held,
  repositories: from.map((each) => ({ id: each, repo_id: each.toUpperCase(), description: `Name of ${each}` })),
  destinations: to.map((each) => ({ id: each, type: 'webhook' as const, name: each })),
  settings: {},
  created_at: '2026-11-22T09:00:00.000Z',
  updated_at: '2026-11-22T09:00:00.000Z',
})

test('a connection that holds deliveries is shown as such, whether it is active or not', () => {
  expect(stateOf({ is_active: true, held_deliveries: 0 })).toBe('active')
  expect(stateOf({ is_active: false, held_deliveries: 0 })).toBe('inactive')
  expect([stateOf({ is_active: false, held_deliveries: 1 }), stateOf({ is_active: true, held_deliveries: 1 })]).toEqual(['held', 'held'])
})

test('each repository, connection and destination has one place, and a line for each link', () => {
  const wiring = layOutWiring([connection('1', ['a', 'b'], ['x']), connection('2', ['b'], ['x', 'y'], { isActive: false, held: 3 })])
  expect(wiring.repositories.map(({ title, subtitle }) => [title, subtitle])).toEqual([
    ['A', 'Name of a'],
    ['B', 'Name of b'],
  ])
  expect(wiring.destinations.map(({ id }) => id)).toEqual(['x', 'y'])
  expect(wiring.connections.map(({ id, state }) => [id, state])).toEqual([
    ['1', 'active'],
    ['2', 'held'],
  ])
  const yOf = (nodes: { id: string; y: number }[], id: string) => nodes.find((node) => node.id === id)!.y
  expect(wiring.incoming).toHaveLength(3)
  expect(wiring.outgoing).toContainEqual({
    connectionId: '2',
    state: 'held',
    from: yOf(wiring.connections, '2'),
    to: yOf(wiring.destinations, 'y'),
  })
})

test('what no connection links stands below the rest', () => {
  const all = {
    repositories: [
      { id: 'z', repo_id: 'Z', name: 'Unused' },
      { id: 'a', repo_id: 'A', name: 'Name of a' },
    ],
    destinations: [{ id: 'w', name: 'w', type: 'sftp' }],
  }
  const { repositories, destinations, incoming } = layOutWiring([connection('1', ['a'], ['x'])], all)
  expect(repositories.map(({ id }) => id)).toEqual(['a', 'z'])
  expect(destinations.map(({ id }) => id)).toEqual(['x', 'w'])
  expect(incoming).toHaveLength(1)
})

test('nodes do not overlap, in a picture of 1 and of 50 connections', () => {
  for (const count of [1, 50]) {
    const connections = Array.from({ length: count }, (_, index) =>
      connection(`${index}`, [`r${index % 7}`], [`d${index % 11}`, `e${index}`]),
    )
    const { height, ...columns } = layOutWiring(connections)
    for (const nodes of [columns.repositories, columns.connections, columns.destinations]) {
      const places = nodes.map(({ y }) => y)
      for (const [index, y] of places.entries()) if (index > 0) expect(y - places[index - 1]!).toBeGreaterThan(nodeHeight)
      expect(places[0]! - nodeHeight / 2).toBeGreaterThanOrEqual(0)
      expect(places.at(-1)! + nodeHeight / 2).toBeLessThanOrEqual(height)
    }
  }
})

test('connections are ordered by their repositories, so that parallel links do not cross', () => {
  const connections = [
    connection('1', ['a'], ['x']),
    connection('2', ['b'], ['y']),
    connection('3', ['a'], ['x']),
    connection('4', ['b'], ['y']),
  ]
  const wiring = layOutWiring(connections)
  expect(wiring.connections.map(({ id }) => id)).toEqual(['1', '3', '2', '4'])
  expect(wiring.destinations.map(({ id }) => id)).toEqual(['x', 'y'])
  expect(layOutWiring([])).toMatchObject({ height: 0, repositories: [], incoming: [] })
})
