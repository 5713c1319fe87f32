// Runs a stack until it is killed. stack.system.test.ts starts it as a child process in order to crash it.
import { readConfig } from '../../src/config.ts'
import { startStack } from '../../src/embedded/stack.ts'
import { createLog } from '../../src/log.ts'

const config = readConfig({ ...process.env, PATH: process.env.SEARCH_PATH })
const stack = await startStack({ dataDir: process.env.DATA_DIR!, config, log: createLog('silent'), say: () => {}, fast: true })
process.stdout.write(`${stack.databaseUrl}\n`)
setInterval(() => {}, 60_000)
