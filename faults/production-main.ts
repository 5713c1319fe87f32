// Installs, upgrades, destroys and restores a relay as in production, and prints a transcript.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { withGenerated } from '../docs/generated-table.ts'
import { createCleanUp } from './production-ground.ts'
import { runOneMachine } from './production-machine.ts'
import { logFolders } from './production-traffic.ts'
import { runProduction } from './production.ts'
import { createTranscript, transcriptMarkdown } from './transcript.ts'

const usage = `script/production [--one-machine] [--write-docs]

  Installs two versions of the relay from their packages, starts three API processes behind HAProxy and three workers on a cluster of
  Temporal, upgrades them under load, backs up, destroys everything, restores it, and counts what is lost. Needs PostgreSQL with
  pg_basebackup, HAProxy, Go, and npm with its cache or a registry.

  --one-machine  the form of docs/one-machine.md instead: \`relay server\` with a Temporal of its own, and one pg_dump
  --write-docs   write the transcript into docs/measurements/production.md
`

const { values: options } = parseArgs({
  options: {
    'one-machine': { type: 'boolean', default: false },
    'write-docs': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const say = (line: string) => process.stderr.write(`${line}\n`)

/** Copies the logs of the relay out of the folder of the run, which is removed. */
const keepLogs = async (folder: string) => {
  const names = Object.values(logFolders).filter((name) => existsSync(join(folder, name)))
  if (names.length === 0) return
  const kept = await mkdtemp(join(tmpdir(), 'relay-production-logs-'))
  for (const name of names) await cp(join(folder, name), join(kept, name), { recursive: true })
  say(`The logs of the relay are in ${kept}`)
}

if (options.help) {
  console.log(usage)
} else {
  const startedAt = Date.now()
  const folder = await mkdtemp(join(tmpdir(), 'relay-production-'))
  const cleanUp = createCleanUp(say)
  cleanUp.add(() => rm(folder, { recursive: true, force: true }))
  let isInterrupted = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      isInterrupted = true
      void cleanUp.run().then(() => process.exit(130))
    })
  }
  try {
    const transcript = createTranscript((line) => console.log(line))
    const runForm = options['one-machine'] ? runOneMachine : runProduction
    const { counts, findings } = await runForm({ folder, transcript, cleanUp, say })
    const missed = counts.filter(({ isMet }) => !isMet)
    console.log()
    for (const { name, value, goal, isMet } of counts) console.log(`${isMet ? 'met   ' : 'MISSED'} ${name}: ${value} (${goal})`)
    for (const finding of findings) say(finding)
    if (missed.length > 0) {
      process.exitCode = 1
      await keepLogs(folder)
    } else if (options['write-docs']) {
      const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
      const minutes = Math.round((Date.now() - startedAt) / 60_000)
      const conditions = `${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${minutes} minutes, ${availableParallelism()} cores, Node.js ${process.versions.node}`
      const page = new URL('../docs/measurements/production.md', import.meta.url)
      const text = transcriptMarkdown(transcript.steps, counts, conditions)
      const [name, command] = options['one-machine']
        ? ['one-machine', 'script/production --one-machine --write-docs']
        : ['transcript', 'script/production --write-docs']
      await writeFile(page, withGenerated(await readFile(page, 'utf8'), name, text, command))
    }
  } catch (thrown) {
    if (!isInterrupted) await keepLogs(folder)
    throw thrown
  } finally {
    await cleanUp.run()
  }
}
