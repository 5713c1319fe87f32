import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { createLog } from '../../src/base/log.ts'
import { createMalformedRequests } from '../../src/http/malformed-requests.ts'
import { disposable } from '../support/disposable.ts'
import { testConfig } from '../support/factories.ts'

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('the memory of packets is freed when the parser has read them, and bodies arrive as they were sent', async () => {
  const answerWithHash = async (request: IncomingMessage, response: ServerResponse) => response.end(hashOf(await buffer(request)))
  await using server = disposable(
    createServer((request, response) => void answerWithHash(request, response)),
    (each) => each.close().closeAllConnections(),
  )
  createMalformedRequests({ config: testConfig(), log: createLog('silent') }).attach(server)
  const left: number[] = []
  server.on('connection', (socket: Socket) => socket.on('data', (packet: Buffer) => left.push(packet.length)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

  const whole = randomBytes(3_000_000)
  for (const body of [whole, whole.subarray(0, 10), whole.subarray(0, 5_000)]) {
    expect(await (await fetch(url, { method: 'PUT', body })).text()).toBe(hashOf(body))
  }
  const chunks = async function* () {
    for (let at = 0; at < whole.length; at += 7_777) yield whole.subarray(at, at + 7_777)
  }
  const chunked = await fetch(url, { method: 'PUT', body: chunks(), duplex: 'half' } as unknown as RequestInit)
  expect(await chunked.text()).toBe(hashOf(whole))

  expect(left.length).toBeGreaterThan(3)
  expect(new Set(left)).toEqual(new Set([0]))
})
