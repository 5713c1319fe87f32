// Measures what the processes of the relay need: the time to start, the memory when idle and after load, and whether a document costs more
// after many others than after few.
import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import { newId } from '../src/base/ids.ts'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import { withInstallation, type Installation, type RelayProcess } from './support/installation.ts'
import { cpuMsPerUnit } from './support/measure.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { treeMemoryMiB, type CpuTimes } from './support/processes.ts'
import { formatCpu, printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { median, mediansOf, rangeOf, sumOf, type Range } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('footprint', {
  ...commonOptions,
  ...temporalOption,
  accepted: { type: 'string' },
  delivered: { type: 'string' },
  starts: { type: 'string' },
})
const acceptedDocuments = Number(options.accepted ?? (options.quick ? 20 : 10_000))
const deliveredDocuments = Number(options.delivered ?? (options.quick ? 20 : 10_000))
const starts = Number(options.starts ?? (options.quick ? 1 : 5))
const idleMs = options.quick ? 0 : 10_000
const clients = 16
const blocks = options.quick ? 2 : 20
// Of each end, this many blocks are compared. The very first block is a warm-up and not among them.
const comparedBlocks = options.quick ? 1 : 3
const body = Buffer.alloc(10 * 1024, 'x')

// The quick form starts one of them only.
const verbs = options.quick ? (['server'] as const) : (['api', 'worker', 'server'] as const)

/** Starts and stops a process several times, and looks at its memory when it has been idle for a while. */
const measureStarts = async (installation: Installation, verb: (typeof verbs)[number]) => {
  const startedInMs: number[] = []
  const idleMiB: number[] = []
  for (let start = 0; start < starts; start += 1) {
    const relay = await installation.startRelay(verb)
    startedInMs.push(relay.startedInMs)
    await delay(idleMs)
    idleMiB.push(treeMemoryMiB(relay.pid))
    await relay.stop()
  }
  return { case: `relay ${verb}`, started_in_ms: rangeOf(startedInMs), idle_mib: rangeOf(idleMiB) }
}

interface Block {
  documents: number
  documents_per_second: number
  cpu_ms_per_document: CpuTimes
  memory_mib: Record<string, number>
}

interface Growth {
  title: string
  documents: number
  processes: Record<string, RelayProcess>
  send(): Promise<unknown>
  /** Waits until nothing is left to do. */
  settle(): Promise<void>
}

/** Sends documents in blocks, and compares what one costs in the last blocks and in the first. */
const measureGrowth = async (installation: Installation, { title, documents, processes, send, settle }: Growth) => {
  const measured: Block[] = []
  const size = Math.ceil(documents / blocks)
  for (let block = 0; block <= blocks; block += 1) {
    const before = installation.cpuTimes()
    const startedAt = performance.now()
    await pLimit(clients).map(Array.from({ length: size }), () => send())
    await settle()
    measured.push({
      documents: size,
      documents_per_second: (size * 1_000) / (performance.now() - startedAt),
      cpu_ms_per_document: cpuMsPerUnit(before, installation.cpuTimes(), size),
      memory_mib: Object.fromEntries(Object.entries(processes).map(([name, { pid }]) => [name, treeMemoryMiB(pid)])),
    })
  }
  const first = measured.slice(1, 1 + comparedBlocks)
  const last = measured.slice(-comparedBlocks)
  const cpuOf = (compared: Block[]) => mediansOf(compared.map(({ cpu_ms_per_document }) => cpu_ms_per_document))
  const rateOf = (compared: Block[]) => median(compared.map(({ documents_per_second }) => documents_per_second))
  const row = {
    case: `${title}, ${size * (blocks + 1)} documents of ${body.length} bytes`,
    first_cpu_ms: cpuOf(first),
    last_cpu_ms: cpuOf(last),
    last_to_first_cpu: sumOf(cpuOf(last)) / sumOf(cpuOf(first)),
    last_to_first_rate: rateOf(last) / rateOf(first),
    first_mib: first[0]!.memory_mib,
    last_mib: last.at(-1)!.memory_mib,
    blocks: measured,
  }
  say(formatGrowth(row))
  return row
}

const formatRange = ({ min, median: middle, max }: Range, unit: string) =>
  `${middle.toFixed(0)} ${unit} (${min.toFixed(0)} to ${max.toFixed(0)})`

const formatGrowth = (row: Awaited<ReturnType<typeof measureGrowth>>) =>
  `${row.case}: CPU of the last to the first ${row.last_to_first_cpu.toFixed(2)}, documents per second ${row.last_to_first_rate.toFixed(2)}; ` +
  `first ${formatCpu(row.first_cpu_ms)}, last ${formatCpu(row.last_cpu_ms)}; memory ` +
  [row.first_mib, row.last_mib]
    .map((memory) =>
      Object.entries(memory)
        .map(([name, mebibytes]) => `${name} ${mebibytes.toFixed(0)} MiB`)
        .join(', '),
    )
    .join(' at first, at last ')

await withInstallation(async (installation) => {
  const rows: object[] = []
  const lines: string[] = []
  for (const verb of verbs) {
    const row = await measureStarts(installation, verb)
    rows.push(row)
    lines.push(`${row.case}: ready after ${formatRange(row.started_in_ms, 'ms')}, idle ${formatRange(row.idle_mib, 'MiB')}`)
    say(lines.at(-1)!)
  }

  const sink = await startWebhookSink()
  const requests = createRequests(clients)
  const growth = async (title: string, baseUrl: string, processes: Growth['processes'], documents: number, isActive: boolean) => {
    const name = `bench/${title.replaceAll(' ', '-')}`
    const receiverUrl = await createConnectedWorkspace(installation, baseUrl, { name, targetUrls: [sink.url], isActive })
    let sent = sink.calls.length
    const row = await measureGrowth(installation, {
      title,
      documents,
      processes,
      send: async () => {
        if (isActive) sent += 1
        await requests.send(createByPut(receiverUrl, newId(), body), 201)
      },
      settle: async () => {
        while (sink.calls.length < sent) await delay(20)
      },
    })
    rows.push(row)
    lines.push(formatGrowth(row))
  }
  const api = await installation.startRelay('api')
  const worker = await installation.startRelay('worker')
  await growth('accepted', api.baseUrl, { api }, acceptedDocuments, false)
  await growth('delivered', api.baseUrl, { api, worker }, deliveredDocuments, true)

  const settings = { accepted: acceptedDocuments, delivered: deliveredDocuments, starts, clients, temporal: installation.temporalName }
  printResult(options.json, { name: 'footprint', settings, rows }, lines)
  await Promise.all([requests.close(), sink.stop()])
}, options)
