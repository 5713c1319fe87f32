import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { until } from '../support/until.ts'
import type { Job, Report } from './deliver-in-process.ts'
import { largePayload } from './payloads.ts'
import { loadRigs } from './rig.ts'

const childProgram = fileURLToPath(new URL('./deliver-in-process.ts', import.meta.url))

// A proxy would connect in place of the relay, so the check of the address would not hold.
test.each((await loadRigs()).filter(({ usesNetwork }) => usesNetwork))(
  '$kind delivers without the proxy of the environment, which would reach any address',
  async (rig) => {
    let connections = 0
    const proxy = createServer((socket) => {
      connections += 1
      socket.on('error', () => {}).end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const names = ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) => [name, name.toUpperCase()])
    const running = await rig.start()

    const child = fork(childProgram, {
      env: { ...process.env, ...Object.fromEntries(names.map((name) => [name, url])), NO_PROXY: '', NODE_USE_ENV_PROXY: '1' },
    })
    const exited = once(child, 'exit')
    const failures: string[] = []
    child.on('message', (report: Report) => {
      if ('failed' in report) failures.push(report.failed)
    })
    const { open: _, receivedAt: __, ...payload } = largePayload(64 * 1024)
    const job: Job = { kind: rig.kind, target: running.target(), processSettings: running.processSettings, payload }
    child.send(job)
    try {
      await until('the document is delivered, or not', async () => failures.length > 0 || (await running.documents()).length > 0)
      expect({ failures, connections }).toEqual({ failures: [], connections: 0 })
    } finally {
      child.kill('SIGKILL')
      await exited
      await running.stop()
      proxy.close()
    }
  },
)
