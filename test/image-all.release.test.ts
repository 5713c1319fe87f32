import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { createLog } from '../src/base/log.ts'
import { readConfig } from '../src/config/config.ts'
import { openDatabase } from '../src/db/database.ts'
import { startPostgres } from '../src/dev/postgres-server.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { findTemporalUi, temporalServerVersion, temporalUiVersion } from '../src/temporal-server/find-programs.ts'
import { databaseConfig } from './support/database.ts'
import { disposable } from './support/disposable.ts'
import { createFolder } from './support/folder.ts'
import { startHttpTarget } from './support/http-target.ts'
import { buildImageOfAll, runInImage } from './support/image/image.ts'
import { relayVariables, routeToWebhook } from './support/relay-process.ts'
import { share } from './support/share.ts'
import { temporalServerFolder } from './support/tools.ts'
import { until } from './support/until.ts'

// The target `all` of the Dockerfile, by its steps: the programs of Temporal are those that the tests have.

const config = readConfig()
const say = (line: string) => void process.stderr.write(`${line}\n`)
const { path: folder } = share(await createFolder())
const postgres = await startPostgres({ dataDir: folder, config, log: createLog('silent'), say: () => {}, fast: true })
share(disposable({}, () => postgres.stop()))
const db = openDatabase(databaseConfig(postgres.url), 'test')
share(disposable({}, () => db.destroy()))
const ui = dirname(await findTemporalUi({ config, say }))
const image = share(disposable(await buildImageOfAll(await temporalServerFolder({ config, say }), ui), (each) => each.remove()))

test('has the programs of Temporal in the version of the relay, and the rest of the image', async () => {
  for (const program of ['temporal-server', 'temporal-sql-tool'])
    expect(await runInImage(image, [program, '--version'])).toEqual({ status: 0, output: expect.stringContaining(temporalServerVersion) })
  expect(await runInImage(image, ['ui-server', '--version'])).toEqual({ status: 0, output: expect.stringContaining(temporalUiVersion) })
  expect(image.config).toMatchObject({
    User: '1000:1000',
    Entrypoint: ['relay'],
    Cmd: ['server'],
    Env: expect.arrayContaining(['RELAY_TEMPORAL=local', 'RELAY_PROBES_HOST=0.0.0.0']),
    Labels: { 'org.opencontainers.image.licenses': 'Apache-2.0 AND MIT' },
  })
})

test('delivers with nothing but PostgreSQL, as its user, with a root file system that it cannot write', async () => {
  await using target = await startHttpTarget()
  const ports = {
    RELAY_PORT: String(await findFreePort()),
    RELAY_PROBES_PORT: String(await findFreePort()),
    RELAY_WORKER_PORT: String(await findFreePort()),
    RELAY_TEMPORAL_UI: `127.0.0.1:${await findFreePort()}`,
  }
  // The role of the database owns it, and has no other rights.
  const variables = { ...relayVariables(postgres, { address: '' }), ...ports, RELAY_HOST: '127.0.0.1' }
  const { file, args, options } = image.command('relay', image.config.Cmd, { ...variables, RELAY_DATA_DIR: join(image.root, 'tmp/relay') })
  const relay = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const output of [relay.stdout, relay.stderr]) output.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const exited = once(relay, 'exit') as Promise<[number | null]>
  const health = [...image.config.Healthcheck.Test.slice(1), '/readyz']
  const isReady = async () => {
    if (relay.exitCode !== null) throw new Error(log)
    return (await runInImage(image, health, ports)).status === 0
  }
  try {
    await until('the relay is ready', isReady, Boolean, 240_000)
    const route = await routeToWebhook({ db, url: postgres.url } as Parameters<typeof routeToWebhook>[0], target.origin)
    await route.send({ baseUrl: `http://127.0.0.1:${ports.RELAY_PORT}` }, 'D1')
    await route.untilDelivered(1)
    expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello'])
    expect((await fetch(`http://${ports.RELAY_TEMPORAL_UI}/namespaces/default/workflows`)).status).toBe(200)
    relay.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  } finally {
    relay.kill('SIGKILL')
  }
}, 600_000)
