import { createReceive } from '../../src/archive/receive.ts'
import { keepsWorkflow } from '../../src/delivery/retry-window.ts'
import { addSlots } from '../../src/delivery/slots.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { readingOf, statementsOf } from '../support/plans.ts'
import { share } from '../support/share.ts'

const { db } = share(await createTestDatabase())

/** Creates a destination with failed deliveries. @returns its id, and the function that asks about one of them */
const arrange = async (failed: number) => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const destinationId = routes.destinations['archive']!
  await addSlots(db, destinationId, { maxConcurrent: 1, maxPerMinute: 0 })
  for (let index = 0; index < failed; index += 1) await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  await db('deliveries').where({ destination_id: destinationId }).update({ status: 'failed' })
  return { destinationId, keeps: (max?: number) => keepsWorkflow(db, destinationId, max) }
}

describe('the workflow of a failed delivery', () => {
  test('stays open while few deliveries of its destination have failed, whatever happens at others', async () => {
    const [two, three] = [await arrange(2), await arrange(3)]
    expect([await two.keeps(2), await three.keeps(2)]).toEqual([true, false])
    expect(await three.keeps()).toBe(true)
    await db('deliveries').where({ destination_id: three.destinationId }).update({ status: 'retrying' })
    expect(await three.keeps(2)).toBe(true)
  })

  test.each([
    ['closed', true],
    ['open', false],
    ['half_open', false],
  ])('behind a circuit that is %s stays open: %s', async (circuit, expected) => {
    const { destinationId, keeps } = await arrange(1)
    await db('destination_gates').where({ destination_id: destinationId }).update({ circuit })
    expect(await keeps()).toBe(expected)
  })

  test('stays open if the database does not say how many there are: the failure is recorded, and is not repeated', async () => {
    const away = await createTestDatabase()
    await away.drop()
    expect(await keepsWorkflow(away.db, 'archive')).toBe(true)
  })

  // The newest half has failed. With 100,000 deliveries, an index in the order of documents was read past 25,000 others.
  test('is asked about without reading the other deliveries of its destination', async () => {
    const { workspaceId, repositoryId } = await createRoutes(db, [{ name: 'archive' }])
    const rows = 'generate_series(1, 40000) as n'
    const values = { workspaceId, repositoryId }
    await db.raw(
      `insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
      select 'D' || n, :workspaceId, 'A', 'webhook', '{}', '' from generate_series(0, 1) as n`,
      values,
    )
    await db.raw(
      `insert into documents (id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
      select 'X' || lpad(n::text, 6, '0'), :workspaceId, :repositoryId, 'A', n, 'data', 'text/plain', 1, case when n > 20000 then 'failed' else 'delivered' end, now(), now(), ''
      from ${rows}`,
      values,
    )
    await db.raw(
      `insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path, needs_attention)
      select 'X' || lpad(n::text, 6, '0'), 'D' || n % 2, :workspaceId, 'C', case when n > 20000 then 'failed' else 'delivered' end, 'a', n > 20000 from ${rows}`,
      values,
    )
    await db.raw('analyze deliveries')
    const asked = await statementsOf(db, async () => expect(await keepsWorkflow(db, 'D1')).toBe(false))
    const { pages } = await readingOf(db, asked[0]!)
    expect(pages).toBeLessThan(150)
  })
})
