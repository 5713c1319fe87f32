// Causes faults in a complete installation under load, one after the other, and prints a table of what became of the documents.
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '../src/base/errors.ts'
import { keepLogs, startInstallation, type Installation } from './installation.ts'
import { rows } from './rows/index.ts'
import { runRow, type Outcome, type Row } from './run-row.ts'
import { isShortfall, faultsPage, summaryOf, textTable } from './table.ts'

const usage = `script/faults [--short] [--seed N] [--row NAME]... [--list] [--json] [--write-docs]

  --short       fewer rows and shorter faults: under 10 minutes on 2 cores
  --seed N      seed of the load (default: 1)
  --row NAME    run this row only; may be repeated
  --list        list the rows
  --json        print the results as JSON
  --write-docs  write the table into docs/measurements/faults.md
`

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    row: { type: 'string', multiple: true, default: [] },
    list: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    'write-docs': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const say = (line: string) => process.stderr.write(`${line}\n`)

const chosenRows = (): Row[] => {
  const unknown = options.row.filter((name) => !rows.some((row) => row.name === name))
  if (unknown.length > 0) throw new Error(`There is no row ${unknown.join(', ')}. See script/faults --list`)
  if (options.row.length > 0) return rows.filter(({ name }) => options.row.includes(name))
  return rows.filter(({ longOnly }) => !options.short || !longOnly)
}

const runAll = async (chosen: Row[]): Promise<Outcome[]> => {
  const outcomes: Outcome[] = []
  let installation: Installation | undefined
  const stop = async () => {
    await installation?.stop()
    installation = undefined
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(130)))
  try {
    for (const row of chosen) {
      const startedAt = Date.now()
      let outcome: Outcome
      try {
        const isOneMachine = row.oneMachine ?? false
        if (installation?.isOneMachine !== isOneMachine) await stop()
        installation ??= await startInstallation({ say, isOneMachine })
        outcome = await runRow(installation, row, { seed: options.seed, isShort: options.short })
      } catch (thrown) {
        outcome = { row, findings: [], shortfalls: [`the row broke off: ${messageOf(thrown)}`] }
      }
      outcomes.push(outcome)
      say(`${summaryOf(outcome)} [${Math.round((Date.now() - startedAt) / 1_000)} s]`)
      for (const finding of outcome.findings) say(`    ${finding}`)
      if (installation && outcome.shortfalls.length > 0) {
        say(`    logs: ${await keepLogs(installation, join(tmpdir(), `relay-faults-logs-${row.name}`))}`)
        // The next row must not inherit the damage.
        await stop()
      }
    }
  } finally {
    await stop()
  }
  return outcomes
}

if (options.help) {
  console.log(usage)
} else if (options.list) {
  for (const { name, fault, longOnly } of rows) console.log(`${name}${longOnly ? ' (long form only)' : ''}: ${fault}`)
} else {
  const startedAt = Date.now()
  const outcomes = await runAll(chosenRows())
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const hardware = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`
  const conditions = {
    commit,
    hardware,
    seed: options.seed,
    form: options.short ? ('short' as const) : ('long' as const),
    date: new Date().toISOString().slice(0, 10),
    minutes: Math.round((Date.now() - startedAt) / 60_000),
  }
  if (options.json) console.log(JSON.stringify({ ...conditions, outcomes }, null, 2))
  else console.log(textTable(outcomes, conditions))
  if (options['write-docs']) {
    const page = new URL('../docs/measurements/faults.md', import.meta.url)
    const names = (options.row.length > 0 ? rows : chosenRows()).map(({ name }) => name)
    await writeFile(page, faultsPage(await readFile(page, 'utf8'), names, outcomes, conditions))
  }
  if (outcomes.some(isShortfall)) process.exitCode = 1
}
