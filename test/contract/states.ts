import { newId } from '../../src/base/ids.ts'
import { until } from '../support/until.ts'
import type { Json, Row } from './world.ts'

// Section 3 of the specification: states and transitions.

const documents: Row[] = [
  [
    '3.1 pending: received; delivery not started',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['accepting'], { is_active: false })
      expect(await acme.untilStatus(await acme.sendDocument(repoId, 'pending'), 'pending')).toMatchObject({
        deliveries: [{ attempts: 0 }],
      })
    },
  ],
  [
    '3.1 delivered: all destinations received it',
    async ({ acme, arrivalsOf }) => {
      const { repoId } = await acme.wire(['accepting', 'accepting'])
      await acme.sendDocument(repoId, 'delivered')
      expect(arrivalsOf(repoId).map(({ body }) => String(body))).toEqual(['hello', 'hello'])
    },
  ],
  [
    '3.1 retrying: at least one destination is being retried',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['accepting', 'down'])
      const { deliveries } = await acme.untilStatus(await acme.sendDocument(repoId, 'retrying'), 'retrying')
      expect(deliveries.map(({ status }: Json) => status)).toContain('retrying')
    },
  ],
  [
    '3.1 failed: at least one destination failed after all retry attempts',
    async ({ other }) => {
      await other.call('PATCH', '/settings', { max_retries: 1, retry_initial_interval_seconds: 1 })
      const { repoId } = await other.wire(['accepting', 'down'])
      const { deliveries } = await other.untilStatus(await other.sendDocument(repoId, 'failed'), 'failed')
      expect(deliveries.map(({ status, attempts }: Json) => ({ status, attempts }))).toEqual(
        expect.arrayContaining([
          { status: 'delivered', attempts: 1 },
          { status: 'failed', attempts: 2 },
        ]),
      )
    },
  ],
  [
    '3.1 discarded: no destination was wired; acknowledged but not retained or forwarded',
    async ({ acme }) => {
      const { repoId, id: repositoryId } = await acme.repository()
      const id = await acme.sendDocument(repoId, 'discarded')
      expect((await acme.attributesOf(`/documents/${id}`)).deliveries).toEqual([])
      expect(await acme.idsOf(`/documents?repo_id=${repoId}&status=discarded`)).toEqual([id])
      expect(await acme.statusOf('GET', `/documents/${id}/content`)).toBe(404)
      expect((await acme.attributesOf(`/repositories/${repositoryId}`)).document_count).toBe(0)
    },
  ],
  [
    '3.1 failed, retry: becomes retrying, is re-queued to the failed destinations only, and is recorded',
    async ({ acme, switchTo, arrivalsOf }) => {
      switchTo(400)
      const { repoId, destinations } = await acme.wire(['accepting', 'switchable'])
      const id = await acme.sendDocument(repoId, 'failed')
      switchTo(200)
      await until(
        'the other delivery',
        async () => arrivalsOf(repoId).map(({ url }) => url),
        (urls) => urls.length === 2,
      )
      const { status, json } = await acme.call('POST', `/documents/${id}/retry`, undefined, { key: acme.keys.member })
      expect({ status, state: json.data.attributes.status }).toEqual({ status: 200, state: 'retrying' })
      const { deliveries } = await acme.untilStatus(id, 'delivered')
      expect(
        arrivalsOf(repoId)
          .slice(2)
          .map(({ url }) => url),
      ).toEqual(['/switchable'])
      const attempts = new Map(deliveries.map((delivery: Json) => [delivery.destination_id, delivery.attempts]))
      expect(destinations.map((destinationId) => attempts.get(destinationId))).toEqual([1, 2])
      expect((await acme.eventsOf(id)).map(({ attributes }) => attributes.event)).toEqual(['document.retried'])
    },
  ],
  [
    '3.1 failed, retry: the workspace retry settings apply',
    async ({ other, switchTo }) => {
      switchTo(400)
      const { repoId } = await other.wire(['switchable'])
      const id = await other.sendDocument(repoId, 'failed')
      switchTo(503)
      await other.call('PATCH', '/settings', { max_retries: 0 })
      await other.call('POST', `/documents/${id}/retry`)
      const { deliveries } = await other.untilStatus(id, 'failed')
      expect(deliveries[0].attempts).toBe(2)
    },
  ],
  [
    '3.1 the list filter status accepts pending, delivered, failed, retrying',
    async ({ acme }) => {
      for (const status of ['pending', 'delivered', 'failed', 'retrying']) {
        const { json } = await acme.call('GET', `/documents?status=${status}&per_page=100`)
        expect([...new Set(json.data.map(({ attributes }: Json) => attributes.status))]).toEqual([status])
      }
    },
  ],
]

const repositories: Row[] = [
  [
    '3.2 PATCH with status sets the value, even if it is already set',
    async ({ acme }) => {
      const { id } = await acme.repository()
      for (const status of ['inactive', 'inactive', 'active', 'active']) {
        const { json } = await acme.call('PATCH', `/repositories/${id}`, { status })
        expect(json.data.attributes.status).toBe(status)
      }
      expect(await acme.statusOf('PATCH', `/repositories/${id}`, { status: 'paused' })).toBe(422)
    },
  ],
  [
    '3.2 a new repository starts as active',
    async ({ acme }) => {
      const { id } = await acme.repository()
      expect((await acme.attributesOf(`/repositories/${id}`)).status).toBe('active')
    },
  ],
]

const connections: Row[] = [
  [
    '3.3 active to inactive: documents are received and stored but not forwarded; connection.toggled',
    async ({ acme, arrivalsOf }) => {
      const { repoId, connectionId } = await acme.wire(['accepting'])
      const { json } = await acme.call('PATCH', `/connections/${connectionId}`, { is_active: false })
      expect(json.data.is_active).toBe(false)
      const id = await acme.sendDocument(repoId, 'pending')
      expect((await acme.call('GET', `/documents/${id}/content`)).text).toBe('hello')
      expect(arrivalsOf(repoId)).toEqual([])
      expect((await acme.eventsOf(connectionId))[0].attributes).toMatchObject({
        event: 'connection.toggled',
        metadata: { is_active: false },
      })
    },
  ],
  [
    '3.3 inactive to active: forwarding resumes; connection.toggled',
    async ({ acme }) => {
      const { repoId, connectionId } = await acme.wire(['accepting'], { is_active: false })
      const held = await acme.sendDocument(repoId, 'pending')
      await acme.call('PATCH', `/connections/${connectionId}`, { is_active: true })
      await acme.sendDocument(repoId, 'delivered', newId())
      await until(
        'the release of the held delivery',
        () => acme.attributesOf(`/documents/${held}`),
        ({ status }: Json) => status === 'delivered',
      )
      expect((await acme.eventsOf(connectionId))[0].attributes).toMatchObject({
        event: 'connection.toggled',
        metadata: { is_active: true },
      })
    },
  ],
]

export const stateRows: Row[] = [...documents, ...repositories, ...connections]
