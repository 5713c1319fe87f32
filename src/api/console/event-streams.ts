import { PassThrough } from 'node:stream'
import type { Context } from 'koa'
import type { Metric } from 'prom-client'
import { createConcurrencyLimit } from '../../base/concurrency-limit.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { gaugeOf } from '../../base/metrics.ts'
import type { Actor } from '../../security/api-keys.ts'
import { changeKinds, type ReadVersions, type Versions } from './changes.ts'

const streamLimits = {
  /** Pages that listen at one process. Others ask by themselves. */
  maxStreams: 1_000,
  maxStreamsPerWorkspace: 200,
  maxStreamsPerActor: 20,
  /** Interval at which changes are looked for. */
  intervalMs: 1_000,
  /** Shorter than the idle timeouts of proxies and of the HTTP server. */
  heartbeatMs: 15_000,
}

interface Stream {
  workspaceId: string
  body: PassThrough
}

const retryAfterSeconds = 60
// A browser that reads no more gets no more.
const unreadMaxBytes = 64 * 1_024

const stopping = () => new AppError('unavailable', 'This process is about to stop.', { retryAfterSeconds })

/**
 * Creates the streams of server-sent events by which pages of the console learn that something has changed. All streams of a process share
 * one query per interval, and none is made while no page listens.
 */
export const createEventStreams = (readVersions: ReadVersions, log: Log, otherLimits: Partial<typeof streamLimits> = {}) => {
  const limits = { ...streamLimits, ...otherLimits }
  const streams = new Set<Stream>()
  const places = createConcurrencyLimit(() => ({
    total: limits.maxStreams,
    perWorkspace: limits.maxStreamsPerWorkspace,
    perCaller: limits.maxStreamsPerActor,
  }))
  // By workspace, while it has a stream.
  const known = new Map<string, Versions>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const send = ({ body }: Stream, text: string) => {
    if (body.writableLength <= unreadMaxBytes) body.write(text)
    else body.destroy()
  }

  const listWorkspaces = () => new Set([...streams].map(({ workspaceId }) => workspaceId))

  const remember = (versions: Map<string, Versions>) => {
    const listened = listWorkspaces()
    for (const [workspaceId, current] of versions) if (listened.has(workspaceId)) known.set(workspaceId, current)
  }

  const check = async () => {
    const current = await readVersions([...listWorkspaces()])
    for (const stream of streams) {
      const [before, now] = [known.get(stream.workspaceId), current.get(stream.workspaceId)]
      if (!before || !now) continue
      const changed = changeKinds.filter((kind) => before[kind] !== now[kind])
      if (changed.length > 0) send(stream, `event: change\ndata: ${JSON.stringify({ changed })}\n\n`)
    }
    remember(current)
  }

  const schedule = () => {
    if (timer || isClosed || streams.size === 0) return
    timer = setTimeout(() => {
      check()
        // The page asks from time to time anyway.
        .catch((thrown: unknown) => log.debug({ err: thrown }, 'changes could not be read for the streams of the console'))
        .finally(() => {
          timer = undefined
          schedule()
        })
    }, limits.intervalMs)
  }

  const gauge = gaugeOf('relay_event_streams', 'Pages of the console that listen for changes', () => streams.size)

  return {
    metrics: [gauge] as Metric[],

    /**
     * Answers a request with a stream that ends with the session.
     * @param isSignedIn asked with every heartbeat
     * @throws AppError 429 if the key, the person or the workspace has too many streams, 503 if the process has
     */
    open: async (context: Context, { type, id, workspace }: Actor, isSignedIn: () => Promise<boolean>): Promise<void> => {
      if (isClosed) throw stopping()
      const work = { workspaceId: workspace.id, caller: `${type} ${id}`, what: 'streams of events', retryAfterSeconds }
      const leave = places.enter(work)
      context.type = 'text/event-stream'
      // Proxies would collect the events before they pass them on, to compress them or to fill a buffer.
      context.set({ 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' })
      context['compress'] = false
      context.status = 200
      if (context.method === 'HEAD') return leave()

      const stream: Stream = { workspaceId: workspace.id, body: new PassThrough() }
      const heartbeat = setInterval(() => {
        isSignedIn().then(
          (isStill) => (isStill ? send(stream, ': still here\n\n') : stream.body.end()),
          // Changes are not known while the database is unavailable.
          () => send(stream, ': still here\n\n'),
        )
      }, limits.heartbeatMs)
      stream.body.once('close', () => {
        clearInterval(heartbeat)
        streams.delete(stream)
        leave()
        if (!listWorkspaces().has(workspace.id)) known.delete(workspace.id)
      })
      streams.add(stream)
      try {
        // Before the answer: a page loads its data when the stream is open, and learns of every change after that.
        if (!known.has(workspace.id)) remember(await readVersions([workspace.id]))
        if (isClosed) throw stopping()
      } catch (thrown) {
        stream.body.destroy()
        throw thrown
      }
      send(stream, ': open\n\n')
      context.body = stream.body
      schedule()
    },

    /** Ends all streams. */
    close: async (): Promise<void> => {
      isClosed = true
      clearTimeout(timer)
      for (const { body } of streams) body.end()
    },
  }
}

export type EventStreams = ReturnType<typeof createEventStreams>
