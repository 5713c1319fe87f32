// Worker process for the baseline workflows, with the same options as the relay's worker. Exits with its parent
// process. If ARRIVAL_URL is set, the activity sends a request to it, as the relay would.
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { createLog } from '../../src/base/log.ts'
import { readConfig } from '../../src/config/config.ts'
import { installRuntime } from '../../src/temporal/runtime.ts'
import { connectWorker, startTemporalWorker } from '../../src/temporal/worker.ts'

const url = process.env['ARRIVAL_URL']
const send = async () => {
  const { statusCode, body } = await request(url!, { method: 'POST', headers: { 'x-relay-doc-id': 'baseline' } })
  await body.dump()
  if (statusCode !== 200) throw new Error(`the target answered ${statusCode}`)
}

const activities = { deliverNothing: url === undefined ? async () => {} : send }

await installRuntime(createLog('error'))
const config = readConfig()
const worker = await startTemporalWorker(
  { ...config, TEMPORAL_TASK_QUEUE: 'baseline' },
  await connectWorker(config.temporal),
  { targets: activities, control: activities, migration: activities, side: activities },
  { workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)) },
)
process.on('disconnect', () => void worker.stop())
process.send?.('ready')
await worker.ended
