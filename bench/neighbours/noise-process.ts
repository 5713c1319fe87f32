// The process that makes noise: it sends requests as it is told, and is every server that a noisy workspace has. It is a process of its own, so
// that the times which the benchmark takes are not those of a busy event loop. It exits with its parent.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { newId } from '../../src/base/ids.ts'
import { createBodies } from './bodies.ts'
import type { Command, NoiseFacts, Reply, Sending } from './noise.ts'

const facts: NoiseFacts = { answers: {}, received: {}, open: {} }
const count = (counts: Record<string, number>, name: string, by = 1) => {
  counts[name] = (counts[name] ?? 0) + by
}

const dripMs = 1_000
/** Answers a byte a second, without end. */
const drip = (response: ServerResponse) => {
  response.writeHead(200).write('.')
  const timer = setInterval(() => response.write('.'), dripMs)
  response.once('close', () => clearInterval(timer))
}

// Answers by the first part of the path. Every other path is read and never answered.
const answers: Record<string, (response: ServerResponse) => unknown> = {
  accept: (response) => response.end(),
  fail: (response) => response.writeHead(503).end(),
  drip,
  value: (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ list: [{ a: `${'a'.repeat(60)}!` }] })),
}

const server = createServer((incoming, response) => {
  const name = incoming.url?.split('/')[1]?.split('?')[0] ?? ''
  count(facts.received, name)
  count(facts.open, name)
  response.once('close', () => count(facts.open, name, -1))
  incoming.resume().once('end', () => answers[name]?.(response))
}).listen(0, '127.0.0.1')
await once(server, 'listening')

const answerMaxMs = 180_000
// Another address than that of the quiet workspace, because there are limits by address.
const agent = new Agent({
  connections: 400,
  connect: { localAddress: '127.0.0.2' },
  headersTimeout: answerMaxMs,
  bodyTimeout: answerMaxMs,
})
const bodyOf = createBodies()
const pauseAfterErrorMs = 50

const sendOne = async ({ method, urls, headers, body }: Sending, number: number): Promise<void> => {
  const url = urls[number % urls.length]!.replace('{docId}', newId())
  try {
    const { statusCode, body: answer } = await request(url, { method, headers, body: bodyOf(body) ?? null, dispatcher: agent })
    await answer.dump()
    count(facts.answers, String(statusCode))
  } catch {
    count(facts.answers, 'no answer')
    await delay(pauseAfterErrorMs)
  }
}

let running = new AbortController()
let sending: Promise<unknown>[] = []

/** Sends until it is told to stop, or until `count` requests are answered. */
const send = async (what: Sending): Promise<void> => {
  const { signal } = running
  const { parallel, perSecond, count: most = Infinity } = what
  let number = 0
  if (parallel !== undefined) {
    const client = async () => {
      while (!signal.aborted && number < most) await sendOne(what, number++)
    }
    await Promise.all(Array.from({ length: parallel }, client))
  }
  if (perSecond !== undefined) {
    const sent: Promise<void>[] = []
    for (const startedAt = performance.now(); !signal.aborted && number < most; number += 1) {
      await delay(Math.max(0, startedAt + (number * 1_000) / perSecond - performance.now()))
      sent.push(sendOne(what, number))
    }
    await Promise.all(sent)
  }
}

const stop = async () => {
  running.abort()
  await Promise.race([Promise.all(sending), delay(2_000)])
  running = new AbortController()
  sending = []
}

const perform = async (command: Command): Promise<void> => {
  if (command.verb === 'run') await Promise.all(command.sendings.map(send))
  if (command.verb === 'begin') sending.push(...command.sendings.map(send))
  if (command.verb === 'end') await stop()
  if (command.verb === 'forget') {
    facts.answers = {}
    facts.received = {}
  }
}

process.on('message', (command: Command) => {
  const reply: (outcome: Omit<Reply, 'id'>) => void = (outcome) => process.send?.({ id: command.id, ...outcome })
  perform(command).then(
    () => reply({ facts }),
    (thrown: unknown) => reply({ facts, error: String(thrown) }),
  )
})
process.on('disconnect', () => process.exit())
process.send?.({ id: 0, facts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
