import type { RelayState } from '../../src/domain/relay-state.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const since = new Date('2026-11-29T09:00:00Z')
const worker = { name: '71@host', version: '0.1.0', buildId: null, startedAt: since.toISOString(), lastSeenAt: since, isRunning: false }
let state: RelayState = { status: 'working', since, workers: [worker] }
const { database, acme } = share(await startScene({ relayWatch: { read: () => state } }))
const wired = await wire(acme, 'A1')

test('every key learns if deliveries are made, and an administrator also of the workers', async () => {
  for (const status of ['working', 'no_worker', 'temporal_unavailable'] as const) {
    state = { ...state, status }
    for (const level of ['viewer', 'member'] as const) {
      const { json } = await acme.call('GET', '/relay', undefined, { key: acme.keys[level] })
      expect(json.data.attributes).toEqual({ status, since: since.toISOString(), workers: null })
    }
  }
  const { attributes } = (await acme.call('GET', '/relay')).json.data
  expect(attributes.workers).toEqual([
    {
      name: '71@host',
      version: '0.1.0',
      build_id: null,
      started_at: since.toISOString(),
      last_seen_at: since.toISOString(),
      is_running: false,
    },
  ])
})

test.each([
  ['working', 'worker'],
  ['no_worker', 'worker'],
  ['temporal_unavailable', 'temporal'],
] as const)(
  'while the relay is %s, a delivery that is due waits for %s, and one that is held for its connection',
  async (status, reason) => {
    state = { ...state, status }
    const insert = (delivery: 'pending' | 'held') =>
      insertDocument(database.db, {
        workspaceId: acme.id,
        repositoryId: wired.repositoryId,
        repoId: 'A1',
        deliveries: [{ ...wired, status: delivery }],
      })
    const reasonOf = async (id: string) =>
      (await acme.call('GET', `/documents/${id}`)).json.data.attributes.deliveries[0].waiting_for.reason
    expect(await reasonOf(await insert('pending'))).toBe(reason)
    expect(await reasonOf(await insert('held'))).toBe('connection')
  },
)
