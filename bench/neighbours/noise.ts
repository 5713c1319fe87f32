import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Body } from './bodies.ts'

/** Requests that are sent until the noise ends. */
export interface Sending {
  method: 'GET' | 'PUT' | 'POST'
  /** Taken in turn. `{docId}` is replaced by a new id. */
  urls: string[]
  headers?: Record<string, string>
  body?: Body
  /** This many at a time, each sent when the one before is answered. */
  parallel?: number
  /** This many a second, whatever becomes of the earlier ones. */
  perSecond?: number
  /** Ends after this many. */
  count?: number
}

/** What has become of the noise. */
export interface NoiseFacts {
  /** Requests by the status of their answer. */
  answers: Record<string, number>
  /** Requests to the servers of the noise, by the first part of their path. */
  received: Record<string, number>
  /** The requests that are not answered yet. */
  open: Record<string, number>
}

export interface Command {
  id: number
  verb: 'run' | 'begin' | 'end' | 'facts' | 'forget'
  sendings: Sending[]
}

export interface Reply {
  id: number
  facts: NoiseFacts
  /** The first message has the address of the servers. */
  url?: string
  error?: string
}

/** The process that makes noise. */
export interface NoiseProcess {
  /** Address of its servers. The first part of a path says what is answered: `accept`, `fail`, `drip`, `value`, or nothing. */
  url: string
  /** Sends these, which have a `count`, and waits for their answers. */
  run(...sendings: Sending[]): Promise<void>
  begin(...sendings: Sending[]): Promise<void>
  /** Stops what was begun. */
  end(): Promise<void>
  facts(): Promise<NoiseFacts>
  /** Counts from 0 again. */
  forget(): Promise<void>
  stop(): Promise<void>
}

/** Starts the process that makes noise. */
export const startNoise = async (): Promise<NoiseProcess> => {
  const child = fork(fileURLToPath(new URL('./noise-process.ts', import.meta.url)), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const [{ url }] = (await once(child, 'message')) as [Reply]
  const waiting = new Map<number, (reply: Reply) => void>()
  child.on('message', (reply: Reply) => {
    waiting.get(reply.id)?.(reply)
    waiting.delete(reply.id)
  })
  let lastId = 0
  const tell = async (verb: Command['verb'], sendings: Sending[] = []): Promise<NoiseFacts> => {
    const { promise, resolve } = Promise.withResolvers<Reply>()
    lastId += 1
    waiting.set(lastId, resolve)
    child.send({ id: lastId, verb, sendings } satisfies Command)
    const { facts, error } = await promise
    if (error !== undefined) throw new Error(`The noise ended: ${error}`)
    return facts
  }
  return {
    url: url!,
    run: async (...sendings) => void (await tell('run', sendings)),
    begin: async (...sendings) => void (await tell('begin', sendings)),
    end: async () => void (await tell('end')),
    facts: () => tell('facts'),
    forget: async () => void (await tell('forget')),
    stop: async () => {
      child.kill()
      await once(child, 'exit')
    },
  }
}
