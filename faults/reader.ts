import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Workspace } from './load.ts'
import type { Query } from './postgres.ts'

interface Seen {
  id: string
  event: string
  documentId: string
}

interface Answer {
  data: { id: string; attributes: { event: string; data: { document_id?: string } } }[]
  meta: { next_cursor: string; has_more: boolean }
}

/** Programs that follow the events of a workspace: one asks for them, and one is sent them by a subscription. */
export interface Reader {
  /** Stops asking. */
  stop(): Promise<void>
  /** Reads to the end, and compares what was read with the database. @returns what is wrong; nothing if all is well */
  check(query: Query, deadline: number): Promise<string[]>
  close(): Promise<void>
}

const answerTimeoutMs = 15_000
const waitSeconds = 5
const eventTypes = ['document.received', 'document.delivered', 'document.failed', 'delivery.delivered', 'delivery.failed']

const idText = `lpad(to_hex(epoch), 13, '0') || lpad(to_hex(transaction), 12, '0') || lpad(to_hex(number), 12, '0')`

/** Returns how many ids come after one that should come later. */
const countDisorder = (ids: string[]): number => ids.filter((id, index) => index > 0 && id <= ids[index - 1]!).length

/** Returns the documents whose events are in an impossible order. */
const findDisordered = (seen: Seen[]): string[] =>
  [...Map.groupBy(seen, ({ documentId }) => documentId)].flatMap(([documentId, events]) => {
    const names = events.map(({ event }) => event)
    const ended = names.indexOf('document.delivered')
    const isRight = names[0] === 'document.received' && (ended === -1 || names.indexOf('delivery.delivered') < ended)
    return documentId === '' || isRight ? [] : [documentId]
  })

/** Starts both, at the beginning of a row. They go on through its fault as programs do: they ask, or store, again. */
export const startReader = async (baseUrls: string[], { apiPath, key }: Workspace): Promise<Reader> => {
  const call = async (index: number, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${baseUrls[index % baseUrls.length]}${apiPath}${path}`, {
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(answerTimeoutMs),
    })
    if (response.ok) return response.json()
    const { status } = response
    throw Object.assign(new Error(`${path} was answered ${status} ${await response.text()}`), { status })
  }

  // Each event once, without repetitions.
  const sent: string[] = []
  const received = new Set<string>()
  const server: Server = createServer((request, response) => {
    const id = String(request.headers['webhook-id'])
    if (!received.has(id)) sent.push(id)
    received.add(id)
    request.resume().on('end', () => response.end())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const inbox = { name: 'Events', connector_type: 'webhook', config: { url }, credentials: {} }
  const { data: destination } = (await call(0, '/destinations', inbox)) as { data: { id: string } }
  const { data: subscription } = (await call(0, '/event-subscriptions', {
    name: 'Events',
    events: eventTypes,
    destination_id: destination.id,
  })) as { data: { attributes: { cursor: string } } }

  const seen: Seen[] = []
  let cursor = subscription.attributes.cursor
  const begin = cursor
  let asked = 0
  const problems = new Set<string>()
  /** Asks for what comes after the cursor. If the database does not have its event, the reader goes on at the end, as the answer says. */
  const ask = async (seconds: number): Promise<boolean> => {
    asked += 1
    const answer = await call(asked, `/events?after=${cursor}&per_page=100&wait_seconds=${seconds}`).catch((thrown: unknown) => {
      if ((thrown as { status?: number }).status !== 410) throw thrown
    })
    if (answer === undefined) {
      problems.add('the database does not have the event of a cursor')
      cursor = 'latest'
      return true
    }
    const { data, meta } = answer as Answer
    seen.push(...data.map(({ id, attributes: { event, data: values } }) => ({ id, event, documentId: values.document_id ?? '' })))
    cursor = meta.next_cursor
    return meta.has_more || data.length > 0
  }
  const stopped = new AbortController()
  const follow = async () => {
    while (!stopped.signal.aborted) await ask(waitSeconds).catch(() => pause(250))
  }
  const following = follow()
  const stop = async () => {
    stopped.abort()
    await following
  }

  return {
    stop,

    check: async (query, deadline) => {
      await stop()
      while (await ask(0)) if (Date.now() > deadline) break
      const stored = await query<{ id: string; type: string }>(
        `select id, type from (select *, ${idText} as id from events) as events
         where workspace_id = (select workspace_id from event_subscriptions where destination_id = $1) and id > $2 order by id`,
        [destination.id, begin],
      )
      const storedIds = stored.map(({ id }) => id)
      const wanted = stored.filter(({ type }) => eventTypes.includes(type)).map(({ id }) => id)
      const missing = () => wanted.filter((id) => !received.has(id))
      while (missing().length > 0 && Date.now() < deadline) await pause(250)
      const read = new Set(seen.map(({ id }) => id))
      const count = (number: number, text: string) => (number > 0 ? [`${number} ${text}`] : [])
      return [
        ...problems,
        ...count(storedIds.filter((id) => !read.has(id)).length, 'events missed by the reader'),
        ...count(seen.length - read.size, 'events read twice'),
        ...count(countDisorder(seen.map(({ id }) => id)), 'events read in the wrong order'),
        ...count(findDisordered(seen).length, 'documents whose events are in the wrong order'),
        ...count(missing().length, 'events not sent to the subscription'),
        ...count(countDisorder(sent), 'events sent in the wrong order'),
        ...(storedIds.length === 0 ? ['no events'] : []),
      ]
    },

    close: async () => {
      await stop()
      server.closeAllConnections()
      server.close()
    },
  }
}
