import { newId } from '../../src/base/ids.ts'
import { openDatabase } from '../../src/db/database.ts'
import { addMessages, createOutbox, type OutboxMessage, type Sent } from '../../src/db/outbox.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { dueMessages } from '../support/outbox.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())
const { db } = database

const notice = (): OutboxMessage => ({
  kind: 'startNotice',
  input: { noticeId: newId(), workspaceId: newId(), workspace: 'acme/main' } as never,
})

afterEach(async () => {
  await db('outbox').delete()
})

test('no connection and no row is held while Temporal is asked', async () => {
  const message = notice()
  await db.transaction((trx) => addMessages(trx, [message]))
  const config = { ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1, acquireTimeoutMs: 2_000 }
  await using own = disposable(openDatabase(config, 'outbox'), (opened) => opened.destroy())
  const send = async (): Promise<Sent> => {
    // The only connection of the pool is free, and the row is not locked.
    await own.raw('select 1')
    await own.transaction(async (trx) => {
      await trx.raw(`set local lock_timeout = '2s'`)
      await trx('outbox').forUpdate().select('key')
    })
    return 'sent'
  }
  expect(await createOutbox(own).sendDue({ ageMs: 0, limit: 10 }, send)).toEqual(['sent'])
  expect(await dueMessages(db)).toEqual([])
})

test('what is sent is removed, what is refused comes later, and what cannot be sent stays due', async () => {
  const outcomes: Sent[] = ['sent', 'refused', 'unavailable']
  await db.transaction((trx) => addMessages(trx, outcomes.map(notice)))
  let next = 0
  expect((await createOutbox(db).sendDue({ ageMs: 0, limit: 10 }, async () => outcomes[next++]!)).toSorted()).toEqual(outcomes.toSorted())
  expect(await dueMessages(db)).toHaveLength(1)
  expect(await db('outbox')).toHaveLength(2)
})
