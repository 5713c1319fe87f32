// Carries the events of a workspace into a queue: a table of PostgreSQL that wakes its readers with NOTIFY. `npm install pg`, then
//   RELAY_URL=https://relay.example RELAY_WORKSPACE=acme/invoices RELAY_API_KEY=... DATABASE_URL=postgres://... node events-to-queue.mjs
// Event and cursor are committed together, so that each event is in the queue once, also after a crash of this program.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'

const { RELAY_URL, RELAY_WORKSPACE, RELAY_API_KEY, DATABASE_URL } = process.env
const source = `${RELAY_URL}/api/${RELAY_WORKSPACE}`
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stopping.abort())

const database = new Client({ connectionString: DATABASE_URL })
await database.connect()
await database.query(`
  create table if not exists event_queue (id text primary key, event text not null, occurred_at timestamptz not null, data jsonb not null, done_at timestamptz);
  create index if not exists event_queue_open on event_queue (id) where done_at is null;
  create table if not exists event_cursor (source text primary key, after text not null)`)

// Two copies of this program would carry the same events. The second one waits until the first has ended.
await database.query('select pg_advisory_lock(hashtextextended($1, 0))', [source])

/** Returns the events after a cursor, and waits up to 30 seconds for one. Without a cursor, it begins with the oldest event that is kept. */
const readEvents = async (after) => {
  const query = new URLSearchParams({ wait_seconds: '30', per_page: '100', ...(after !== undefined && { after }) })
  for (;;) {
    const answer = await fetch(`${source}/events?${query}`, {
      headers: { authorization: `Bearer ${RELAY_API_KEY}` },
      signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(60_000)]),
    }).catch((error) => (stopping.signal.aborted ? Promise.reject(error) : { status: 0, statusText: String(error) }))
    if (answer.status === 200) return answer.json()
    // The relay is not there, or has too much to do. Every other answer is one that a repetition does not change.
    if (answer.status !== 0 && answer.status !== 429 && answer.status < 500) {
      throw new Error(`The relay answers ${answer.status}: ${await answer.text()}`)
    }
    console.error(`No events: ${answer.status} ${answer.statusText}`)
    await sleep(1_000 * Number(answer.headers?.get('retry-after') ?? 5), undefined, { signal: stopping.signal })
  }
}

/** Puts events into the queue, with the cursor behind them. */
const store = async (events, after) => {
  await database.query('begin')
  for (const { id, attributes } of events) {
    await database.query('insert into event_queue (id, event, occurred_at, data) values ($1, $2, $3, $4) on conflict (id) do nothing', [
      id,
      attributes.event,
      attributes.created_at,
      attributes.data,
    ])
  }
  await database.query('insert into event_cursor values ($1, $2) on conflict (source) do update set after = excluded.after', [
    source,
    after,
  ])
  if (events.length > 0) await database.query('notify event_queue')
  await database.query('commit')
}

const { rows } = await database.query('select after from event_cursor where source = $1', [source])
let after = rows[0]?.after
try {
  while (!stopping.signal.aborted) {
    const { data, meta } = await readEvents(after)
    if (data.length > 0 || meta.next_cursor !== after) await store(data, meta.next_cursor)
    after = meta.next_cursor
  }
} catch (error) {
  if (!stopping.signal.aborted) {
    console.error(error.message)
    process.exitCode = 1
  }
} finally {
  await database.end()
}
