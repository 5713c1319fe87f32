import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Koa, { type Middleware } from 'koa'
import { dispatch } from '../../src/http/server.ts'

const answering =
  (name: string): Middleware =>
  (context) => {
    context.body = name
  }

const app = new Koa()
app.use(dispatch({ healthz: answering('probes') }))
app.use(
  dispatch({
    receiver: answering('receiver'),
    'openapi.json': answering('reference'),
    api: answering('api'),
    docs: (_, next) => next(),
  }),
)
app.use(answering('nothing'))
const server = app.listen(0, '127.0.0.1')
beforeAll(() => once(server, 'listening'))
afterAll(() => server.close())

/** Sends a request target as it stands, which `fetch` would normalize. */
const ask = async (method: string, target: string): Promise<string> => {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  socket.end(`${method} ${target} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n`)
  return (await text(socket)).split('\r\n').at(-1)!
}

test.each([
  ['/healthz', 'probes'],
  ['/healthz/', 'probes'],
  ['/healthz?full', 'probes'],
  ['/api', 'api'],
  ['/api/', 'api'],
  ['/api/acme/prod/documents', 'api'],
  ['/api?key', 'api'],
  ['/api#part', 'api'],
  ['/openapi.json', 'reference'],
  ['/receiver/acme/prod?get&contRep=Z1', 'receiver'],
  ['/receiver/acme/prod/file.pdf?get', 'receiver'],
  ['/receiver/%61cme/prod?get', 'receiver'],
  ['http://relay/receiver/acme/prod?get', 'receiver'],
  ['HTTPS://relay:8080/api/acme', 'api'],
  // Segments are compared as they were sent: case counts, and an encoded character is another one.
  ['/API/acme', 'nothing'],
  ['/%61pi/acme', 'nothing'],
  ['//api/acme', 'nothing'],
  ['/./api/acme', 'nothing'],
  ['/apis', 'nothing'],
  ['/acme/api', 'nothing'],
  ['/', 'nothing'],
  ['/?/api', 'nothing'],
  ['http://relay', 'nothing'],
  ['http://relay?/api/', 'nothing'],
  ['/__proto__', 'nothing'],
  ['/constructor', 'nothing'],
  // The surface passes it on.
  ['/docs/elsewhere', 'nothing'],
])('the target %s reaches: %s', async (target, surface) => {
  expect(await ask('GET', target)).toBe(surface)
})

test('the method has no influence on the surface, and a target without a path reaches none', async () => {
  for (const method of ['PUT', 'POST', 'DELETE', 'OPTIONS', 'PATCH']) expect(await ask(method, '/api/acme')).toBe('api')
  expect(await ask('OPTIONS', '*')).toBe('nothing')
})
