import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { findFreePort } from '../../src/programs/ports.ts'
import { createFolder } from '../support/folder.ts'
import { startScene } from '../support/scene.ts'
import { startServer } from '../support/server-program.ts'
import { share } from '../support/share.ts'
import { objstore } from './objstore.ts'

const { api, acme } = share(await startScene())
const { path: folder } = share(await createFolder())

const startNginx = async () => {
  const port = await findFreePort()
  const file = join(folder, 'nginx.conf')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
  await writeFile(
    file,
    `daemon off; pid ${folder}/nginx.pid; worker_processes 1; error_log stderr warn; events {}
    http {
      access_log off; ${paths.join(' ')}
      gzip on; gzip_types application/json; gzip_proxied any;
      server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${api.port}; } }
    }`,
  )
  const server = await startServer(process.env.TEST_NGINX_BIN!, ['-c', file, '-e', 'stderr', '-p', folder], {
    name: 'nginx',
    port,
    logFile: join(folder, 'log'),
  })
  return { port, [Symbol.asyncDispose]: () => server.stop() }
}

test('nginx makes the tag of an answer weak that it compresses, and a change with that tag is made', async () => {
  const path = `/destinations/${await acme.create('/destinations', objstore('Behind nginx'))}`
  await using nginx = await startNginx()
  const call = async (method: string, body?: object, headers: IncomingHttpHeaders = {}) => {
    const sent = request({
      host: '127.0.0.1',
      port: nginx.port,
      path: acme.path + path,
      method,
      headers: {
        authorization: `Bearer ${acme.keys.admin}`,
        'accept-encoding': 'gzip',
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
    }).end(body && JSON.stringify(body))
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    const plain = answer.headers['content-encoding'] === 'gzip' ? answer.pipe(createGunzip()) : answer
    return { status: answer.statusCode, headers: answer.headers, body: await text(plain) }
  }
  const read = await call('GET')
  expect(read.headers).toMatchObject({ 'content-encoding': 'gzip', etag: expect.stringMatching(/^W\/"/) })
  const changed = await call('PATCH', { name: 'B' }, { 'if-match': read.headers.etag })
  expect(changed.status).toBe(200)
  expect(JSON.parse(changed.body).data.attributes.name).toBe('B')
  expect((await call('PATCH', { name: 'C' }, { 'if-match': read.headers.etag })).status).toBe(412)
})
