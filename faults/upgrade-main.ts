// Upgrades an installation under load, from a commit to a next version of the working tree, and prints what its clients have noticed.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { UserError } from '../src/base/errors.ts'
import { readConfig } from '../src/config/config.ts'
import { linesOfLevel } from '../test/support/log-lines.ts'
import { findHaproxy } from '../test/support/tools.ts'
import { buildRelay, copyBuild, nextVersion } from './build.ts'
import { runUpgrade } from './upgrade.ts'

const usage = `script/upgrade [--from REF]

  Starts three API processes behind HAProxy and three workers, and replaces them one by one under load. They become the working tree with
  the next patch version, and with one migration more. Meanwhile, deliveries wait in every way in which one can; in the end all of them
  must arrive, each once. For one machine, whose processes cannot be replaced one by one: script/production --one-machine.

  --from REF   commit or tag to upgrade from (default: the working tree). It must have the same migrations as the working tree, or fewer
`

const { values: options } = parseArgs({ options: { from: { type: 'string' }, help: { type: 'boolean', default: false } } })
const say = (line: string) => process.stderr.write(`${line}\n`)

if (options.help) {
  console.log(usage)
} else {
  const haproxyProgram = await findHaproxy({ config: readConfig(), say })
  const folder = await mkdtemp(join(tmpdir(), 'relay-upgrade-'))
  try {
    say('Building.')
    const current = await buildRelay(join(folder, 'current'))
    const from = options.from === undefined ? current : await buildRelay(join(folder, 'from'), options.from)
    const to = await copyBuild(current, join(folder, 'to'), nextVersion(current.version))
    const { logs, ...result } = await runUpgrade({ from, to }, { haproxyProgram, say })
    console.log(JSON.stringify(result, null, 2))
    const { counts, proxy, reads } = result
    const unfinished = result.waited.missing.length + result.waited.repeated.length + result.openWorkflows
    const isClean = unfinished + counts.lost + counts.altered + counts.duplicated + counts.stuck + counts.refused + proxy.serverErrors === 0
    if (!isClean || reads.failures.length > 0 || result.crashes > 0) {
      for (const log of logs) for (const line of linesOfLevel(log, ['warn', 'error', 'fatal']).slice(-20)) say(line)
      process.exitCode = 1
    }
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown
    say(thrown.message)
    process.exitCode = 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
