import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { refuseUnknown } from '../src/http/errors.ts'
import { createLog } from '../src/log.ts'
import { serve, type Listening } from '../src/serve.ts'
import { testConfig } from './support/factories.ts'

const KiB = 1024

let listening: Listening

beforeAll(async () => {
  const answer = (ctx: { body: unknown }) => {
    ctx.body = 'served'
  }
  listening = await serve([answer], testConfig({ RELAY_SHUTDOWN_GRACE_MS: '100' }), createLog('silent'))
})
afterAll(() => listening.close())

const send = async (head: string): Promise<string> => {
  const socket = connect(listening.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.end(head)
  return text(socket)
}

test('what no surface has taken is 404 in the one envelope, to every method', async () => {
  const log = createLog('silent')
  const bare = await serve([refuseUnknown(log)], testConfig({ RELAY_SHUTDOWN_GRACE_MS: '100' }), log)
  for (const method of ['GET', 'POST', 'OPTIONS']) {
    const answer = await fetch(`http://127.0.0.1:${bare.port}/nowhere`, { method })
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'not_found', request_id: answer.headers.get('x-relay-request-id') } })
  }
  await bare.close()
})

describe('the HTTP server', () => {
  it('takes a request line and headers of up to 64 KiB: signed URLs are long', async () => {
    const head = `GET /?secKey=${'A'.repeat(40 * KiB)} HTTP/1.1\r\nHost: x\r\nX-Long: ${'b'.repeat(20 * KiB)}\r\nConnection: close\r\n\r\n`
    expect(await send(head)).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  it('refuses longer ones, and goes on serving', async () => {
    expect(await send(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'b'.repeat(70 * KiB)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /)
    expect(await send('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(/served$/)
  })

  it('refuses what is no HTTP', async () => {
    expect(await send('\u0000\u0001 nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })
})
