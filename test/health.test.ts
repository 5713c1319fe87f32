import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readConfig } from '../src/config/config.ts'
import { findFreePort } from '../src/programs/ports.ts'

const run = promisify(execFile)
const program = fileURLToPath(new URL('../src/health.ts', import.meta.url))
const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** Starts a process that answers /healthz and /readyz with these statuses. @returns its port */
const startProcess = async (healthz: number, readyz: number, host = '127.0.0.1'): Promise<string> => {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/healthz' ? healthz : url === '/readyz' ? readyz : 404).end('the answer')
  }).listen(0, host)
  servers.push(server)
  await once(server, 'listening')
  return String((server.address() as AddressInfo).port)
}

const check = async (variables: Record<string, string>, ...args: string[]): Promise<{ status: number; output: string }> => {
  try {
    const { stdout } = await run(process.execPath, [program, ...args], { env: variables })
    return { status: 0, output: stdout }
  } catch (thrown) {
    const { code, stdout } = thrown as { code: number; stdout: string }
    return { status: code, output: stdout }
  }
}

test('asks the process of the container, API or worker, whether it is alive or ready', async () => {
  const closed = String(await findFreePort())
  const port = await startProcess(200, 503)
  for (const variables of [
    { RELAY_PROBES_PORT: port, RELAY_WORKER_PORT: closed },
    { RELAY_PROBES_PORT: closed, RELAY_WORKER_PORT: port },
  ]) {
    expect(await check(variables)).toEqual({ status: 0, output: `port ${port}: 200 the answer\n` })
    expect(await check(variables, '/readyz')).toEqual({ status: 1, output: `port ${port}: 503 the answer\n` })
  }
})

test('fails if no process listens, or if one of two is not healthy', async () => {
  const [healthy, other, closed] = [await startProcess(200, 200), await startProcess(500, 500), String(await findFreePort())]
  expect(await check({ RELAY_PROBES_PORT: closed, RELAY_WORKER_PORT: closed })).toEqual({
    status: 1,
    output: `no process listens on port ${closed} or ${closed}\n`,
  })
  expect((await check({ RELAY_PROBES_PORT: healthy, RELAY_WORKER_PORT: other })).status).toBe(1)
})

test('asks the address that the process listens on, and all addresses by that of the machine itself', async () => {
  const variables = { RELAY_PROBES_PORT: await startProcess(200, 200, '127.0.0.2'), RELAY_WORKER_PORT: String(await findFreePort()) }
  expect((await check({ ...variables, RELAY_PROBES_HOST: '127.0.0.2' })).status).toBe(0)
  expect((await check({ ...variables, RELAY_PROBES_HOST: '0.0.0.0' })).status).toBe(1)
})

test('knows the default ports and addresses of the configuration', async () => {
  const { RELAY_PROBES_PORT, RELAY_WORKER_PORT, RELAY_PROBES_HOST } = readConfig({})
  expect({ RELAY_PROBES_PORT, RELAY_WORKER_PORT, RELAY_PROBES_HOST }).toEqual({
    RELAY_PROBES_PORT: 8082,
    RELAY_WORKER_PORT: 8081,
    RELAY_PROBES_HOST: '127.0.0.1',
  })
})

test('an empty variable has its default, as in the configuration', async () => {
  const [open, closed] = [await startProcess(200, 200), String(await findFreePort())]
  expect((await check({ RELAY_PROBES_HOST: '', RELAY_PROBES_PORT: open, RELAY_WORKER_PORT: closed })).status).toBe(0)
  // No address: the ports are named, and no request is sent, since other processes of the machine may listen on the default ports.
  const { output } = await check({ RELAY_PROBES_HOST: '256.0.0.1', RELAY_PROBES_PORT: '', RELAY_WORKER_PORT: '' })
  expect(output.match(/(?<=^port )\d+/gm)?.toSorted()).toEqual(['8081', '8082'])
})
