// Floor of `content-server`: a plain web server that answers every GET from memory. The query parameter `bytes` is the size of the body.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const bodies = new Map<string, Buffer>()

const server = createServer((request, response) => {
  const bytes = new URL(request.url ?? '', 'http://floor').searchParams.get('bytes') ?? '0'
  const body = bodies.get(bytes) ?? Buffer.alloc(Number(bytes), 'x')
  bodies.set(bytes, body)
  response.writeHead(200, { 'content-type': 'application/pdf', 'content-length': body.length }).end(body)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => process.exit())
process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
