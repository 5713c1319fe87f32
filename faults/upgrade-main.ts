// Upgrades an installation under load, from a commit to the working tree, and prints what its clients have noticed.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../src/config.ts'
import { linesOfLevel } from '../test/support/log-lines.ts'
import { findHaproxy } from '../test/support/tools.ts'
import { buildRelay, copyBuild } from './build.ts'
import { runUpgrade } from './upgrade.ts'

const usage = `script/upgrade [--from REF]

  Starts three API processes behind HAProxy and three workers, and replaces them one by one by the working tree, under load.

  --from REF   commit or tag to upgrade from (default: the working tree, with another version)
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
    const to = await buildRelay(join(folder, 'to'))
    const from = await copyBuild(
      options.from === undefined ? to : await buildRelay(join(folder, 'ref'), options.from),
      join(folder, 'from'),
      `${to.version}-${options.from ?? 'before'}`,
    )
    const { logs, ...result } = await runUpgrade({ from, to }, { haproxyProgram, say })
    console.log(JSON.stringify(result, null, 2))
    const { counts, proxy, reads } = result
    const isClean = counts.lost + counts.altered + counts.duplicated + counts.stuck + counts.refused + proxy.serverErrors === 0
    if (!isClean || reads.failures.length > 0 || result.crashes > 0) {
      for (const log of logs) for (const line of linesOfLevel(log, ['warn', 'error', 'fatal']).slice(-20)) say(line)
      process.exitCode = 1
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
