import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import { disposable } from './support/disposable.ts'
import { fullOr } from './support/full-run.ts'
import { startInstallation } from './support/installation.ts'
import { routeToWebhook } from './support/relay-process.ts'
import { until } from './support/until.ts'

const MiB = 1024 * 1024
const sizeBytes = fullOr(1024, 256) * MiB
// A process that held a whole document would grow by at least twice as much.
const growthMaxBytes = 128 * MiB

describe(`a document of ${sizeBytes / MiB} MiB`, () => {
  test(`is delivered unchanged, read and searched while api and worker grow by less than ${growthMaxBytes / MiB} MiB each`, async () => {
    await using sink = disposable(await startWebhookSink(), (each) => each.stop())
    // Searching 256 MiB takes seconds of processor time, and on a busy machine much longer.
    await using installation = await startInstallation({ RELAY_SEARCH_TIMEOUT_MS: '300000' })
    const { database, api, worker } = installation
    const { workspaceId, workspaceSlug } = await routeToWebhook(database, sink.url)
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
          // Makes every block different.
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
    const read = async (docId: string, command: string, more = ''): Promise<{ sizeBytes: number; end: string }> => {
      const query = `${command}&pVersion=0045&contRep=Z1&docId=${docId}${more}`
      const answer = await fetch(`${api.baseUrl}/receiver/acme/${workspaceSlug}?${query}`)
      expect(answer.status).toBe(200)
      let received = 0
      let last: Uint8Array = new Uint8Array()
      for await (const chunk of answer.body!) {
        received += chunk.length
        last = chunk
      }
      return { sizeBytes: received, end: Buffer.from(last).toString('latin1') }
    }
    const untilDelivered = (count: number) =>
      until(
        `${count} documents are delivered`,
        () => sink.calls.length,
        (calls) => calls >= count,
        180_000,
      )

    // Random bytes do not contain this pattern, so the search reads all of them.
    const missing = '&compId=data&caseSensitive=y&pattern=none%20of%20these%20bytes'

    // The first document and the first reads load code, fill caches and grow the heap. Only the growth after them is measured.
    await send('SMALL', 64 * MiB)
    await untilDelivered(1)
    expect((await read('SMALL', 'docGet')).sizeBytes).toBeGreaterThan(64 * MiB)
    expect((await read('SMALL', 'search', missing)).end).toBe('0;')
    const before = { api: (await api.memory()).peak, worker: (await worker.memory()).peak }

    const sha256 = await send('LARGE', sizeBytes)
    await untilDelivered(2)
    expect(sink.calls[1]).toMatchObject({ sizeBytes, sha256 })
    const growth = { api: (await api.memory()).peak - before.api, worker: (await worker.memory()).peak - before.worker }
    expect(growth.api).toBeLessThan(growthMaxBytes)
    expect(growth.worker).toBeLessThan(growthMaxBytes)
    expect(await database.db('documents').where({ workspace_id: workspaceId, size_bytes: sizeBytes })).toHaveLength(1)

    const peakBefore = (await api.memory()).peak
    expect((await read('LARGE', 'docGet')).sizeBytes).toBeGreaterThan(sizeBytes)
    expect((await read('LARGE', 'search', missing)).end).toBe('0;')
    expect((await read('LARGE', 'search', `${missing}&fromOffset=${sizeBytes}&toOffset=0`)).end).toBe('0;')
    expect((await api.memory()).peak - peakBefore).toBeLessThan(growthMaxBytes)
  }, 600_000)
})
