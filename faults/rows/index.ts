import type { Row } from '../run-row.ts'
import { databaseRows } from './database.ts'
import { environmentRows } from './environment.ts'
import { followerRows } from './followers.ts'
import { homeRows } from './homes.ts'
import { neighbourRows } from './neighbours.ts'
import { oneMachineRows } from './one-machine.ts'
import { relayRows } from './relay.ts'
import { targetRows } from './targets.ts'
import { temporalRows } from './temporal.ts'

/** Every row of the fault table, in the order in which they run. */
export const rows: Row[] = [
  ...relayRows,
  ...databaseRows,
  ...temporalRows,
  ...targetRows,
  ...homeRows,
  ...neighbourRows,
  ...followerRows,
  ...environmentRows,
  ...oneMachineRows,
]
