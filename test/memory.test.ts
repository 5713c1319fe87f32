import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { startWebhookSink } from '../src/demo/webhook-sink.ts'
import { createTestDatabase } from './support/database.ts'
import { relayVariables, startRelayProcess, wireToWebhook } from './support/relay-process.ts'
import { startTemporalDevServer } from './support/temporal.ts'
import { until } from './support/until.ts'

const MiB = 1024 * 1024
const sizeBytes = 1024 * MiB
const growthMaxBytes = 96 * MiB

describe('a document of 1 GiB', () => {
  it('arrives whole while api and worker each grow by less than 96 MiB, and the api by no more when it is read and searched', async () => {
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
      const read = async (command: string, more = ''): Promise<{ sizeBytes: number; end: string }> => {
        const query = `${command}&pVersion=0045&contRep=Z1&docId=LARGE${more}`
        const answer = await fetch(`${api.baseUrl}/receiver/acme/${workspaceSlug}?${query}`)
        expect(answer.status).toBe(200)
        let received = 0
        let last: Uint8Array = new Uint8Array()
        for await (const piece of answer.body!) {
          received += piece.length
          last = piece
        }
        return { sizeBytes: received, end: Buffer.from(last).toString('latin1') }
      }
      const untilDelivered = (count: number) =>
        until(
          'the delivery',
          () => sink.calls.length,
          (calls) => calls >= count,
          180_000,
        )

      // the first document loads code, fills caches and lets the heap grow: what a larger one adds to that is what counts
      await send('SMALL', 64 * MiB)
      await untilDelivered(1)
      const before = { api: (await api.memory()).peak, worker: (await worker.memory()).peak }

      const sha256 = await send('LARGE', sizeBytes)
      await untilDelivered(2)
      expect(sink.calls[1]).toMatchObject({ sizeBytes, sha256 })
      const growth = { api: (await api.memory()).peak - before.api, worker: (await worker.memory()).peak - before.worker }
      expect(growth.api).toBeLessThan(growthMaxBytes)
      expect(growth.worker).toBeLessThan(growthMaxBytes)
      expect(await database.db('documents').where({ workspace_id: workspaceId, size_bytes: sizeBytes })).toHaveLength(1)

      const peakBefore = (await api.memory()).peak
      expect((await read('docGet')).sizeBytes).toBeGreaterThan(sizeBytes)
      // what random bytes do not hold, so that all of them are looked at
      const nowhere = '&compId=data&caseSensitive=y&pattern=none%20of%20these%20bytes'
      expect((await read('search', nowhere)).end).toBe('0;')
      expect((await read('search', `${nowhere}&fromOffset=${sizeBytes}&toOffset=0`)).end).toBe('0;')
      expect((await api.memory()).peak - peakBefore).toBeLessThan(growthMaxBytes)
    } finally {
      await Promise.all([api.kill(), worker.kill()])
      await sink.stop()
      await env.teardown()
      await database.drop()
    }
  }, 600_000)
})
