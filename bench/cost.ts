// Measures what it costs to run the relay with each Temporal server that it can have: the dev server, the server of one machine, and a cluster of
// four services. `relay server` and everything that it needs run on this machine, one form after the other in one session.
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import { newId } from '../src/base/ids.ts'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import { withInstallation, type Installation } from './support/installation.ts'
import { cpuMsPerUnit } from './support/measure.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { formatCpu, printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { mediansOf, rangeOf, sumOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('cost', {
  ...commonOptions,
  documents: { type: 'string' },
  rounds: { type: 'string' },
  idle: { type: 'string' },
})
const documents = Number(options.documents ?? (options.quick ? 5 : 200))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3))
const idleSeconds = Number(options.idle ?? (options.quick ? 1 : 60))
const clients = 16
const body = Buffer.alloc(10 * 1024, 'x')
const forms = { 'dev server': undefined, 'one machine': 'local', cluster: 'postgres' }
const MiB = 1024 * 1024

// Written in circles or by the minute, and not for each document.
const notCounted = new Set(['pg_wal', 'pg_stat_tmp'])

/** Returns the space that the files below a folder take. */
const diskBytes = async (folder: string): Promise<number> => {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) bytes += notCounted.has(entry.name) ? 0 : await diskBytes(path)
    else if (!entry.name.endsWith('.log'))
      bytes += await lstat(path).then(
        ({ blocks }) => blocks * 512,
        () => 0,
      )
  }
  return bytes
}

/** Returns the figures with one name for the Temporal server, whose program has another one in each form. */
const named = ({ 'temporal-server': server = 0, temporal = 0, ...others }: Record<string, number>) => ({
  temporal: temporal + server,
  ...others,
})

const measureForm = async (name: string, installation: Installation) => {
  const { config, folder, startRelay } = installation
  const cpuTimes = () => named(installation.cpuTimes())
  const memoryMiB = () => named(installation.memoryMiB())
  const relay = await startRelay('server')
  const sink = await startWebhookSink()
  const requests = createRequests(clients)
  const url = await createConnectedWorkspace({ config }, relay.baseUrl, { name: 'bench/cost', targetUrls: [sink.url] })
  const deliver = async (count: number) => {
    const expected = sink.calls.length + count
    await pLimit(clients).map(Array.from({ length: count }), () => requests.send(createByPut(url, newId(), body), 201))
    while (sink.calls.length < expected) await delay(20)
  }

  await deliver(options.quick ? 2 : 50)
  await delay(idleSeconds * 1_000)
  const [idleBefore, idleStart] = [cpuTimes(), performance.now()]
  await delay(idleSeconds * 1_000)
  const idle = cpuMsPerUnit(idleBefore, cpuTimes(), (performance.now() - idleStart) / 1_000)
  const idleMiB = memoryMiB()

  const diskBefore = await diskBytes(folder)
  const measured = []
  for (let round = 0; round < rounds; round += 1) {
    const [before, startedAt] = [cpuTimes(), performance.now()]
    await deliver(documents)
    measured.push({
      per_second: (documents * 1_000) / (performance.now() - startedAt),
      cpu_ms: cpuMsPerUnit(before, cpuTimes(), documents),
    })
  }
  const loadedMiB = memoryMiB()
  const row = {
    case: name,
    documents_per_second: rangeOf(measured.map((one) => one.per_second)),
    cpu_ms_per_document: mediansOf(measured.map((one) => one.cpu_ms)),
    idle_cpu_ms_per_second: idle,
    idle_mib: { ...idleMiB, all: sumOf(idleMiB) },
    loaded_mib: { ...loadedMiB, all: sumOf(loadedMiB) },
    disk_mib_per_1000_documents: ((await diskBytes(folder)) - diskBefore) / MiB / ((documents * rounds) / 1_000),
  }
  say(`${name}: ${row.documents_per_second.median.toFixed(1)}/s, ${formatCpu(row.cpu_ms_per_document)}`)
  await Promise.all([requests.close(), sink.stop()])
  return row
}

const rows: Awaited<ReturnType<typeof measureForm>>[] = []
for (const [name, temporal] of Object.entries(forms)) {
  await withInstallation(async (installation) => void rows.push(await measureForm(name, installation)), { temporal })
}
const mib = (memory: Record<string, number>) =>
  Object.entries(memory)
    .map(([name, value]) => `${name} ${value.toFixed(0)}`)
    .join(', ')
printResult(
  options.json,
  { name: 'cost', settings: { documents, rounds, idleSeconds, clients }, rows },
  rows.map(
    (row) =>
      `${row.case}: ${row.documents_per_second.median.toFixed(1)} documents/s (${row.documents_per_second.min.toFixed(1)} to ` +
      `${row.documents_per_second.max.toFixed(1)}), ${formatCpu(row.cpu_ms_per_document)}; idle ${formatCpu(row.idle_cpu_ms_per_second)} a second, ` +
      `MiB ${mib(row.idle_mib)}; under load MiB ${mib(row.loaded_mib)}; ${row.disk_mib_per_1000_documents.toFixed(0)} MiB of disk for 1,000 documents`,
  ),
)
