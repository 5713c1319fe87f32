import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, until } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'
import { copyWaitingDocument } from '../support/waiting-documents.ts'

const env = share(await createTimeSkippingTemporal())
const relay = share(await startRelay(env))
const target = share(await startHttpTarget())

/** The source system of one enrichment answers, and that of the other does not. */
const fast = share(await startHttpTarget())
fast.answerWith((_, response) => void response.end('{"value":"Acme Ltd"}'))

const enrichmentOf = (url: string, repositoryId: string) => ({
  name: url,
  repository_ids: [repositoryId],
  http: { url },
  wait_seconds: 3_600,
  steps: [{ kind: 'http', name: 'order', path: '/', fields: [{ name: 'value', path: '$.value' }] }],
})

test('beside a thousand documents that wait for a system that hangs, others of any workspace are enriched and delivered, and nothing asks again', async () => {
  const runs: string[] = []
  const hanging = await startHttpTarget()
  hanging.answerWith(() => {})
  await relay.run(
    async ({ createRoutes }) => {
      const to = [{ name: 'web', config: { url: target.origin } }]
      const [sick, well, plain] = [await createRoutes(to), await createRoutes(to), await createRoutes(to)]
      const slow = await sick.call('POST', '/enrichments', enrichmentOf(hanging.origin, sick.repositoryId))
      const slowId = slow.json.data.id as string
      expect((await well.call('POST', '/enrichments', enrichmentOf(fast.origin, well.repositoryId))).status).toBe(201)
      const first = await sick.receive('hello', 'HANGS')
      const waiting = { id: first.id, workspaceId: sick.workspaceId, enrichmentId: slowId }
      await copyWaitingDocument(relay.db, waiting, { copies: 999, waitsUntil: "now() + interval '1 hour'" })
      await until(env, 'ten calls hang', async () => hanging.arrivals.length === 10, 10)
      for (let round = 0; round < 3; round += 1) {
        const [enriched, other] = [await well.receive('hello', `WELL${round}`), await plain.receive('hello', `PLAIN${round}`)]
        for (const each of [enriched, other]) {
          await until(env, 'it is delivered', async () => (await each.status()) === 'delivered', 100)
        }
        const { fields } = (await well.call('GET', `/documents/${enriched.id}`)).json.data.attributes
        expect(fields).toEqual({ value: 'Acme Ltd' })
      }
      expect(hanging.arrivals).toHaveLength(10)
      expect(runs.filter((id) => id === slowId)).toHaveLength(1)
      expect(runs.length).toBeLessThanOrEqual(4)
      // The system fails: the queue is closed, and nothing more is begun.
      await hanging.stop()
      const queue = () => relay.db('side_queues').where({ id: slowId }).first()
      await until(env, 'the queue is closed', async () => (await queue())?.failures >= 5, 100)
      expect(runs.filter((id) => id === slowId).length).toBeLessThanOrEqual(2)
      const { call } = sick
      expect((await call('GET', `/documents/${first.id}`)).json.data.attributes).toMatchObject({
        status: 'pending',
        enrichments: [{ status: 'pending' }],
      })

      // It is switched off: everything that waits ends, and the deliveries begin.
      expect((await call('PATCH', `/enrichments/${slowId}`, { is_active: false })).status).toBe(200)
      await until(env, 'the first document is delivered', async () => (await first.status()) === 'delivered', 100)
      const pending = () => relay.db('document_enrichments').where({ enrichment_id: slowId, status: 'pending' }).select('document_id')
      await until(env, 'every enrichment has ended', async () => (await pending()).length === 0, 100)
    },
    ({ enrichDocuments }) => ({
      enrichDocuments: async (queue) => {
        runs.push(queue.queueId)
        return enrichDocuments(queue)
      },
    }),
  )
}, 240_000)
