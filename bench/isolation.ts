// Measures what noisy neighbours cost a quiet workspace: the times of a create, of a get, and from the answer to a create until the document is
// at its target, beside each noise (bench/neighbours/noises.ts) and alone before and after it. A bare program in the same place is measured in
// the same seconds: it commits and reads the same bytes, and has a workflow of the same shape with a task queue and a worker of its own. The goal
// of each is a 95th percentile of at most twice that alone, or what the bare program has: the same ratio or, from answer to arrival, at most 1.5
// times its 95th percentile. With `--before FOLDER`, another checkout is measured as well, in turns with this one.
import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { markdownTable, withGenerated } from '../docs/generated-table.ts'
import { messageOf } from '../src/base/errors.ts'
import { openDatabase } from '../src/db/database.ts'
import { createWorkspaceClient } from '../test/support/client.ts'
import { startNoise } from './neighbours/noise.ts'
import { endNoise, noises, type Noise, type NoiseScene } from './neighbours/noises.ts'
import { createQuiet, type Sample } from './neighbours/quiet.ts'
import { comparison, figuresOf, tableRow, type NoiseRow } from './neighbours/verdict.ts'
import { startArrivals } from './support/arrivals.ts'
import { withInstallation, type Installation } from './support/installation.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { commitOf, conditionsOf, printResult, say } from './support/report.ts'
import { resultText } from './support/tables.ts'

const options = readOptions('isolation', {
  ...commonOptions,
  ...temporalOption,
  seconds: { type: 'string' },
  only: { type: 'string' },
  before: { type: 'string' },
  // No noise begins after this time.
  minutes: { type: 'string' },
  'write-docs': { type: 'boolean', default: false },
})
const seconds = Number(options.seconds ?? (options.quick ? 2 : 12))
const aloneSeconds = seconds / 2
// The noise has become as loud as it is by then, and what is left of it has ended.
const leadMs = options.quick ? 0 : 3_000
const settleMs = options.quick ? 0 : 2_000
const settleMaxMs = options.quick ? 10_000 : 60_000
const endsAtMs = Number(options.minutes ?? Infinity) * 60_000
const warmUpSeconds = options.quick ? 1 : 5

const unknown = (options.only?.split(',') ?? []).filter((name) => !noises.some((noise) => noise.name === name))
if (unknown.length > 0) throw new Error(`There is no noise ${unknown.join(', ')}. Noises: ${noises.map(({ name }) => name).join(', ')}`)
const chosen = noises.filter(({ name }) => options.only?.split(',').includes(name) ?? true)

/** Starts a quiet workspace in an installation. @returns the function that measures it beside a noise */
const openBuild = async (installation: Installation, build: NoiseRow['build']) => {
  const server = await installation.startRelay('server')
  const db = openDatabase(installation.config, 'bench')
  const [healthy, bareArrivals, noise] = await Promise.all([startArrivals(), startArrivals(), startNoise()])
  const floor = await installation.startModule<{ url: string }>('floor', new URL('./floor/receiver.ts', import.meta.url))
  await installation.startModule('baseline worker', new URL('./baseline/worker.ts', import.meta.url), { ARRIVAL_URL: bareArrivals.url })
  const connection = await Connection.connect(installation.config.temporal.connectionOptions)
  const workspace = await createWorkspaceClient(db, server.baseUrl, 'bench/quiet')
  const namespace = installation.config.temporal.namespace ?? 'default'
  const quiet = await createQuiet({
    baseUrl: server.baseUrl,
    workspace,
    healthy,
    bare: { url: floor.url, arrivals: bareArrivals, connection, namespace },
  })
  await quiet.measure(warmUpSeconds)

  const untilSettled = async (workspaceId: string) => {
    const isOpen = () => db('documents').where({ workspace_id: workspaceId }).whereIn('status', ['pending', 'retrying']).first('id')
    for (const deadline = performance.now() + settleMaxMs; performance.now() < deadline; await delay(500)) if (!(await isOpen())) break
    await delay(settleMs)
  }

  // What was measured after one noise was measured before the next.
  let lastAlone: Sample | undefined
  const measureBeside = async (one: Noise): Promise<NoiseRow> => {
    const api = one.apiVariables && (await installation.startRelay('api', [], one.apiVariables(noise)))
    const where = { readsFrom: api?.baseUrl }
    const baseUrl = api?.baseUrl ?? server.baseUrl
    const neighbour = await createWorkspaceClient(db, server.baseUrl, `bench/${one.name}`)
    const scene: NoiseScene = { baseUrl, db, noise, neighbour, quiet: workspace, isQuick: options.quick }
    const before = (api ? undefined : lastAlone) ?? (await quiet.measure(aloneSeconds, where))
    await noise.forget()
    let beside: Sample
    let facts: string
    try {
      await one.begin(scene)
      await delay(leadMs)
      beside = await quiet.measure(seconds, where)
      facts = await one.describe(await noise.facts(), scene)
    } finally {
      lastAlone = undefined
      await endNoise(one, scene)
    }
    const alone = [before]
    // What the last noise leaves takes longer to end than its measurement.
    if (one !== chosen.at(-1) || chosen.length === 1) {
      await untilSettled(neighbour.id)
      const after = await quiet.measure(aloneSeconds, where)
      alone.push(after)
      if (!api) lastAlone = after
    }
    // What it has not answered is not waited for.
    if (api) await api.kill()
    return { noise: one.name, text: one.text, build, figures: figuresOf(alone, beside), refused: beside.refused, facts }
  }

  return {
    measure: async (one: Noise): Promise<NoiseRow> => {
      const startedAt = performance.now()
      const row = await measureBeside(one).catch((thrown: unknown): NoiseRow => {
        const facts = `broke off: ${messageOf(thrown)}`
        return { noise: one.name, text: one.text, build, figures: [], refused: 0, facts }
      })
      say(`${Object.values(tableRow(row)).join('; ')} [${((performance.now() - startedAt) / 1_000).toFixed(0)} s]`)
      return row
    },
    close: async () => {
      await noise.stop()
      await Promise.all([quiet.close(), healthy.stop(), bareArrivals.stop(), connection.close(), db.destroy()])
    },
  }
}

type Build = Awaited<ReturnType<typeof openBuild>>
const rows: NoiseRow[] = []
const measureAll = async (builds: Build[]) => {
  for (const one of chosen) {
    if (performance.now() > endsAtMs) break
    for (const build of builds) rows.push(await build.measure(one))
  }
  await Promise.all(builds.map((build) => build.close()))
}
const checkout = options.before === undefined ? undefined : resolve(options.before)
await withInstallation(async (installation) => {
  const now = await openBuild(installation, 'after')
  if (checkout === undefined) return measureAll([now])
  // Both take turns, so that a machine whose speed drifts drifts for both.
  const measureBoth = async (other: Installation) => measureAll([now, await openBuild(other, 'before')])
  return withInstallation(measureBoth, { ...options, checkout })
}, options)

const settings = {
  ...(checkout !== undefined && { commit_before: commitOf(checkout) }),
  seconds_beside: seconds,
  seconds_alone: 2 * aloneSeconds,
  temporal: options.temporal ?? 'dev server',
}
const result = { name: 'isolation', settings, rows: rows.map((row) => ({ ...tableRow(row), figures: row.figures })) }
printResult(
  options.json,
  result,
  rows.map((row) => Object.values(tableRow(row)).join('; ')),
)

if (options['write-docs']) {
  const conditions = conditionsOf(result)
  await writeFile(
    new URL('../docs/measurements/bench/isolation.md', import.meta.url),
    `# Results of \`isolation\`\n\nWritten by \`script/bench isolation --write-docs\`. Each time is the median and the 95th percentile alone, then beside the noise; the\nratio is that of the 95th percentiles, with that of a bare program in the same place.\n${resultText({ ...conditions, rows: result.rows })}`,
  )
  const page = new URL('../docs/reliability.md', import.meta.url)
  const { header, rows: lines } = comparison(rows)
  const measured = `Measured on ${conditions.date} at commit ${conditions.commit}${checkout === undefined ? '' : `, before at ${commitOf(checkout)}`}, on ${conditions.hardware}.`
  const text = `\n${measured}\n\n${markdownTable(header, lines)}`
  await writeFile(page, withGenerated(await readFile(page, 'utf8'), 'neighbours', text, 'script/bench isolation --write-docs'))
}
