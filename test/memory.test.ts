import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { startWebhookSink } from '../src/demo/webhook-sink.ts'
import { createTestDatabase } from './support/database.ts'
import { relayVariables, startRelayProcess, wireToWebhook } from './support/relay-process.ts'
import { startTemporalDevServer } from './support/temporal.ts'

const MiB = 1024 * 1024
const sizeBytes = 1024 * MiB
const growthMaxBytes = 96 * MiB

describe('a document of 1 GiB', () => {
  it('arrives whole, while api and worker each grow by less than 96 MiB', async () => {
    const database = await createTestDatabase()
    const env = await startTemporalDevServer()
    const sink = await startWebhookSink()
    const api = await startRelayProcess('api', relayVariables(database, env.address))
    const worker = await startRelayProcess('worker', relayVariables(database, env.address))
    try {
      const { workspaceId, workspaceSlug } = await wireToWebhook(database, sink.url)
      const send = async (docId: string, bytes: number): Promise<string> => {
        const hash = createHash('sha256')
        const block = randomBytes(MiB)
        const url = `${api.baseUrl}/receiver/acme/${workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`
        const sending = request(url, { method: 'PUT', headers: { 'content-type': 'application/pdf', 'content-length': bytes } })
        const answered = new Promise<number>((resolve, reject) => {
          sending.once('response', (response) => resolve(response.resume().statusCode!)).once('error', reject)
        })
        const body = function* () {
          for (let sent = 0; sent < bytes; sent += block.length) {
            // each block is another one
            block.writeUInt32BE(sent / block.length)
            const chunk = Buffer.from(block)
            hash.update(chunk)
            yield chunk
          }
        }
        await pipeline(Readable.from(body(), { objectMode: false, highWaterMark: MiB }), sending)
        expect(await answered).toBe(201)
        return hash.digest('hex')
      }
      const untilDelivered = async (count: number) => {
        for (const deadline = Date.now() + 180_000; sink.calls.length < count; await delay(100)) {
          if (Date.now() > deadline) throw new Error('not delivered in time')
        }
      }

      // the first document loads code and fills caches: what a larger one adds to that is what counts
      await send('SMALL', 4 * MiB)
      await untilDelivered(1)
      const before = { api: (await api.memory()).peak, worker: (await worker.memory()).peak }

      const sha256 = await send('LARGE', sizeBytes)
      await untilDelivered(2)
      expect(sink.calls[1]).toMatchObject({ sizeBytes, sha256 })
      const growth = { api: (await api.memory()).peak - before.api, worker: (await worker.memory()).peak - before.worker }
      expect(growth.api).toBeLessThan(growthMaxBytes)
      expect(growth.worker).toBeLessThan(growthMaxBytes)
      expect(await database.db('documents').where({ workspace_id: workspaceId, size_bytes: sizeBytes })).toHaveLength(1)
    } finally {
      await Promise.all([api.kill(), worker.kill()])
      await sink.stop()
      await env.teardown()
      await database.drop()
    }
  }, 300_000)
})
