import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { identifyProcess, readPidFile } from '../../src/programs/orphaned-processes.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { findTemporalUi } from '../../src/temporal-server/find-programs.ts'
import { startTemporalUi } from '../../src/temporal-server/ui.ts'
import { configOf } from '../dev/support.ts'
import { disposable } from '../support/disposable.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { takePort } from '../support/take-port.ts'
import { temporalCluster } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

// The real UI. It reaches Temporal without a certificate, as on one machine; the cluster of the tests demands one.
const withDevServer = temporalCluster() ? describe.skip : describe

const config = configOf()
const program = await findTemporalUi({ config, say: (line) => void process.stderr.write(`${line}\n`) })
const { path: folder } = share(await createFolder())
const log = createLog('silent')
const start = async (listen: string, temporal: { address: string; namespace?: string | undefined }) => {
  const said: string[] = []
  const own = { ...config, temporal: { ...config.temporal, ...(temporal.namespace !== undefined && { namespace: temporal.namespace }) } }
  const ui = await startTemporalUi({
    folder,
    program,
    listen,
    temporalAddress: temporal.address,
    config: own,
    log,
    say: (line) => said.push(line),
  })
  return { said, ...disposable(ui, ui.stop) }
}
const readPid = () => readPidFile(join(folder, 'ui.pid'))

withDevServer('the UI of Temporal', () => {
  test('shows a page and a workflow, changes nothing, is started again when it ends, and stops', async () => {
    await using env = await startTemporalServer()
    const { workflowId } = await env.client.workflow.start('none', { taskQueue: 'nobody', workflowId: 'deliver D/1' })
    const address = `127.0.0.1:${await findFreePort()}`
    await using ui = await start(address, { address: env.address, namespace: env.namespace })
    expect([ui.url, ui.said]).toEqual([`http://${address}`, [`The Temporal UI is at http://${address}`]])
    const workflow = `/namespaces/${env.namespace}/workflows/${encodeURIComponent(workflowId)}`
    const page = await fetch(ui.url + workflow)
    expect([page.status, page.headers.get('content-type'), await page.text()]).toEqual([
      200,
      'text/html',
      expect.stringMatching(/^<!doctype html>/i),
    ])
    const described = await fetch(`${ui.url}/api/v1${workflow}`)
    expect(await described.json()).toMatchObject({ workflowExecutionInfo: { execution: { workflowId } } })

    const { disableWriteActions } = JSON.parse(await readFile(join(folder, 'ui/base.yaml'), 'utf8')) as { disableWriteActions: boolean }
    expect(disableWriteActions).toBe(true)
    const cookie = page.headers.get('set-cookie')!.split(';')[0]!
    const terminate = await fetch(`${ui.url}/api/v1${workflow}/terminate`, {
      method: 'POST',
      headers: { cookie, 'x-csrf-token': cookie.split('=')[1]!, 'content-type': 'application/json' },
      body: '{}',
    })
    expect(terminate.status).toBe(405)

    const former = (await readPid())!
    process.kill(former, 'SIGKILL')
    await until('another process runs', readPid, (pid) => pid !== undefined && pid !== former)
    await until('it answers', () =>
      fetch(`${ui.url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    const pid = (await readPid())!
    await ui.stop()
    expect(await identifyProcess(pid)).toBeUndefined()
    expect(await readdir(folder)).not.toContain('ui.pid')
  }, 120_000)
})

test('a port that another program uses, and an address of another machine, end the start with a sentence', async () => {
  const port = await findFreePort()
  await using _ = await takePort(port)
  await expect(start(`127.0.0.1:${port}`, { address: '127.0.0.1:1' })).rejects.toThrow(
    `The Temporal UI cannot listen on 127.0.0.1:${port} of RELAY_TEMPORAL_UI: another program uses the port.`,
  )
  await expect(start(`192.0.2.1:${port}`, { address: '127.0.0.1:1' })).rejects.toThrow('of RELAY_TEMPORAL_UI: listen EADDRNOTAVAIL')
})
