// Takes events from the queue of events-to-queue.mjs. Any number of these programs can run: each event is taken by one of them, and is taken
// again if that one ends before it has done its work.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'

const database = new Client({ connectionString: process.env.DATABASE_URL })
await database.connect()
await database.query('listen event_queue')
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stopping.abort())

/** The work: here, a line. Its `id` tells it whether it has done an event before. */
const work = async ({ id, event, data }) => console.log(JSON.stringify({ id, event, ...data }))

/** @returns false if no event is open */
const takeOne = async () => {
  await database.query('begin')
  const { rows } = await database.query('select * from event_queue where done_at is null order by id limit 1 for update skip locked')
  if (rows.length > 0) {
    await work(rows[0])
    await database.query('update event_queue set done_at = now() where id = $1', [rows[0].id])
  }
  await database.query('commit')
  return rows.length > 0
}

while (!stopping.signal.aborted) {
  // Before the look, so that no notification is missed. A minute without one is no proof that there is nothing.
  const waiting = new AbortController()
  const signal = AbortSignal.any([waiting.signal, stopping.signal])
  const woken = Promise.race([once(database, 'notification', { signal }), sleep(60_000, undefined, { signal })]).catch(() => undefined)
  if (!(await takeOne())) await woken
  waiting.abort()
}
await database.end()
