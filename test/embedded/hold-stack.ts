// Holds a stack until it is killed: run by stack.test.ts, as a process that can crash.
import { readConfig } from '../../src/config.ts'
import { startStack } from '../../src/embedded/stack.ts'
import { createLog } from '../../src/log.ts'

const config = readConfig({ ...process.env, PATH: process.env.SEARCH_PATH })
const stack = await startStack({ dataDir: process.env.DATA_DIR!, config, log: createLog('silent'), say: () => {}, fast: true })
process.stdout.write(`${stack.databaseUrl}\n`)
setInterval(() => {}, 60_000)
