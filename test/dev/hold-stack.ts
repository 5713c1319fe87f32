import { createLog } from '../../src/base/log.ts'
// Runs a stack until it is killed. stack.release.test.ts starts it as a child process in order to crash it.
import { readConfig } from '../../src/config/config.ts'
import { startStack } from '../../src/dev/stack.ts'

const config = readConfig({ ...process.env, PATH: process.env.SEARCH_PATH })
const stack = await startStack({ dataDir: process.env.DATA_DIR!, config, log: createLog('silent'), say: () => {}, fast: true })
process.stdout.write(`${stack.databaseUrl}\n`)
setInterval(() => {}, 60_000)
