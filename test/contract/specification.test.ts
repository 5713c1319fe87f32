import { accessRows } from './access.ts'
import { conventionRows } from './conventions.ts'
import { connectionRows } from './endpoints-connections.ts'
import { recordRows } from './endpoints-records.ts'
import { wiringRows } from './endpoints-wiring.ts'
import { errorAndLimitRows } from './errors-and-limits.ts'
import { documentResourceRows } from './resources-documents.ts'
import { wiringResourceRows } from './resources-wiring.ts'
import { stateRows } from './states.ts'
import { startWorld, type World } from './world.ts'

// A row for every statement of sections 2 to 8 of the specification of the API, in its order, named after its section. Each looks at a
// running relay from outside; what is tested in depth elsewhere has a short check of its own here all the same.

const rows = [
  ...wiringResourceRows,
  ...documentResourceRows,
  ...stateRows,
  ...conventionRows,
  ...wiringRows,
  ...connectionRows,
  ...recordRows,
  ...accessRows,
  ...errorAndLimitRows,
]

let world: World

beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

test.each(rows)('%s', async (_, check) => {
  expect.hasAssertions()
  await check(world)
})
