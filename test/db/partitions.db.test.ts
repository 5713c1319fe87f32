import { createLog } from '../../src/base/log.ts'
import { ensurePartitions, keepPartitions, listPartitionEnds, listPartitions, listTablesWithoutPartition } from '../../src/db/partitions.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

test('an API process creates missing partitions at its start, and again later', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  // The template of the database may be from the day before.
  await ensurePartitions(db, new Date())
  const ends = await listPartitionEnds(db)
  const dropLast = async () => {
    const names = (await listPartitions(db, 'captured_requests')).map(({ name }) => name)
    await db.raw('drop table ??', [names.at(-1)!])
    expect(await listPartitionEnds(db)).not.toEqual(ends)
  }
  const isComplete = async () => JSON.stringify(await listPartitionEnds(db)) === JSON.stringify(ends)
  await dropLast()
  const stop = keepPartitions(db, createLog('silent'), 50)
  await until('the partitions of the start exist', isComplete)
  await stop()
  await dropLast()
  await keepPartitions(db, createLog('silent'))()
  expect(await isComplete()).toBe(true)
})

test('a gap in the partitions counts as their end', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const names = (await listPartitions(db, 'captured_requests')).map(({ name }) => name)
  await db.raw('drop table ??', [names.at(-4)!])
  const [requests] = await listPartitionEnds(db)
  expect(await listTablesWithoutPartition(db, requests!.end)).toEqual(['captured_requests'])
  expect(await listTablesWithoutPartition(db, new Date(requests!.end.getTime() - 1))).toEqual([])
})
