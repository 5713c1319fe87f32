// Worker process for the baseline workflows, with the same options as the relay's worker. Exits with its parent
// process.
import { fileURLToPath } from 'node:url'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { installRuntime } from '../../src/temporal/runtime.ts'
import { createWorker } from '../../src/temporal/worker.ts'

await installRuntime(createLog('error'))
const { worker, close } = await createWorker(
  { ...readConfig(), TEMPORAL_TASK_QUEUE: 'baseline' },
  { deliverNothing: async () => {} },
  { workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)) },
)
process.on('disconnect', () => worker.shutdown())
const ended = worker.run()
process.send?.('ready')
await ended
await close()
