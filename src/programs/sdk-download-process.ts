// Entry point of the process that install-program.ts starts:
// node sdk-download-process.ts (dev-server|time-skipping) DIRECTORY
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { messageOf } from '../base/errors.ts'

const [server, downloadDir] = process.argv.slice(2)
if (!downloadDir) throw new Error('usage: sdk-download-process (dev-server|time-skipping) DIRECTORY')

try {
  const executable = { type: 'cached-download' as const, downloadDir }
  const environment = await (server === 'dev-server'
    ? TestWorkflowEnvironment.createLocal({ server: { executable } })
    : TestWorkflowEnvironment.createTimeSkipping({ server: { executable } }))
  await environment.teardown()
} catch (thrown) {
  // The SDK wraps the reason in five errors, each of which repeats the URL. The host and the last part are useful.
  const text = messageOf(thrown)
  const host = /https:\/\/[^/?)]+/.exec(text)?.[0] ?? 'the Temporal SDK'
  process.stderr.write(`${host}: ${text.split(': ').at(-1)}\n`)
  process.exitCode = 1
}
