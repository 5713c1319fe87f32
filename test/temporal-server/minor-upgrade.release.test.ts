import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client as TemporalClient, Connection } from '@temporalio/client'
import { Client } from 'pg'
import { createKey } from '../../src/access/key-administration.ts'
import { createLog } from '../../src/base/log.ts'
import { readConfig } from '../../src/config/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { startPostgres } from '../../src/dev/postgres-server.ts'
import { ownTemporal } from '../../src/temporal-server/ownership.ts'
import { prepareSchemas } from '../../src/temporal-server/schemas.ts'
import { startTemporalServer } from '../../src/temporal-server/server.ts'
import { databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createFolder } from '../support/folder.ts'
import { startHttpTarget, type Arrival } from '../support/http-target.ts'
import { createRelayProcesses, relayVariables, routeToWebhook } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { findFormerTemporalServer, findPostgresPrograms, temporalServerFolder } from '../support/tools.ts'
import { until } from '../support/until.ts'

// A release of the relay that brings the next minor version of Temporal: two real versions, one after the other, on one PostgreSQL. The steps
// follow each other: an installation of the former version is upgraded, goes one step back, and forward again.

const run = promisify(execFile)
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const tools = { config: readConfig(), say: (line: string) => void process.stderr.write(`${line}\n`) }
const { path: folder } = share(await createFolder())
const log = createLog('silent')
const postgres = await startPostgres({ dataDir: join(folder, 'postgres'), config: tools.config, log, say: () => {}, fast: true })
share(disposable({}, () => postgres.stop()))
const { url } = postgres
const target = share(await startHttpTarget())
const former = await findFormerTemporalServer(tools)
const dataDir = join(folder, 'data')

const variables: Record<string, string> = {
  ...relayVariables({ url }, { address: '' }),
  TEMPORAL_ADDRESS: '',
  RELAY_TEMPORAL: 'local',
  RELAY_TEMPORAL_SERVER_DIR: await temporalServerFolder(tools),
  RELAY_DATA_DIR: dataDir,
  RELAY_SHUTDOWN_GRACE_MS: '1000',
  DELIVERY_HEARTBEAT_TIMEOUT_MS: '6000',
}
const processes = share(createRelayProcesses({}))
const relay = (verb: string, more: Record<string, string>) =>
  run(process.execPath, [main, verb], { env: { ...process.env, ...variables, ...more } })

/** How the target answers each document, by its body: 200 by default. */
const answers = new Map<string, number | 'hang'>()
const accepted: string[] = []
const hanging = new Set<string>()
target.answerWith(({ body }: Arrival, response: ServerResponse) => {
  const docId = body.toString()
  const answer = answers.get(docId) ?? 200
  if (answer === 200) accepted.push(docId)
  if (answer === 'hang') hanging.add(docId)
  else response.writeHead(answer).end()
})

const db = openDatabase(databaseConfig(url), 'test')
share(disposable({}, () => db.destroy()))

interface Installation {
  api: { baseUrl: string }
  temporal: TemporalClient
  stop(): Promise<void>
}
let running: Installation | undefined
share(disposable({}, () => running?.stop()))

const connect = async (address: string) => {
  const connection = await Connection.connect({ address })
  return { temporal: new TemporalClient({ connection }), close: () => connection.close() }
}

/** Starts the former Temporal as `relay server` starts its own, and a relay on it. */
const startFormer = async (): Promise<Installation> => {
  const config = readConfig({ ...process.env, ...variables })
  await prepareSchemas(config, former)
  const ownership = await ownTemporal(config, log)
  const server = await startTemporalServer({ folder: join(dataDir, 'temporal'), config, programs: former, ownership, log, say: () => {} })
  const outside = { ...variables, RELAY_TEMPORAL: '', TEMPORAL_ADDRESS: server.address }
  await relay('migrate', outside)
  const [api, worker] = await Promise.all([processes.start('api', outside), processes.start('worker', outside)])
  const { temporal, close } = await connect(server.address)
  const stop = async () => {
    await close()
    for (const each of [api, worker]) expect(await each.stop()).toBe(0)
    await server.stop()
    await ownership.release()
  }
  return { api, temporal, stop }
}

let starts = 0
const startRelease = async (): Promise<Installation> => {
  starts += 1
  const api = await processes.start('server', variables, { logFile: join(folder, `server-${starts}.log`) })
  const { temporal, close } = await connect(`127.0.0.1:${await readFile(join(dataDir, 'temporal/frontend.port'), 'utf8')}`)
  const stop = async () => {
    await close()
    expect(await api.stop()).toBe(0)
  }
  return { api, temporal, stop }
}

const exchange = async (start: () => Promise<Installation>): Promise<void> => {
  const last = running
  running = undefined
  await last?.stop()
  running = await start()
}

const versions = async (): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { version: string }[] }>(
    `select obj_description('temporal'::regnamespace, 'pg_namespace') as version
      union all select curr_version from temporal.schema_version
      union all select curr_version from temporal_visibility.schema_version`,
  )
  return rows.map(({ version }) => version)
}

interface WorkflowRun {
  workflowId: string
  runId: string
}
const listRuns = async (query: string): Promise<WorkflowRun[]> => {
  const runs: WorkflowRun[] = []
  for await (const { workflowId, runId } of running!.temporal.workflow.list({ query })) runs.push({ workflowId, runId })
  return runs
}
const listSchedules = async (): Promise<string[]> => {
  const ids: string[] = []
  for await (const { scheduleId } of running!.temporal.schedule.list()) ids.push(scheduleId)
  return ids.toSorted()
}

const settings = { retry_initial_interval_seconds: 20, retry_max_interval_seconds: 20, max_retries: 100 }
const openRoute = () => routeToWebhook({ db, url } as Parameters<typeof routeToWebhook>[0], target.origin, settings)
type Route = Awaited<ReturnType<typeof openRoute>>
const routes = {} as Record<'good' | 'down' | 'slow' | 'refused' | 'held', Route>
const sent: string[] = []

const send = async (name: keyof typeof routes, count: number, answer: number | 'hang' = 200): Promise<string[]> => {
  const docIds = Array.from({ length: count }, (_, number) => `${name}-${sent.length + number}`.toUpperCase())
  for (const docId of docIds) {
    answers.set(docId, answer)
    await routes[name].send(running!.api, docId, docId)
  }
  sent.push(...docIds)
  return docIds
}

const call = async (name: keyof typeof routes, method: string, path: string, body?: object): Promise<void> => {
  const workspace = `acme/${routes[name].workspaceSlug}`
  const { key } = await createKey(db, { workspace, level: 'admin' })
  const response = await fetch(`${running!.api.baseUrl}/api/${workspace}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(response.status).toBeLessThan(300)
}

const statuses = async (name: keyof typeof routes): Promise<Record<string, number>> => {
  const rows = await db('deliveries')
    .where({ workspace_id: routes[name].workspaceId })
    .groupBy('status')
    .select<{ status: string; count: number }[]>('status', db.raw('count(*)::integer as count'))
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
}
const untilStatuses = (name: keyof typeof routes, isDone: (counts: Record<string, number>) => boolean) =>
  until(`the deliveries of ${name} are there`, () => statuses(name), isDone, 400_000)

const expectEachOnce = async (): Promise<void> => {
  await until(
    'everything has arrived',
    () => sent.filter((docId) => !accepted.includes(docId)),
    (missing) => missing.length === 0,
    600_000,
  )
  for (const name of Object.keys(routes) as (keyof typeof routes)[])
    await untilStatuses(name, (counts) => Object.keys(counts).join() === 'delivered')
  expect(accepted.toSorted()).toEqual(sent.toSorted())
}

const isOpen = "WorkflowType = 'delivery' AND ExecutionStatus = 'Running'"
const isCompleted = "WorkflowType = 'delivery' AND ExecutionStatus = 'Completed'"

/** Waits until these runs have made the deliveries, and no other runs of their workflows. */
const untilCompleted = async (runs: WorkflowRun[]): Promise<void> => {
  const workflows = new Set(runs.map(({ workflowId }) => workflowId))
  const runIds = (all: WorkflowRun[]) => all.map(({ runId }) => runId).toSorted()
  const completed = async () => runIds((await listRuns(isCompleted)).filter(({ workflowId }) => workflows.has(workflowId)))
  await until('the runs have completed', completed, (found) => found.join() === runIds(runs).join())
}

let before: { open: WorkflowRun[]; closed: WorkflowRun[]; schedules: string[] }

test('the former version of Temporal runs with deliveries that are made, wait for a retry, wait in line, are under way, are held and have failed', async () => {
  await exchange(startFormer)
  expect(await versions()).toEqual([`Temporal ${former.version}`, '1.18', '1.13'])
  for (const name of ['good', 'down', 'slow', 'refused', 'held'] as const) routes[name] = await openRoute()
  await db('connections').where({ id: routes.held.connections['target']! }).update({ is_active: false })
  await send('good', 20)
  await send('down', 40, 503)
  const slow = await send('slow', 3, 'hang')
  await send('refused', 3, 400)
  await send('held', 5)
  await untilStatuses('good', ({ delivered }) => delivered === 20)
  await untilStatuses('refused', ({ failed }) => failed === 3)
  await untilStatuses('held', ({ held }) => held === 5)
  // Once ten attempts have failed, the circuit of the destination is open, and the others wait in line.
  await untilStatuses('down', ({ retrying = 0, pending = 0 }) => retrying >= 10 && retrying + pending === 40)
  await until('attempts are under way', () => slow.every((docId) => hanging.has(docId)), Boolean, 60_000)
  const read = async () => ({
    open: await listRuns(isOpen),
    closed: await listRuns(isCompleted),
    schedules: await listSchedules(),
  })
  before = await until('the lists show it', read, ({ open, closed }) => closed.length >= 20 && open.length >= 40 + 3 + 3, 60_000)
}, 900_000)

/** Returns the whole database as SQL. The lines that newer versions write around it are random. */
const dumpOf = async (database: string): Promise<string> => {
  const { stdout } = await run(join(await findPostgresPrograms(tools), 'pg_dump'), [database], { maxBuffer: 64 * 1024 * 1024 })
  return stdout.replaceAll(/^\\(un)?restrict .*$/gm, '')
}

test('a database of two minor versions before is refused, and nothing in it is changed', async () => {
  const admin = new Client({ connectionString: postgres.adminUrl })
  await admin.connect()
  await admin.query('create database skipped owner relay')
  await admin.end()
  const skipped = new URL(url)
  skipped.pathname = '/skipped'
  // 1.29 has the same schema of the state, and version 1.9 of that of the lists, which the tool of 1.30 makes as well.
  const sqlTool = join(folder, 'temporal-sql-tool-1.29')
  const script = `#!/bin/sh\ncase "$*" in update-schema*visibility) set -- "$@" --version 1.9;; esac\nexec '${former.sqlTool}' "$@"\n`
  await writeFile(sqlTool, script, { mode: 0o755 })
  const config = readConfig({ ...process.env, ...variables, DATABASE_URL: skipped.href })
  await prepareSchemas(config, { server: '', sqlTool, version: '1.29.1' })
  const dump = await dumpOf(skipped.href)
  expect(dump).toContain('\t1.9\t')

  for (const verb of ['server', 'migrate']) {
    const more = { DATABASE_URL: skipped.href, RELAY_DATA_DIR: join(folder, 'skipped') }
    const refused = await relay(verb, more).catch((thrown: { stderr: string }) => thrown)
    expect(refused.stderr).toContain(
      'relay: Temporal 1.29.1 has written this database, and this relay brings 1.31.2. Temporal takes every minor version in turn: run releases ' +
        'of the relay with the versions between them first.',
    )
    expect(await dumpOf(skipped.href)).toBe(dump)
  }
}, 300_000)

test('the release with the next version updates the schemas, and every open delivery goes on in its workflow and arrives once', async () => {
  expect(accepted).toHaveLength(20)
  await exchange(startRelease)
  expect(await versions()).toEqual(['Temporal 1.31.2', '1.19', '1.14'])
  answers.clear()
  await call('held', 'PATCH', `/connections/${routes.held.connections['target']}`, { is_active: true })
  const failed = await db('documents').where({ workspace_id: routes.refused.workspaceId }).select<{ id: string }[]>('id')
  for (const { id } of failed) await call('refused', 'POST', `/documents/${id}/retry`)
  await send('good', 3)
  await expectEachOnce()
  await untilCompleted(before.open)
}, 1_200_000)

test('workflows that were closed before are still found and shown, and the schedules are there', async () => {
  const { workspaceSlug } = routes.good
  const found = await listRuns(`${isCompleted} AND RelayWorkspace = 'acme/${workspaceSlug}'`)
  expect(found).toEqual(expect.arrayContaining(before.closed))
  for (const { workflowId, runId } of before.closed) {
    const { events } = await running!.temporal.workflow.getHandle(workflowId, runId).fetchHistory()
    expect(events?.at(-1)?.workflowExecutionCompletedEventAttributes).toBeTruthy()
  }
  expect(before.schedules.length).toBeGreaterThan(0)
  expect(await listSchedules()).toEqual(before.schedules)
  for (const id of before.schedules) {
    const { info } = await running!.temporal.schedule.getHandle(id).describe()
    expect(info.nextActionTimes.length).toBeGreaterThan(0)
  }
}, 120_000)

test('one step back: the former version goes on with what the later one has begun, and the next upgrade with what it leaves', async () => {
  for (const [start, version] of [
    [startFormer, former.version],
    [startRelease, '1.31.2'],
  ] as const) {
    await send('down', 2, 503)
    await untilStatuses('down', ({ retrying }) => retrying === 2)
    const open = await until(
      'the lists show it',
      () => listRuns(isOpen),
      ({ length }) => length === 2,
    )
    await exchange(start)
    expect(await versions()).toEqual([`Temporal ${version}`, '1.19', '1.14'])
    answers.clear()
    await send('good', 1)
    await expectEachOnce()
    await untilCompleted(open)
  }
}, 1_200_000)
