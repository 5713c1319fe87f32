// A worker of the bare shape, in a process of its own, with the options of ours. Ends with its parent.
import { fileURLToPath } from 'node:url'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { createWorker, installRuntime } from '../../src/temporal/worker.ts'

installRuntime(createLog('error'))
const { worker, close } = await createWorker(
  { ...readConfig(), TEMPORAL_TASK_QUEUE: 'floor' },
  { deliverNothing: async () => {} },
  { workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)) },
)
process.on('disconnect', () => worker.shutdown())
const ended = worker.run()
process.send?.('ready')
await ended
await close()
