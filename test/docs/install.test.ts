import { execFile, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { readConfig } from '../../src/config/config.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'

const page = await readFile(new URL('../../docs/install.md', import.meta.url), 'utf8')
const blocks = [...page.matchAll(/^```ini\n(.*?)^```$/gms)].map(([, content]) => content!)
const [variables = ''] = blocks
const unitNames = ['relay-api', 'relay-worker', 'relay']
const oneMachine = await readFile(new URL('../../docs/one-machine.md', import.meta.url), 'utf8')
const units = await Promise.all(unitNames.map((name) => readFile(new URL(`../../deploy/systemd/${name}.service`, import.meta.url), 'utf8')))
const { path: folder } = share(await createFolder())
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

test('the pages copy the units out of the package, and they differ in little', () => {
  for (const [index, name] of unitNames.entries()) {
    expect(index < 2 ? page : oneMachine).toContain(
      `/opt/relay/current/node_modules/document-relay/deploy/systemd/${name}.service /etc/systemd/system\n`,
    )
  }
  const [api, worker, all] = units.map((unit) => unit.trim().split('\n'))
  expect(worker!.filter((line) => !api!.includes(line))).toEqual([
    'Description=Document Relay: worker',
    'ExecStart=/opt/relay/current/node_modules/.bin/relay worker',
    'CPUWeight=50',
  ])
  // SIGTERM reaches the server only, which stops its processes in order.
  expect(all!.filter((line) => !api!.includes(line))).toEqual([
    'Description=Document Relay: everything on one machine',
    'After=network-online.target postgresql.service',
    'ExecStart=/opt/relay/current/node_modules/.bin/relay server',
    'KillMode=mixed',
    'TimeoutStopSec=90',
    'StateDirectory=relay',
    'StateDirectoryMode=0700',
  ])
})

test('the relay accepts the file of variables, and the units leave it the time to stop', () => {
  const given = parseEnv(variables.replace('KEY', Buffer.alloc(32).toString('base64'))) as Record<string, string>
  const config = readConfig(given)
  expect(Object.keys(given)).toHaveLength(7)
  const closingMs = 10_000
  const stopMs = config.RELAY_DRAIN_MS + config.RELAY_SHUTDOWN_GRACE_MS + config.OTEL_EXPORTER_OTLP_TIMEOUT + closingMs
  for (const unit of units) expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)![1]) * 1_000).toBeGreaterThanOrEqual(stopMs)
})

test('the shell of the page reads the values of the file as --env-file does, also an address with an ampersand', async () => {
  const file = join(folder, 'relay.env')
  const content = variables.replace("/relay'", "/relay?sslmode=verify-full&sslrootcert=/etc/ssl/$name;'")
  await writeFile(file, content)
  const [, source] = /^```sh\n(set -o allexport; .*)\n```$/m.exec(page)!
  const program = `${source!.replace('/etc/relay.env', file)}; exec "${process.execPath}" --print 'JSON.stringify(process.env)'`
  const { stdout } = await promisify(execFile)('sh', ['-euc', program], { env: {} })
  const expected = parseEnv(content)
  expect(expected.DATABASE_URL).toMatch(/&.*\$name;$/)
  expect(JSON.parse(stdout)).toMatchObject(expected)
})

// macOS has no systemd, nor do some containers.
const describeWithSystemd = hasSystemd ? describe : describe.skip
describeWithSystemd('systemd', () => {
  test('finds no fault in the units', async () => {
    for (const [index, unit] of units.entries()) {
      // systemd demands that the command exists. Only its program is replaced.
      const file = join(folder, `relay-${index}.service`)
      await writeFile(file, unit.replace('/opt/relay/current/node_modules/.bin/relay', process.execPath).replace(/^User=.*$/m, ''))
      const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file])
      expect(`${stdout}${stderr}`.split('\n').filter((line) => line.includes(file))).toEqual([])
    }
  })
})
