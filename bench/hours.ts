// Measures whether the memory of an installation stays where it is: for an hour without work, and for an hour of a steady load. Every process
// is looked at twice a minute; the second quarter of each hour is compared with the last one, because caches are full by then. The goal is a
// ratio of at most 1.1.
import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../src/base/ids.ts'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import { withInstallation, type Installation } from './support/installation.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { mediansOf, sumOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('hours', {
  ...commonOptions,
  ...temporalOption,
  idle: { type: 'string' },
  load: { type: 'string' },
  rate: { type: 'string' },
})
const minutesOf = (given: string | undefined) => Number(given ?? (options.quick ? 0.1 : 60))
const [idleMinutes, loadMinutes] = [minutesOf(options.idle), minutesOf(options.load)]
// Documents a second: a quarter of what two processors deliver.
const rate = Number(options.rate ?? 3)
const lookEveryMs = options.quick ? 500 : 30_000
const body = Buffer.alloc(10 * 1024, 'x')

/** Looks at the memory of every process for some minutes. */
const watch = async (name: string, installation: Installation, minutes: number) => {
  const endsAt = performance.now() + minutes * 60_000
  const looks: Record<string, number>[] = []
  while (performance.now() < endsAt) {
    await delay(lookEveryMs)
    const memory = installation.memoryMiB()
    looks.push({ ...memory, all: sumOf(memory) })
  }
  const quarter = Math.max(1, Math.floor(looks.length / 4))
  const [second, last] = [mediansOf(looks.slice(quarter, 2 * quarter)), mediansOf(looks.slice(-quarter))]
  const row = {
    case: name,
    second_quarter_mib: second,
    last_quarter_mib: last,
    ratio: Object.fromEntries(Object.entries(last).map(([process, mib]) => [process, mib / (second[process] ?? Number.NaN)])),
  }
  say(lineOf(row))
  return row
}

const lineOf = ({ case: name, second_quarter_mib: second, last_quarter_mib: last, ratio }: Awaited<ReturnType<typeof watch>>) =>
  `${name}: ${Object.entries(last)
    .map(([process, mib]) => `${process} ${second[process]?.toFixed(0)} to ${mib.toFixed(0)} MiB (${ratio[process]?.toFixed(2)})`)
    .join(', ')}`

/** Sends documents at a steady rate until it is told to end, and waits for those that are still under way. */
const startLoad = (send: () => Promise<unknown>) => {
  const underWay = new Set<Promise<unknown>>()
  let refused = 0
  const timer = setInterval(() => {
    const one = send()
      .catch(() => (refused += 1))
      .finally(() => underWay.delete(one))
    underWay.add(one)
  }, 1_000 / rate)
  return async () => {
    clearInterval(timer)
    await Promise.all(underWay)
    return refused
  }
}

await withInstallation(async (installation) => {
  const relay = await installation.startRelay('server')
  const sink = await startWebhookSink()
  const requests = createRequests(16)
  const url = await createConnectedWorkspace(installation, relay.baseUrl, { name: 'bench/hours', targetUrls: [sink.url] })
  const idle = await watch(`${idleMinutes} minutes idle`, installation, idleMinutes)
  let sent = 0
  const endLoad = startLoad(() => {
    sent += 1
    return requests.send(createByPut(url, newId(), body), 201)
  })
  const loaded = await watch(`${loadMinutes} minutes at ${rate} documents a second`, installation, loadMinutes)
  const refused = await endLoad()
  while (sink.calls.length < sent - refused) await delay(20)
  const rows = [idle, { ...loaded, documents: sent, refused }]
  printResult(options.json, { name: 'hours', settings: { idleMinutes, loadMinutes, rate, temporal: installation.temporalName }, rows }, [
    ...[idle, loaded].map(lineOf),
    `${sent} documents, ${refused} refused, ${sink.calls.length} delivered`,
  ])
  await Promise.all([requests.close(), sink.stop()])
}, options)
