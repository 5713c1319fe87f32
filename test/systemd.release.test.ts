import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../src/config/config.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { createWorkspaceClient } from './support/client.ts'
import { createTestDatabase } from './support/database.ts'
import { createFolder } from './support/folder.ts'
import { startHttpTarget } from './support/http-target.ts'
import { createInstallation } from './support/installation.ts'
import { relayVariables } from './support/relay-process.ts'
import { share } from './support/share.ts'
import { bootSystemd } from './support/systemd.ts'
import { temporalServerFolder } from './support/tools.ts'
import { until } from './support/until.ts'

// Starts the units of deploy/systemd, which docs/install.md copies, by a systemd, with the checkout in the place of the package.

const checkout = fileURLToPath(new URL('../', import.meta.url))
const units = Object.fromEntries(
  await Promise.all(
    ['relay-api', 'relay-worker', 'relay'].map(
      async (name) => [name, await readFile(join(checkout, `deploy/systemd/${name}.service`), 'utf8')] as const,
    ),
  ),
)
const { path: folder } = share(await createFolder())
const variablesFile = join(folder, 'relay.env')
const tools = { config: readConfig(), say: (line: string) => void process.stderr.write(`${line}\n`) }

/** Writes what the page has the operator write. @returns the paths, by the path in the installation */
const writeInstallation = async (): Promise<Record<string, string>> => {
  const release = join(folder, 'opt/0.1.0')
  await mkdir(join(release, 'source'), { recursive: true })
  await mkdir(join(release, 'node_modules/.bin'), { recursive: true })
  await writeFile(join(release, 'node'), '')
  await symlink('0.1.0', join(folder, 'opt/current'))
  const program = '#!/bin/sh\nexec /opt/relay/current/node /opt/relay/current/source/src/main.ts "$@"\n'
  await writeFile(join(release, 'node_modules/.bin/relay'), program, { mode: 0o755 })
  const write = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const paths: Record<string, string> = {
    '/opt/relay': join(folder, 'opt'),
    '/opt/relay/0.1.0/source': checkout,
    '/opt/relay/0.1.0/node': process.execPath,
    '/opt/temporal': await temporalServerFolder(tools),
    '/etc/sysusers.d/relay.conf': await write('sysusers.conf', 'u relay -\n'),
    '/etc/relay.env': await write('relay.env', ''),
  }
  for (const [name, unit] of Object.entries(units)) paths[`/etc/systemd/system/${name}.service`] = await write(name, unit)
  return paths
}

const booted = await bootSystemd(folder, await writeInstallation(), tools)
const reason = typeof booted === 'string' ? booted : undefined
const systemd = typeof booted === 'string' ? undefined : share(booted)

const systemctl = (...args: string[]) => systemd!.exec('systemctl', ...args)
const show = (unit: string, property: string) => systemctl('show', '--value', `--property=${property}`, unit)
const isReady = (port: string) =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )

// Only root on a Linux with systemd can boot one.
const describeWithSystemd = reason ? describe.skip : describe
describeWithSystemd(`the units of deploy/systemd${reason ? ` (${reason})` : ''}`, () => {
  test('start with their sandbox, deliver, come back after SIGKILL, and stop in their time', async () => {
    const names = ['relay-api', 'relay-worker']
    await using target = await startHttpTarget()
    await using installation = await createInstallation()
    const [port, probesPort, workerPort] = (await Promise.all([findFreePort(), findFreePort(), findFreePort()])).map(String) as [
      string,
      string,
      string,
    ]
    const ports = { RELAY_HOST: '127.0.0.1', RELAY_PORT: port, RELAY_PROBES_PORT: probesPort, RELAY_WORKER_PORT: workerPort }
    const lines = Object.entries({ ...installation.variables, ...ports }).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(variablesFile, lines.join(''))
    const untilReady = () =>
      until('the API and the worker are ready', async () => (await isReady(probesPort)) && (await isReady(workerPort)), Boolean, 110_000)
    await systemctl('enable', '--now', ...names)
    await untilReady()
    const client = await createWorkspaceClient(installation.db, `http://127.0.0.1:${port}`, 'acme/invoices')
    const { repoId } = await client.wire([`${target.origin}/documents`])
    await client.sendDocument(repoId, 'delivered')

    for (const name of names) {
      const pid = await show(name, 'MainPID')
      expect(await systemd!.exec('grep', '--extended-regexp', '^(Cap(Prm|Eff|Bnd)|NoNewPrivs)', `/proc/${pid}/status`)).toBe(
        ['CapPrm', 'CapEff', 'CapBnd'].map((set) => `${set}:\t${'0'.repeat(16)}\n`).join('') + 'NoNewPrivs:\t1',
      )
      expect(await systemd!.exec('stat', '--format=%U', `/proc/${pid}`)).toBe('relay')
      await systemctl('kill', '--signal=KILL', name)
      await until(
        `systemd has started ${name} again`,
        () => show(name, 'NRestarts'),
        (restarts) => Number(restarts) >= 1,
      )
    }
    await untilReady()
    await client.sendDocument(repoId, 'delivered')

    await systemctl('stop', ...names)
    // A process that systemd has to kill after TimeoutStopSec leaves the result "timeout".
    for (const name of names) expect([await show(name, 'ActiveState'), await show(name, 'Result')]).toEqual(['inactive', 'success'])
  }, 600_000)

  test('the unit of one machine starts everything, again after SIGKILL, and stops it in order', async () => {
    await using target = await startHttpTarget()
    await using database = await createTestDatabase()
    const [port, probesPort, workerPort] = (await Promise.all([findFreePort(), findFreePort(), findFreePort()])).map(String) as [
      string,
      string,
      string,
    ]
    const lines = Object.entries({
      ...relayVariables(database, { address: '' }),
      TEMPORAL_ADDRESS: '',
      RELAY_TEMPORAL: 'local',
      RELAY_TEMPORAL_SERVER_DIR: '/opt/temporal',
      RELAY_DATA_DIR: '/var/lib/relay',
      RELAY_HOST: '127.0.0.1',
      RELAY_PORT: port,
      RELAY_PROBES_PORT: probesPort,
      RELAY_WORKER_PORT: workerPort,
    }).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(variablesFile, lines.join(''))
    const untilReady = () => until('the relay is ready', () => isReady(probesPort), Boolean, 180_000)
    await systemctl('enable', '--now', 'relay')
    await untilReady()
    const client = await createWorkspaceClient(database.db, `http://127.0.0.1:${port}`, 'acme/machine')
    const { repoId } = await client.wire([`${target.origin}/documents`])
    await client.sendDocument(repoId, 'delivered')
    expect(await systemd!.exec('stat', '--format=%U %a', '/var/lib/relay', '/var/lib/relay/temporal/server.json')).toBe(
      'relay 700\nrelay 600',
    )
    await systemctl('kill', '--kill-whom=main', '--signal=KILL', 'relay')
    await until(
      'systemd has started it again',
      () => show('relay', 'NRestarts'),
      (restarts) => Number(restarts) >= 1,
    )
    await untilReady()
    await client.sendDocument(repoId, 'delivered')
    await systemctl('stop', 'relay')
    expect([await show('relay', 'ActiveState'), await show('relay', 'Result')]).toEqual(['inactive', 'success'])
    expect(await systemd!.exec('sh', '-c', 'pgrep --count temporal-server || true')).toBe('0')
  }, 600_000)
})
