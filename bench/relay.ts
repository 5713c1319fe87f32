// Measures the throughput of the relay: documents received over HTTP and delivered to a webhook. The baseline is the
// throughput of equally shaped workflows without work on the same Temporal server. Both are measured alternately,
// because the speed of a machine drifts. The ratio of the two is the result to compare.
import { execFileSync, fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Client, Connection } from '@temporalio/client'
import { Agent, request } from 'undici'
import { createKey } from '../src/commands/api-key.ts'
import { createWorkspace } from '../src/commands/workspace.ts'
import { readConfig } from '../src/config.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { startWebhookSink } from '../src/demo/webhook-sink.ts'
import { readReady, type Ready } from '../src/embedded/data-dir.ts'
import { newId } from '../src/ids.ts'
import { documentWorkflowId } from '../workflows/ids.ts'
import { cpuByProgramMs } from './processes.ts'

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    documents: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '5' },
  },
})
const documents = Number(options.documents)
const rounds = Number(options.rounds)
const inFlight = 50
const documentBytes = Buffer.alloc(10 * 1024, 'x')
const destinationCounts = [1, 3]

interface Measurement {
  documents_per_second: number
  /** CPU time of the relay, Temporal and PostgreSQL together, without the sender and the target. */
  cpu_ms_per_document: number | null
  /** CPU time by program. `node` is the relay or the baseline worker. */
  cpu_ms_by_program: Record<string, number>
}

const say = (line: string) => process.stderr.write(`${line}\n`)

const waitUntilReady = async (dataDir: string, server: ChildProcess): Promise<Ready> => {
  for (;;) {
    const ready = readReady(dataDir)
    if (ready) return ready
    if (server.exitCode !== null) throw new Error(`The server exited with ${server.exitCode}`)
    await delay(100)
  }
}

/** Runs the work for every item, at most `inFlight` at a time. */
const forEach = async <T>(items: T[], work: (item: T) => Promise<unknown>) => {
  const queue = [...items]
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item)
    }),
  )
}

const measure = async (roots: number[], work: () => Promise<void>): Promise<Measurement> => {
  const before = cpuByProgramMs(roots)
  const startedAt = performance.now()
  await work()
  const seconds = (performance.now() - startedAt) / 1000
  const after = cpuByProgramMs(roots)
  const byProgram = Object.entries(after ?? {}).map(([program, ms]) => [program, (ms - (before?.[program] ?? 0)) / documents] as const)
  return {
    documents_per_second: documents / seconds,
    cpu_ms_per_document: before && after ? byProgram.reduce((sum, [, ms]) => sum + ms, 0) : null,
    cpu_ms_by_program: Object.fromEntries(byProgram),
  }
}

/** Creates a workspace whose repository is connected to a number of webhooks. @returns its name */
const createConnectedWorkspace = async (db: Database, baseUrl: string, targetUrl: string, destinations: number): Promise<string> => {
  const slugs = `bench/to-${destinations}`
  await createWorkspace(db, slugs)
  const { key } = await createKey(db, { workspace: slugs, level: 'admin' })
  const post = async (path: string, body: object): Promise<string> => {
    const response = await request(`${baseUrl}/api/${slugs}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response.statusCode !== 201) throw new Error(await response.body.text())
    return ((await response.body.json()) as { data: { id: string } }).data.id
  }
  const repository = await post('/repositories', { repo_id: 'Z1', name: 'Bench' })
  const ids: string[] = []
  for (let index = 0; index < destinations; index += 1) {
    ids.push(
      await post('/destinations', { name: `target ${index}`, connector_type: 'webhook', config: { url: targetUrl }, credentials: {} }),
    )
  }
  await post('/connections', { name: 'all', repository_ids: [repository], destination_ids: ids })
  return slugs
}

const runRelay = async (client: Client, db: Database, baseUrl: string, slugs: string, agent: Agent) => {
  const docIds = Array.from({ length: documents }, () => newId())
  await forEach(docIds, async (docId) => {
    const response = await request(`${baseUrl}/receiver/${slugs}?create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`, {
      method: 'PUT',
      headers: { 'content-type': 'application/octet-stream' },
      body: documentBytes,
      dispatcher: agent,
    })
    await response.body.dump()
    if (response.statusCode !== 201) throw new Error(`create was answered ${response.statusCode}`)
  })
  // Wait until the outbox is empty. Only then all workflows are started and their results can be awaited.
  while ((await db('outbox').limit(1).select('key')).length > 0) await delay(20)
  const received = await db('documents')
    .whereIn('doc_id', docIds)
    .select<{ documentId: string; docId: string }[]>('id as documentId', 'doc_id as docId')
  await Promise.all(
    received.map((document) => {
      const workflowId = documentWorkflowId({ ...document, workspace: slugs, repoId: 'Z1', compId: 'data' })
      return client.workflow.getHandle(workflowId).result()
    }),
  )
  const delivered = await db('documents').whereIn('doc_id', docIds).where({ status: 'delivered' }).count({ total: '*' })
  if (Number(delivered[0]?.['total']) !== documents) throw new Error('Not every document was delivered')
}

const runBaseline = async (client: Client, destinations: number) => {
  const ids = Array.from({ length: documents }, () => `baseline/${newId()}`)
  await forEach(ids, (workflowId) => client.workflow.start('bareDocument', { workflowId, taskQueue: 'baseline', args: [destinations] }))
  await Promise.all(ids.map((workflowId) => client.workflow.getHandle(workflowId).result()))
}

const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

const summarize = (name: string, pairs: { ours: Measurement; floor: Measurement }[]) => {
  const medianOf = (measured: Measurement[]): Measurement => ({
    documents_per_second: median(measured.map((one) => one.documents_per_second)),
    cpu_ms_per_document: measured.some((one) => one.cpu_ms_per_document === null)
      ? null
      : median(measured.map((one) => one.cpu_ms_per_document!)),
    cpu_ms_by_program: Object.fromEntries(
      Object.keys(measured[0]!.cpu_ms_by_program).map((program) => [
        program,
        median(measured.map((one) => one.cpu_ms_by_program[program] ?? 0)),
      ]),
    ),
  })
  const ratios = pairs.map(({ ours, floor }) => ours.documents_per_second / floor.documents_per_second)
  return {
    case: name,
    ours: medianOf(pairs.map((pair) => pair.ours)),
    floor: medianOf(pairs.map((pair) => pair.floor)),
    ratio: { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) },
  }
}

const main = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-bench-'))
  const server = spawn(process.execPath, ['src/main.ts', 'server'], {
    cwd: new URL('..', import.meta.url),
    env: {
      ...process.env,
      RELAY_DATA_DIR: dataDir,
      RELAY_PORT: '0',
      RELAY_WORKER_PORT: '0',
      RELAY_HOST: '127.0.0.1',
      RELAY_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    const ready = await waitUntilReady(dataDir, server)
    const baselineWorker = fork(new URL('./baseline/worker.ts', import.meta.url), {
      env: { ...process.env, TEMPORAL_ADDRESS: ready.temporal_address },
    })
    await once(baselineWorker, 'message')
    const db = openDatabase({ ...readConfig(), DATABASE_URL: ready.database_url }, 'bench')
    const connection = await Connection.connect({ address: ready.temporal_address })
    const client = new Client({ connection })
    const agent = new Agent({ connections: inFlight })
    const sink = await startWebhookSink()
    // Both workers are counted in each measurement. The idle one uses almost no CPU time.
    const roots = [server.pid!, baselineWorker.pid!]

    const pairs = new Map(destinationCounts.map((count) => [count, [] as { ours: Measurement; floor: Measurement }[]]))
    const workspaces = new Map<number, string>()
    for (const count of destinationCounts) workspaces.set(count, await createConnectedWorkspace(db, ready.base_url, sink.url, count))
    // Round 0 is a warm-up and not counted.
    for (let round = 0; round <= rounds; round += 1) {
      for (const count of destinationCounts) {
        const floor = await measure(roots, () => runBaseline(client, count))
        const ours = await measure(roots, () => runRelay(client, db, ready.base_url, workspaces.get(count)!, agent))
        say(
          `${round === 0 ? 'warm-up' : `round ${round}`}, ${count} destination(s): relay ${ours.documents_per_second.toFixed(1)}/s, ` +
            `baseline ${floor.documents_per_second.toFixed(1)}/s, ratio ${(ours.documents_per_second / floor.documents_per_second).toFixed(2)}`,
        )
        if (round > 0) pairs.get(count)!.push({ ours, floor })
      }
    }

    const rows = [...pairs].map(([count, measured]) => summarize(`${count} destination${count === 1 ? '' : 's'}`, measured))
    const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
    const hardware = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`
    if (options.json) console.log(JSON.stringify({ name: 'relay', hardware, commit, rows }, null, 2))
    else {
      console.log(`${hardware}, commit ${commit}, ${rounds} rounds of ${documents} documents of ${documentBytes.length} bytes`)
      for (const { case: name, ours, floor, ratio } of rows) {
        console.log(
          `${name}: ${ours.documents_per_second.toFixed(1)} documents/s, baseline ${floor.documents_per_second.toFixed(1)}, ` +
            `ratio ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}); ` +
            `CPU ${ours.cpu_ms_per_document?.toFixed(0) ?? '?'} ms/document, baseline ${floor.cpu_ms_per_document?.toFixed(0) ?? '?'}`,
        )
      }
    }

    baselineWorker.disconnect()
    await Promise.all([once(baselineWorker, 'exit'), agent.close(), sink.stop(), connection.close(), db.destroy()])
  } finally {
    server.kill('SIGTERM')
    if (server.exitCode === null) await once(server, 'exit')
    rmSync(dataDir, { recursive: true, force: true })
  }
}

await main()
