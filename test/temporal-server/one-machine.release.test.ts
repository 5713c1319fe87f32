import { execFile, execFileSync } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { createKey } from '../../src/access/key-administration.ts'
import { createLog } from '../../src/base/log.ts'
import { readConfig } from '../../src/config/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { startPostgres } from '../../src/dev/postgres-server.ts'
import { readPidFile } from '../../src/programs/orphaned-processes.ts'
import { databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createFolder } from '../support/folder.ts'
import { startHttpTarget, type Arrival } from '../support/http-target.ts'
import { createRelayProcesses, relayVariables, routeToWebhook, type RelayProcess } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { takePort } from '../support/take-port.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { findPostgresPrograms, temporalServerFolder } from '../support/tools.ts'
import { until } from '../support/until.ts'

// The real Temporal server, as a child of `relay server`, on a PostgreSQL of its own, through the faults of one machine. The steps follow each
// other: an installation that is used, broken, backed up and moved out.

const run = promisify(execFile)
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const tools = { config: readConfig(), say: (line: string) => void process.stderr.write(`${line}\n`) }
const { path: folder } = share(await createFolder())
const postgresOptions = { dataDir: join(folder, 'postgres'), config: tools.config, log: createLog('silent'), say: () => {}, fast: true }
let postgres = await startPostgres(postgresOptions)
share(disposable({}, () => postgres.stop()))
const { url } = postgres
const password = new URL(url).password
const target = share(await startHttpTarget())
const dataDir = join(folder, 'data')
// A file for each start: what tells that a server is ready must not be that of the former one.
let starts = 0
const logFile = () => join(folder, `server-${starts}.log`)

const variables: Record<string, string> = {
  ...relayVariables({ url }, { address: '' }),
  TEMPORAL_ADDRESS: '',
  RELAY_TEMPORAL: 'local',
  RELAY_TEMPORAL_SERVER_DIR: await temporalServerFolder(tools),
  RELAY_DATA_DIR: dataDir,
  RECONCILE_INTERVAL_MS: '5000',
  DELIVERY_HEARTBEAT_TIMEOUT_MS: '6000',
}
const processes = share(createRelayProcesses(variables))
const relay = (...words: string[]) => run(process.execPath, [main, ...words], { env: { ...process.env, ...variables } })
const startServer = () => {
  starts += 1
  return processes.start('server', variables, { logFile: logFile() })
}
const temporalPid = async () => (await readPidFile(join(dataDir, 'temporal/temporal.pid')))!
const readPort = async (name: string) => Number(await readFile(join(dataDir, `temporal/${name}.port`), 'utf8'))

/** How the target answers each document, by its body: 200 by default. */
const answers = new Map<string, number>()
const accepted: string[] = []
target.answerWith(({ body }: Arrival, response: ServerResponse) => {
  const docId = body.toString()
  const answer = answers.get(docId) ?? 200
  if (answer === 200) accepted.push(docId)
  response.writeHead(answer).end()
})

const openDb = (address = url) => openDatabase(databaseConfig(address), 'test')
let db = openDb()
share(disposable({}, () => db.destroy()))
let server: RelayProcess
const retrying = { retry_initial_interval_seconds: 1, retry_max_interval_seconds: 2, max_retries: 100 }
const openRoute = () => routeToWebhook({ db, url } as Parameters<typeof routeToWebhook>[0], target.origin, retrying)
let route: Awaited<ReturnType<typeof openRoute>>
let sent = 0

/** Sends documents while something happens, one each 100 ms. A create that is refused is not sent again. @returns those that were acknowledged */
const sendDuring = async (work: () => Promise<unknown>): Promise<string[]> => {
  const acknowledged: string[] = []
  const end = new AbortController()
  const sending = (async () => {
    while (!end.signal.aborted) {
      const docId = `D${(sent += 1)}`
      await route.send(server, docId, docId).then(
        () => acknowledged.push(docId),
        () => {},
      )
      await delay(100)
    }
  })()
  try {
    await work()
  } finally {
    end.abort()
    await sending
  }
  return acknowledged
}

const untilAccepted = (docIds: string[]) =>
  until(
    'every acknowledged document has arrived',
    () => docIds.filter((docId) => !accepted.includes(docId)),
    (missing) => missing.length === 0,
    400_000,
  )
const isReady = () =>
  fetch(`${server.probesUrl}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
const untilReady = () => until('the relay is ready', isReady, Boolean, 400_000)
const untilNewTemporal = (former: number) =>
  until(
    'Temporal runs again',
    async () => ![undefined, former].includes(await readPidFile(join(dataDir, 'temporal/temporal.pid'))),
    Boolean,
    400_000,
  )
const log = () => readFile(logFile(), 'utf8')

test('two relay migrate at once prepare an empty database, and the server delivers its first document', async () => {
  const outputs = await Promise.all([relay('migrate'), relay('migrate')])
  for (const { stdout } of outputs) expect(stdout).toContain('The schemas of Temporal 1.31.2 are up to date.')
  expect(JSON.parse((await relay('migrate', '--json')).stdout)).toEqual({
    applied: [],
    search_attributes: false,
    temporal_version: '1.31.2',
  })
  server = await startServer()
  route = await openRoute()
  await untilAccepted(await sendDuring(() => delay(300)))
  await untilReady()
}, 900_000)

test('Temporal is on loopback, below the ports that it cannot store, and the password is in one file that only the owner reads', async () => {
  for (const service of ['frontend', 'history', 'matching', 'worker'])
    for (const name of [service, `${service}-membership`]) expect(await readPort(name)).toBeLessThan(32_768)
  const sockets = execFileSync('ss', ['-ltnpH'], { encoding: 'utf8' }).split('\n')
  const own = sockets.filter((line) => line.includes('"temporal-server"') && line.includes(`pid=`))
  for (const line of own) expect(line).toMatch(/ 127\.0\.0\.1:\d+ /)
  const configFile = join(dataDir, 'temporal/server.json')
  expect((await stat(configFile)).mode & 0o777).toBe(0o600)
  expect(await readFile(configFile, 'utf8')).toContain(password)
  expect(execFileSync('ps', ['-axww', '-o', 'args='], { encoding: 'utf8' })).not.toContain(password)
  expect(await log()).not.toContain(password)
})

test('a second relay on the database starts no second Temporal, and says why', async () => {
  const second = { ...process.env, ...variables, RELAY_DATA_DIR: join(folder, 'other') }
  const refused = await run(process.execPath, [main, 'server'], { env: second }).catch((thrown: { stderr: string }) => thrown)
  expect(refused.stderr).toMatch(
    /relay: Another relay runs Temporal on this database \(connected from 127\.0\.0\.1 since .*\)\. One database has one Temporal/,
  )
  expect(await isReady()).toBe(true)
}, 120_000)

test('Temporal that is killed is started again, and what arrives in between is delivered', async () => {
  const former = await temporalPid()
  const docIds = await sendDuring(async () => {
    process.kill(former, 'SIGKILL')
    await untilNewTemporal(former)
    await untilReady()
  })
  expect(docIds.length).toBeGreaterThan(0)
  await untilAccepted(docIds)
}, 900_000)

test('Temporal that is frozen is killed and started again, and what arrives in between is delivered', async () => {
  const former = await temporalPid()
  const docIds = await sendDuring(async () => {
    process.kill(former, 'SIGSTOP')
    await untilNewTemporal(former)
    await untilReady()
  })
  await untilAccepted(docIds)
  expect(await log()).toContain('Temporal has stopped to answer and is killed')
}, 900_000)

test('PostgreSQL that is restarted finds the same Temporal, which has kept its place', async () => {
  const pid = await temporalPid()
  const docIds = await sendDuring(async () => {
    await postgres.stop()
    await delay(3_000)
    postgres = await startPostgres(postgresOptions)
    await untilReady()
    await until('Temporal has its place again', async () => (await log()).includes('Temporal has its place again'), Boolean, 60_000)
  })
  await untilAccepted(docIds)
  expect(await temporalPid()).toBe(pid)
}, 900_000)

test('everything that is killed at once is started again, at another port if its own is taken', async () => {
  const port = await readPort('frontend')
  const docIds = await sendDuring(async () => {
    await delay(500)
    const temporal = await temporalPid()
    await server.kill()
    // It has ended with its parent, where the system can do that.
    try {
      process.kill(temporal, 'SIGKILL')
    } catch {}
  })
  share(await takePort(port))
  server = await startServer()
  expect(await readPort('frontend')).not.toBe(port)
  await untilAccepted(docIds)
}, 900_000)

test('one pg_dump under load is a consistent backup of the relay and of Temporal, also for a database of another name', async () => {
  const programs = await findPostgresPrograms(tools)
  const dump = join(folder, 'relay.dump')
  let before: string[] = []
  await sendDuring(async () => {
    before = await sendDuring(() => delay(1_000))
    await run(join(programs, 'pg_dump'), ['--format=custom', `--file=${dump}`, url])
  })
  await server.stop()
  const admin = new Client({ connectionString: postgres.adminUrl })
  await admin.connect()
  await admin.query('create database restored owner relay')
  await admin.end()
  const restoredUrl = new URL(url)
  restoredUrl.pathname = '/restored'
  await run(join(programs, 'pg_restore'), ['--no-owner', `--dbname=${restoredUrl.href}`, dump])
  // From here on, this is the installation.
  await db.destroy()
  db = openDb(restoredUrl.href)
  variables['DATABASE_URL'] = restoredUrl.href
  accepted.length = 0
  server = await startServer()
  await untilReady()
  const docIds = await sendDuring(() => delay(500))
  await untilAccepted(docIds)
  // What was open in the backup, and what the target has accepted and the worker has not noted yet.
  const countOpen = async () =>
    (await db('deliveries').whereNot({ status: 'delivered' }).count<{ count: number }[]>('* as count'))[0]!.count
  await until('every delivery of the backup is made', countOpen, (count) => count === 0, 400_000)
  const { rows } = await db.raw<{ rows: { count: number }[] }>('select count(*)::integer as count from documents where doc_id = any(?)', [
    before,
  ])
  expect(rows[0]!.count).toBe(before.length)
}, 900_000)

const openDeliveries = 1_000
const heldDeliveries = 300
let moved: { processes: RelayProcess[]; route: typeof route; docIds: string[] }

test('moving out to another Temporal loses none of 1,000 deliveries that wait, are retried or are held, and none arrives twice', async () => {
  const slow = { ...retrying, retry_initial_interval_seconds: 20, retry_max_interval_seconds: 20 }
  const database = { db, url: variables['DATABASE_URL']! } as Parameters<typeof routeToWebhook>[0]
  const [failing, paused] = [await routeToWebhook(database, target.origin, slow), await routeToWebhook(database, target.origin, slow)]
  await db('connections').where({ id: paused.connections['target']! }).update({ is_active: false })
  const docIds = Array.from({ length: openDeliveries }, (_, number) => `M${number}`)
  for (const docId of docIds) answers.set(docId, 503)
  const waiting = docIds.entries()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const [number, docId] of waiting) await (number < heldDeliveries ? paused : failing).send(server, docId, docId)
    }),
  )
  const countOf = async (status: string) => (await db('deliveries').where({ status }).count<{ count: number }[]>('* as count'))[0]!.count
  // Once ten attempts have failed, the circuit of the destination is open, and the others wait in line.
  const areOpen = async () =>
    (await countOf('held')) === heldDeliveries &&
    (await countOf('retrying')) >= 10 &&
    (await countOf('pending')) + (await countOf('retrying')) === openDeliveries - heldDeliveries
  await until('every delivery is open', areOpen, Boolean, 300_000)

  // What docs/one-machine.md says: stop, migrate at the new address, start.
  expect(await server.stop()).toBe(0)
  const temporal = share(await startTemporalServer())
  const { RELAY_TEMPORAL, ...others } = variables
  expect(RELAY_TEMPORAL).toBe('local')
  const outside = share(createRelayProcesses({ ...others, ...relayVariables(database, temporal) }))
  answers.clear()
  const [api, worker] = await Promise.all([outside.start('api'), outside.start('worker')])
  const { key } = await createKey(db, { workspace: `acme/${paused.workspaceSlug}`, level: 'admin' })
  const response = await fetch(`${api.baseUrl}/api/acme/${paused.workspaceSlug}/connections/${paused.connections['target']}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ is_active: true }),
  })
  expect(response.status).toBe(200)
  await until(
    'everything is delivered',
    async () =>
      (await countOf('delivered')) >= openDeliveries &&
      (await countOf('retrying')) + (await countOf('held')) + (await countOf('pending')) === 0,
    Boolean,
    600_000,
  )
  expect(accepted.filter((docId) => docId.startsWith('M')).toSorted()).toEqual(docIds.toSorted())
  await failing.send(api, 'M-LATER', 'M-LATER')
  await untilAccepted(['M-LATER'])
  moved = { processes: [api, worker], route: failing, docIds: [...docIds, 'M-LATER'] }
}, 1_200_000)

test('moving back delivers nothing twice, with the workflows that were left behind, and with new schemas after they were dropped', async () => {
  for (const process of moved.processes) expect(await process.stop()).toBe(0)
  for (const docId of ['M-BACK', 'M-DROPPED']) {
    server = await startServer()
    await untilReady()
    await moved.route.send(server, docId, docId)
    await untilAccepted([docId])
    // Also what the workflows do that the first move has left behind.
    await delay(10_000)
    moved.docIds.push(docId)
    expect(accepted.filter((each) => each.startsWith('M')).toSorted()).toEqual(moved.docIds.toSorted())
    expect(await server.stop()).toBe(0)
    await db.raw('drop schema temporal, temporal_visibility cascade')
  }
}, 1_200_000)
