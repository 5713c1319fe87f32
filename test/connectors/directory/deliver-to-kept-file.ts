// A process of its own in which a file cannot be replaced, because something is mounted there. Delivers to it, and prints what has happened as JSON.
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryError, type Payload } from '../../../src/connectors/connector.ts'
import { createDirectory } from '../../../src/connectors/directory/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { contextOf, largePayload, payloadOf } from '../payloads.ts'

const folder = join(process.argv[2] ?? '', 'kept')
await mkdir(folder)
const outbound = createOutboundGuard({ allowedCidrs: [] })
const connector = createDirectory([{ value: folder }])
const target = { config: connector.config.parse({ path: folder }), credentials: {} }
const path = 'data.bin'
const file = join(folder, path)

const outcomeOf = (payload: Payload): Promise<string> =>
  connector.deliver(payload, target, contextOf(outbound)).then(
    () => 'delivered',
    (thrown: unknown) => {
      if (thrown instanceof DeliveryError) return thrown.message.replaceAll(folder, '')
      throw thrown
    },
  )

const payload = largePayload(1_000_003, { path, properties: { Vendor: 'Acme' } })
const first = await outcomeOf(payload)
execFileSync('mount', ['--bind', file, file])
const again = await outcomeOf({ ...payload, attempt: 2 })
const { deliveryId } = payload
const appended = await outcomeOf(largePayload(1_000_004, { path, deliveryId }))
const changed = await outcomeOf(payloadOf(Buffer.alloc(1_000_003), { path, deliveryId }))
const isUnchanged = (await readFile(file)).length === 1_000_003
const entries = (await readdir(folder)).toSorted()
execFileSync('umount', [file])
await rm(folder, { recursive: true })
process.stdout.write(JSON.stringify({ first, again, appended, changed, isUnchanged, entries }))
