import { share } from '../support/share.ts'
import { accessRows } from './access.ts'
import { conventionRows } from './conventions.ts'
import { connectionRows } from './endpoints-connections.ts'
import { recordRows } from './endpoints-records.ts'
import { wiringRows } from './endpoints-wiring.ts'
import { errorAndLimitRows } from './errors-and-limits.ts'
import { documentResourceRows } from './resources-documents.ts'
import { wiringResourceRows } from './resources-wiring.ts'
import { stateRows } from './states.ts'
import { startWorld } from './world.ts'

// One row for every statement in sections 2 to 8 of the API specification, in the order of the specification. Every row
// checks a running relay from outside. Statements that other tests cover in depth also have a short check here.

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

const world = share(await startWorld())

test.each(rows)('%s', async (_, check) => {
  expect.hasAssertions()
  await check(world)
})
