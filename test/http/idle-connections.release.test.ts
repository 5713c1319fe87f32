import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Middleware } from 'koa'
import { createLog } from '../../src/base/log.ts'
import { createConnectionLimit, startHttpServer } from '../../src/http/server.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { testConfig } from '../support/factories.ts'
import { startServer } from '../support/server-program.ts'

// Longer than the 5 seconds for which Node keeps an idle connection by default.
const idleMs = 7_000
const rounds = 3
const testMs = 120_000

interface Program {
  name: string
  path: string
  /** Writes the configuration, with the defaults of the program for idle connections. @returns the arguments */
  configure(folder: string, ports: { own: number; relay: number }): Promise<string[]>
}

const nginx: Program = {
  name: 'nginx',
  path: process.env.TEST_NGINX_BIN!,
  configure: async (folder, { own, relay }) => {
    const file = join(folder, 'nginx.conf')
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
    await writeFile(
      file,
      `daemon off; pid ${folder}/nginx.pid; worker_processes 1; error_log stderr warn; events {}
      http {
        access_log off; ${paths.join(' ')}
        upstream relay { server 127.0.0.1:${relay}; keepalive 8; }
        server {
          listen 127.0.0.1:${own};
          location / { proxy_pass http://relay; proxy_http_version 1.1; proxy_set_header Connection ""; }
        }
      }`,
    )
    return ['-c', file, '-e', 'stderr', '-p', folder]
  },
}

const haproxy: Program = {
  name: 'HAProxy',
  path: process.env.TEST_HAPROXY_BIN!,
  configure: async (folder, { own, relay }) => {
    const file = join(folder, 'haproxy.cfg')
    await writeFile(
      file,
      `defaults
    mode http
    timeout connect 5s
    timeout client 150s
    timeout server 150s
frontend in
    bind 127.0.0.1:${own}
    default_backend relay
backend relay
    server one 127.0.0.1:${relay}
`,
    )
    return ['-db', '-f', file]
  },
}

/** Starts an HTTP server as the API has, which counts its connections. */
const startCounted = async () => {
  const sockets = new Set<unknown>()
  const store: Middleware = async (context) => {
    sockets.add(context.req.socket)
    for await (const _ of context.req);
    context.status = 201
    context.body = 'stored'
  }
  const config = testConfig({ RELAY_SHUTDOWN_GRACE_MS: '100' })
  const server = await startHttpServer([store], 'RELAY_PORT', config, createLog('silent'), createConnectionLimit(config))
  return { port: server.port, close: server.close, connections: () => sockets.size }
}

test.each([nginx, haproxy].map((program) => [program.name, program] as const))(
  '%s sends a PUT on a connection that was idle for longer than 5 seconds, and each is answered',
  async (name, program) => {
    const folder = await mkdtemp(join(tmpdir(), 'relay-proxy-'))
    const relay = await startCounted()
    const own = await findFreePort()
    const args = await program.configure(folder, { own, relay: relay.port })
    const proxy = await startServer(program.path, args, { name, port: own, logFile: join(folder, 'log') })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const put = async () => {
      const sent = request({ port: own, host: '127.0.0.1', method: 'PUT', path: '/', agent })
      sent.end('document')
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      answer.resume()
      await once(answer, 'end')
      return answer.statusCode
    }
    try {
      const statuses = [await put()]
      for (let round = 0; round < rounds; round += 1) {
        await pause(idleMs)
        statuses.push(await put())
      }
      expect(statuses).toEqual(Array.from({ length: 1 + rounds }, () => 201))
      expect(relay.connections()).toBe(1)
    } finally {
      agent.destroy()
      await proxy.stop()
      await relay.close()
      await rm(folder, { recursive: true, force: true })
    }
  },
  testMs,
)
