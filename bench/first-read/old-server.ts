// The old content server of `first-read`: every document of the repository Z1 is the same one, and each answer takes as long as DELAY_MS says.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { startOldContentServer } from '../../test/support/old-content-server.ts'

const [delayMs, documents, bytes] = ['DELAY_MS', 'DOCUMENTS', 'BYTES'].map((name) => Number(process.env[name])) as [number, number, number]
const old = await startOldContentServer()
old.put('D0', { data: randomBytes(bytes) })
const document = old.documents.get('Z1/D0')!
for (let n = 1; n < documents; n += 1) old.documents.set(`Z1/D${n}`, document)
if (delayMs > 0) old.timing.beforeAnswer = () => delay(delayMs)
process.on('disconnect', () => process.exit())
process.send!({ url: old.url })
