// A process of its own in which one call of the file system after the other fails. Delivers, delivers again without errors, and prints what has
// happened as JSON.
import fs, { open, readdir, readFile, rm, type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DeliveryError } from '../../../src/connectors/connector.ts'
import { createDirectory } from '../../../src/connectors/directory/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { contextOf, payloadOf } from '../payloads.ts'

const [root = '', archive = ''] = process.argv.slice(2)
const outbound = createOutboundGuard({ allowedCidrs: [] })

type Call = (...parameters: unknown[]) => Promise<unknown>
type Calls = Record<string, Call>
let calls = 0
let failing: { nth: number; code: string; isLate: boolean } | undefined
const failed: string[] = []

/** Makes a call fail if its turn has come: before it, or after it was made. */
const faulty = (owner: Calls, name: string) => {
  const call = owner[name]!
  owner[name] = async function (this: unknown, ...parameters) {
    const isTurn = failing?.nth === calls++
    if (!isTurn) return call.apply(this, parameters)
    failed.push(name)
    const result = failing!.isLate ? await call.apply(this, parameters) : undefined
    if (name === 'open') await (result as FileHandle | undefined)?.close()
    throw Object.assign(new Error(`${failing!.code}: it failed, ${name}`), { code: failing!.code })
  }
}

const folder = await open(archive)
const handles = Object.getPrototypeOf(folder) as Calls
await folder.close()
for (const name of ['realpath', 'stat', 'mkdir', 'open', 'rename']) faulty(fs as unknown as Calls, name)
for (const name of ['write', 'sync', 'stat']) faulty(handles, name)
syncBuiltinESMExports()

const attempt = (content: string) => {
  const connector = createDirectory([{ value: root }])
  const target = { config: connector.config.parse({ path: archive }), credentials: {} }
  return connector.deliver(payloadOf(Buffer.from(content), { path: 'R1/data', deliveryId: 'D1' }), target, contextOf(outbound)).then(
    () => 'delivered',
    (thrown: unknown) => {
      if (thrown instanceof DeliveryError) return `${thrown.code}, ${thrown.permanent ? 'final' : 'retried'}`
      throw thrown
    },
  )
}

/** @returns a line for each call that can fail: what fails, the outcome, that of the next attempt, and the files */
const tell = async (code: string, { isLate = false, isNew = true } = {}): Promise<string[]> => {
  const file = join(archive, 'R1/data')
  const lines: string[] = []
  for (let nth = 0; ; nth += 1) {
    await rm(join(archive, 'R1'), { recursive: true, force: true })
    if (!isNew) await attempt('before')
    calls = 0
    failed.length = 0
    failing = { nth, code, isLate }
    const first = await attempt('content')
    failing = undefined
    if (failed.length === 0) return lines
    const isTrue = first !== 'delivered' || (await readFile(file, 'utf8')) === 'content'
    const second = await attempt('content')
    const files = (await readdir(join(archive, 'R1'))).join(' ')
    lines.push(`${failed[0]}: ${first}${isTrue ? '' : ', which is not true'}; then ${second}: ${files}, ${await readFile(file, 'utf8')}`)
  }
}

const told: Record<string, string[]> = {}
for (const code of process.argv.slice(4)) {
  told[`${code}, new`] = await tell(code)
  told[`${code}, late`] = await tell(code, { isLate: true })
  told[`${code}, again`] = await tell(code, { isNew: false })
}
process.stdout.write(JSON.stringify(told))
