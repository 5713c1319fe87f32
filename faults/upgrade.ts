import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { UserError } from '../src/base/errors.ts'
import { runProgram } from '../src/programs/programs.ts'
import { until } from '../test/support/until.ts'
import { programOf, type Build } from './build.ts'
import { areSettled, check, type Counts } from './check.ts'
import { startHaproxy, type Haproxy, type ProxyCounters } from './haproxy.ts'
import { startInstallation, type Installation } from './installation.ts'
import { createLoad, type Load, type Workspace } from './load.ts'
import { openWaits, waitVariables } from './open-waits.ts'
import type { Kind } from './targets.ts'

export interface Upgrade {
  /** Names of the migrations that `relay migrate` of the new version applied while the old version was running. */
  migrations: string[]
  counts: Counts
  findings: string[]
  proxy: ProxyCounters
  /** What became of the deliveries that waited, one or more in each kind of wait, while the processes were replaced. */
  waited: { sent: number; missing: string[]; repeated: string[] }
  /** Workflows of documents and deliveries that are open when everything has arrived: their workers cannot continue them. */
  openWorkflows: number
  /** Workflow tasks that a worker could not continue. */
  failedTasks: number
  /** Requests to the management API. */
  reads: { answered: number; failures: string[] }
  /** Versions that the proxy has reached, in the order of their first answer. */
  versions: string[]
  /** Version of each process at the end. */
  finalVersions: string[]
  /** Ends of processes that the upgrade did not cause. */
  crashes: number
  logs: string[]
}

export const replicas = 3
const kinds: Kind[] = ['webhook']
export const settleLimitMs = 240_000
// As long as HAProxy takes to notice, twice: deploy/haproxy/haproxy.cfg.
export const drainMs = 2_500

// On a busy machine, the short times of the other rows would repeat attempts, and ask Temporal about every delivery again and again.
const usualTimes = {
  DELIVERY_HEARTBEAT_TIMEOUT_MS: '30000',
  RECONCILE_INTERVAL_MS: '60000',
}

/**
 * Returns the migrations that two builds have under the same name and with another text. No migration of a release is ever changed, but
 * those of the next release are until it is made: a database of one build is none of the other then.
 */
export const changedMigrations = async (from: Build, to: Build): Promise<string[]> => {
  const folderOf = ({ folder }: Build) => join(folder, 'dist/migrations')
  const textOf = (build: Build, name: string) => readFile(join(folderOf(build), name), 'utf8').catch(() => undefined)
  const changed: string[] = []
  for (const name of (await readdir(folderOf(from))).filter((each) => each.endsWith('.sql'))) {
    if ((await textOf(from, name)) !== (await textOf(to, name))) changed.push(name)
  }
  return changed
}

/**
 * Starts three API processes behind HAProxy and three workers of one version, and replaces each by one of the next version while source
 * systems send documents and others read them.
 */
export const runUpgrade = async (
  { from, to }: { from: Build; to: Build },
  { haproxyProgram, say }: { haproxyProgram: string; say: (line: string) => void },
): Promise<Upgrade> => {
  const changed = await changedMigrations(from, to)
  if (changed.length > 0) {
    throw new UserError(
      `The builds have different migrations of the same name: ${changed.join(', ')}. No release has changed a migration, so this is no upgrade ` +
        'that will ever be made. Choose a commit since the last change: git log migrations/',
    )
  }
  const extraVariables = { RELAY_TRUST_PROXY: 'true', RELAY_DRAIN_MS: String(drainMs), ...usualTimes, ...waitVariables }
  const installation = await startInstallation({ say, program: programOf(from), extraVariables, replicas, kinds })
  let haproxy: Haproxy | undefined
  try {
    const ports = installation.baseUrls.map((url) => Number(new URL(url).port))
    haproxy = await startHaproxy(haproxyProgram, installation.workDir, ports)
    return await upgrade(installation, haproxy, to, say)
  } finally {
    // At once, because each of them drains.
    await Promise.all(installation.processes.map((one) => one.stop()))
    await haproxy?.stop()
    await installation.stop()
  }
}

const upgrade = async (installation: Installation, haproxy: Haproxy, to: Build, say: (line: string) => void): Promise<Upgrade> => {
  const workspace = await installation.createWorkspace(`upgrade-${Date.now().toString(36)}`, kinds, { configs: {}, settings: {} })
  const load = createLoad({
    seed: 'upgrade',
    baseUrls: [haproxy.url],
    workspace,
    signer: installation.signer,
    clients: 1,
    intervalMs: 1_000,
    largestBytes: 1024 * 1024,
  })
  const waiting = await openWaits(installation, haproxy.url)
  const clients = startClients(haproxy.url, workspace, load)
  try {
    load.start()
    await until('documents are acknowledged', () => load.sent.filter(({ outcome }) => outcome === 'acknowledged').length >= 5)

    say('Migrating with the new version.')
    const output = await runProgram(process.execPath, [programOf(to), 'migrate', '--json', '--without-search-attributes'], {
      env: { ...installation.config.childEnvironment, ...installation.variablesOf(installation.processes[0]!) },
      timeoutMs: 120_000,
    })
    const { applied } = JSON.parse(output) as { applied: string[] }
    // The old version with the new schema.
    await pause(2_000)

    await replaceOneByOne(installation, haproxy, programOf(to), say)
    await pause(1_000)
    say('Ending every wait, and waiting until every document is delivered.')
    const waited = await waiting.end()
    await load.stop()
    const reads = await clients.stop()

    const acknowledged = load.sent.filter(({ outcome }) => outcome === 'acknowledged').map(({ docId }) => docId)
    for (const deadline = Date.now() + settleLimitMs; Date.now() < deadline; await pause(250)) {
      if (await areSettled(installation, workspace.id, acknowledged)) break
    }
    const targets = kinds.map((kind) => installation.targets.all[kind])
    const result = await check(installation, workspace.id, load.sent, targets, { failed: new Set() })
    const logs = await Promise.all(installation.processes.map((one) => one.log()))
    return {
      migrations: applied,
      ...result,
      waited,
      openWorkflows: await countOpenWorkflows(installation),
      failedTasks: logs.reduce((sum, log) => sum + log.split('\n').filter((line) => failedTask.test(line)).length, 0),
      proxy: await haproxy.counters(),
      reads: { answered: reads.answered, failures: reads.failures },
      versions: reads.versions,
      finalVersions: logs.map(versionIn),
      crashes: installation.processes.reduce((sum, one) => sum + one.crashes(), 0),
      logs,
    }
  } finally {
    await clients.stop()
    await waiting.stop()
    await load.stop()
    await load.close()
  }
}

const refusedPauseMs = 1_000

// What the SDK and the relay log about a workflow that the code of a worker cannot continue.
const failedTask = /TMPRL1100|Nondeterminism|is unknown to this version/

// Workflows end after their documents, and Temporal lists that later.
const closingLimitMs = 30_000

const countOpenWorkflows = async ({ config, temporal, temporalProgram }: Installation): Promise<number> => {
  const query = `ExecutionStatus = 'Running' and WorkflowType in ('document', 'delivery')`
  const command = ['workflow', 'count', '--query', query, '--output', 'json', '--address', `127.0.0.1:${temporal.port()}`]
  for (const deadline = Date.now() + closingLimitMs; ; await pause(500)) {
    const output = await runProgram(temporalProgram, command, { env: config.childEnvironment, timeoutMs: 30_000 })
    const count = Number((JSON.parse(output) as { count?: string }).count ?? 0)
    if (count === 0 || Date.now() > deadline) return count
  }
}

/** Replaces the API processes and the workers by those of another program, one of each at a time. */
export const replaceOneByOne = async (
  { processes, variablesOf }: Pick<Installation, 'processes' | 'variablesOf'>,
  haproxy: Haproxy,
  program: string,
  say: (line: string) => void,
): Promise<void> => {
  for (let index = 0; index < replicas; index += 1) {
    say(`Replacing the API process and the worker ${index + 1} of ${replicas}.`)
    const pair = processes.filter(({ name }) => name.endsWith(`-${index}`))
    await Promise.all(
      pair.map(async (one) => {
        await one.replace(variablesOf(one), program)
        await one.ready()
      }),
    )
    await until('the proxy sends requests to the new process', () => haproxy.isUp(index))
  }
}

/** Returns the version that a process has stated at its last start. */
export const versionIn = (log: string): string => {
  const line = log.split('\n').findLast((one) => one.includes('is ready"'))
  return (JSON.parse(line ?? '{}') as { version?: string }).version ?? 'unknown'
}

/** Starts clients that read with the management API, and clients whose uploads take seconds: one upload or more for each process. */
export const startClients = (baseUrl: string, workspace: Workspace, load: Load) => {
  const stopped = new AbortController()
  const agent = new Agent({ connections: 16 })
  const versions = new Set<string>()
  const failures: string[] = []
  let answered = 0

  const read = async (path: string) => {
    try {
      const { statusCode, body } = await request(baseUrl + path, {
        headers: { authorization: `Bearer ${workspace.key}` },
        dispatcher: agent,
      })
      const { info } = (await body.json()) as { info?: { version: string } }
      if (info) versions.add(info.version)
      answered += 1
      if (statusCode !== 200) failures.push(`${path}: ${statusCode}`)
    } catch (thrown) {
      failures.push(`${path}: ${(thrown as Error).message}`)
    }
  }
  const runReader = async () => {
    const paths = [`${workspace.apiPath}/documents`, `${workspace.apiPath}/destinations`, `${workspace.apiPath}/requests`, '/openapi.json']
    for (let count = 0; !stopped.signal.aborted; count += 1) {
      await read(paths[count % paths.length]!)
      await pause(50)
    }
  }
  const runSlowClient = async () => {
    while (!stopped.signal.aborted) {
      const { outcome } = await load.create({ sizeBytes: 160 * 1024, signed: false, slowMs: 3_000 })
      // A relay that is away refuses at once.
      if (outcome !== 'acknowledged') await pause(refusedPauseMs)
    }
  }
  const running = Promise.all([runReader(), runReader(), ...Array.from({ length: replicas }, runSlowClient)])
  const end = async () => {
    stopped.abort()
    await running
    await agent.close()
    return { answered, failures, versions: [...versions] }
  }
  let ended: ReturnType<typeof end> | undefined
  return {
    /** What has failed so far. */
    failures,
    /** May be called again, and returns the same then. */
    stop: () => (ended ??= end()),
  }
}
