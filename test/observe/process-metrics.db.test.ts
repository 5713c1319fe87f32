import { tmpdir } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Metric } from 'prom-client'
import { openDatabase } from '../../src/db/database.ts'
import { createDataDirMetric, createPollersMetric, createPools } from '../../src/observe/metrics.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const database = share(await createTestDatabase())

const valuesOf = async (metric: Metric) => (await metric.get()).values.map(({ value }) => value)

test('the connections of all pools are counted, and the statements that wait for one until they have it', async () => {
  const open = () => openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 2 }, 'test')
  const [db, other] = [open(), open()]
  const { metric, watch } = createPools()
  watch(db)
  watch(other)

  const held = await Promise.all([db.transaction(), db.transaction(), other.transaction()])
  const settled = Promise.all([db.raw('select 1'), db.raw('select 2'), db.raw('select 3')])
  await until('three statements wait', async () => (await valuesOf(metric))[2] === 3)
  expect(await valuesOf(metric)).toEqual([3, 0, 3])

  for (const transaction of held) await transaction.rollback()
  await settled
  await until('all connections are free', async () => (await valuesOf(metric))[0] === 0)
  expect(await valuesOf(metric)).toEqual([0, 3, 0])
  await db.destroy()
  await other.destroy()
})

test('Temporal is asked once for many readers, and NaN says that it does not answer', async () => {
  let asked = 0
  const list = async () => {
    asked += 1
    await delay(10)
    return ['one', 'two']
  }
  const metric = createPollersMetric('document-relay', list)
  const values = await Promise.all([valuesOf(metric), valuesOf(metric), valuesOf(metric)])
  expect({ values, asked }).toEqual({ values: [[2], [2], [2]], asked: 1 })

  const silent = createPollersMetric('document-relay', async () => {
    throw new Error('4 DEADLINE_EXCEEDED')
  })
  expect(await valuesOf(silent)).toEqual([Number.NaN])
})

test('the free bytes of a directory are positive, and those of a missing one are NaN', async () => {
  expect((await valuesOf(createDataDirMetric(tmpdir())))[0]).toBeGreaterThan(0)
  expect(await valuesOf(createDataDirMetric('/missing/directory'))).toEqual([Number.NaN])
})
