// Run by sdk-download.ts as a process of its own: `node sdk-download-run.ts (dev-server|time-skipping) DIRECTORY`
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { messageOf } from '../errors.ts'

const [server, downloadDir] = process.argv.slice(2)
if (!downloadDir) throw new Error('which server, and where to?')

try {
  const executable = { type: 'cached-download' as const, downloadDir }
  const environment = await (server === 'dev-server'
    ? TestWorkflowEnvironment.createLocal({ server: { executable } })
    : TestWorkflowEnvironment.createTimeSkipping({ server: { executable } }))
  await environment.teardown()
} catch (thrown) {
  // the SDK wraps its reason five times, and repeats the address each time
  process.stderr.write(`${messageOf(thrown).split(': ').at(-1)}\n`)
  process.exitCode = 1
}
