// Faults of one machine, whose `relay server` runs Temporal on the database of the relay. They are those of several processes, and one of its own.
import { takePort } from '../../test/support/take-port.ts'
import { until } from '../../test/support/until.ts'
import type { Row } from '../run-row.ts'
import { databaseRows } from './database.ts'
import { relayRows } from './relay.ts'
import { temporalRows } from './temporal.ts'

const shared = new Set(['temporal-crashed', 'temporal-frozen', 'everything-killed', 'postgres-crashed', 'power-lost', 'postgres-disk-full'])
const restarts = 'an attempt whose record was lost with Temporal, PostgreSQL or the worker is made again'

const onOneMachine = (row: Row): Row => ({
  ...row,
  name: `one-machine-${row.name}`,
  fault: `One machine: ${row.fault.replace('every API process and every worker', 'relay server with its worker')}`,
  oneMachine: true,
  mayDuplicate: row.mayDuplicate ?? restarts,
})

const portTaken: Row = {
  name: 'one-machine-port-taken',
  fault: 'One machine: Temporal is killed, and another program takes its port. The relay ends, is started again, and takes another port',
  oneMachine: true,
  mayDuplicate: restarts,
  run: async ({ installation: { temporal }, returned }) => {
    const port = temporal.port()
    await temporal.kill()
    await using _ = await takePort(port)
    await until('Temporal has another port', () => temporal.port() !== port, Boolean, 120_000)
    await temporal.start()
    returned()
  },
}

export const oneMachineRows: Row[] = [
  ...[...temporalRows, ...relayRows, ...databaseRows].filter(({ name }) => shared.has(name)).map(onOneMachine),
  portTaken,
]
