import { setTimeout as delay } from 'node:timers/promises'
import { createKey } from '../../src/access/key-administration.ts'
import { createWorkspace } from '../../src/workspace/administration.ts'
import { createTestDatabase } from '../support/database.ts'
import { relayVariables, startRelayProcess } from '../support/relay-process.ts'
import { insertEntries } from './audit-entries.ts'

const MiB = 1024 * 1024

test('an export of 100,000 rows to a slow client needs less than 64 MiB of memory', async () => {
  const database = await createTestDatabase()
  const { id } = await createWorkspace(database.db, 'acme/large')
  const { key } = await createKey(database.db, { workspace: 'acme/large', level: 'viewer' })
  await insertEntries(database.db, id, 100_000, 60)
  // As autovacuum does it soon. Until then, PostgreSQL sorts all rows for each part of the export.
  await database.db.raw('analyze audit_logs')
  const before = (await database.db('audit_logs').where({ workspace_id: id }).orderBy('id').offset(5_000).limit(1).pluck('id'))[0] as string
  // An export does not need Temporal, so this address is never contacted.
  // The heap is small, so that garbage which V8 has not collected yet is not taken for memory that the export needs.
  const variables = { ...relayVariables(database, { address: '127.0.0.1:1' }), NODE_OPTIONS: '--max-old-space-size=96' }
  const relay = await startRelayProcess('api', variables)
  const ask = (query: string) =>
    fetch(`${relay.baseUrl}/api/acme/large/audit-logs.csv${query}`, { headers: { authorization: `Bearer ${key}` } })
  try {
    // Warm up with small exports: the test measures the additional memory of many rows.
    for (let few = 0; few < 3; few += 1) await (await ask(`?before=${before}`)).text()
    const peak = (await relay.memory()).peak
    const answer = await ask('')
    let lines = 0
    let pauses = 0
    for await (const chunk of answer.body!) {
      lines += chunk.filter((byte: number) => byte === 0x0a).length
      pauses += 1
      if (pauses < 20) await delay(50)
    }
    expect(lines).toBe(100_000 + 1)
    expect((await relay.memory()).peak - peak).toBeLessThan(64 * MiB)
  } finally {
    await relay.kill()
    await database.drop()
  }
})
