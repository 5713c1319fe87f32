// Measures what parts of the relay's workflows cost Temporal and a worker: priority keys, summaries, search attributes and the size of
// inputs. Workflows of the shape of the relay's, which do nothing, get one part at a time, and then all of them. All cases take turns.
import { Client, Connection } from '@temporalio/client'
import pLimit from 'p-limit'
import { newId } from '../src/base/ids.ts'
import { partsOfDocument, type Part } from './baseline/parts.ts'
import { withInstallation } from './support/installation.ts'
import { cpuMsPerUnit } from './support/measure.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import type { CpuTimes } from './support/processes.ts'
import { formatCpu, printResult, say } from './support/report.ts'
import { mediansOf, rangeOf, sumOf } from './support/statistics.ts'

const options = readOptions('engine', { ...commonOptions, ...temporalOption, documents: { type: 'string' }, rounds: { type: 'string' } })
const documents = Number(options.documents ?? (options.quick ? 5 : 100))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 8))
const inFlight = 50
const cases: { name: string; parts: Part[] }[] = [
  { name: 'bare', parts: [] },
  { name: 'priority keys', parts: ['priority keys'] },
  { name: 'summaries', parts: ['summaries'] },
  { name: 'search attributes', parts: ['search attributes'] },
  { name: 'inputs', parts: ['inputs'] },
  { name: 'all of them', parts: ['priority keys', 'summaries', 'search attributes', 'inputs'] },
]

await withInstallation(async (installation) => {
  await installation.startModule('worker', new URL('./baseline/worker.ts', import.meta.url))
  const connection = await Connection.connect(installation.config.temporal.connectionOptions)
  const client = new Client({ connection, namespace: installation.config.temporal.namespace ?? 'default' })

  const runDocument = async (parts: Part[]) => {
    const docId = newId()
    const { options: more, input } = partsOfDocument(parts, docId)
    const args = [1, parts, ...(input ? [input] : [])]
    await client.workflow.execute('bareDocument', { ...more, workflowId: docId, taskQueue: 'baseline', args })
  }
  const measured = new Map(cases.map(({ name }) => [name, [] as CpuTimes[]]))
  // Round 0 is a warm-up and not counted.
  for (let round = options.quick ? 1 : 0; round <= rounds; round += 1) {
    // The case that begins is another one in each round.
    const turn = round % cases.length
    for (const { name, parts } of [...cases.slice(turn), ...cases.slice(0, turn)]) {
      const before = installation.cpuTimes()
      await pLimit(inFlight).map(Array.from({ length: documents }), () => runDocument(parts))
      const cpuMs = cpuMsPerUnit(before, installation.cpuTimes(), documents)
      if (round > 0) measured.get(name)!.push(cpuMs)
    }
    say(round === 0 ? 'warm-up' : `round ${round}`)
  }

  const bare = measured.get('bare')!
  const rows = [...measured].map(([name, times]) => ({
    case: name,
    cpu_ms_per_document: mediansOf(times),
    to_bare: rangeOf(times.map((time, round) => sumOf(time) / sumOf(bare[round]!))),
  }))
  const lines = rows.map(
    ({ case: name, cpu_ms_per_document, to_bare: { median, min, max } }) =>
      `${name}: ${formatCpu(cpu_ms_per_document)}, to bare ${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`,
  )
  printResult(options.json, { name: 'engine', settings: { rounds, documents, inFlight, temporal: installation.temporalName }, rows }, lines)
  await connection.close()
}, options)
