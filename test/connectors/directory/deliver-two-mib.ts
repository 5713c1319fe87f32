// A process of its own that delivers 2 MiB to a folder and prints the outcome as JSON. Its parent limits the size of
// files.
import { createDirectory } from '../../../src/connectors/directory/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { contextOf, largePayload, MiB } from '../payloads.ts'

const path = process.argv[2] ?? ''
const connector = createDirectory([{ value: path }])
const target = { config: connector.config.parse({ path }), credentials: {} }
const outcome = await connector
  .deliver(largePayload(2 * MiB), target, contextOf(createOutboundGuard({ allowedCidrs: [] })))
  .catch((thrown: unknown) => {
    const { code, permanent } = thrown as { code: string; permanent: boolean }
    return { code, permanent }
  })
process.stdout.write(JSON.stringify(outcome))
