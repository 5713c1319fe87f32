import { z } from 'zod'
import { timestamp } from '../domain/date-range.ts'
import { relayStatuses, type RelayState } from '../domain/relay-state.ts'
import { allows } from '../security/levels.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { one, resource } from './schemas.ts'

const worker = z
  .object({
    name: z.string().describe('The identity of the worker in Temporal: its process and its host.'),
    version: z.string().describe('The version of the relay.'),
    build_id: z.string().nullable().describe('Its `TEMPORAL_WORKER_BUILD_ID`, if it has one.'),
    started_at: timestamp,
    last_seen_at: timestamp.describe('When it last noted that it runs, which it does every second.'),
    is_running: z.boolean().describe('False if it was stopped, or has been silent for 5 seconds.'),
  })
  .meta({ id: 'Worker' })

const attributes = z.object({
  status: z
    .enum(relayStatuses)
    .meta({ id: 'RelayStatus' })
    .describe(
      '`working`: a worker runs, and Temporal answers. `no_worker`: no worker is running; documents are received and wait. ' +
        '`temporal_unavailable`: Temporal does not answer, or refuses the relay; documents are received and wait.',
    ),
  since: timestamp.describe('When the process that answers has noticed it.'),
  workers: z
    .array(worker)
    .nullable()
    .describe(
      'The workers that run, or did so within the last hour, up to 200. Null for keys below `admin`: the names contain those of hosts.',
    ),
})

export const relayStatusEndpoints = ({ relayWatch }: { relayWatch: { read(): RelayState } }): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/relay',
    level: 'viewer',
    summary: 'Retrieve the state of the relay',
    description:
      'Says if deliveries are made at present: if a worker runs, and if Temporal answers. The process that answers looks every 5 seconds, and ' +
      'what is bad counts when it has found it twice.',
    response: one(resource('Relay', 'relay', attributes)),
    handle: async (_, { workspaceId, actor }) => {
      const { workers, ...state } = relayWatch.read()
      const shown = allows(actor.level, 'admin') ? workers.map((each) => ({ ...each, startedAt: new Date(each.startedAt) })) : null
      return { data: { id: workspaceId, type: 'relay' as const, attributes: { ...state, workers: shown } } }
    },
  }),
]
