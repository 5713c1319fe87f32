import { readFile } from 'node:fs/promises'
import { auditEvents } from '../../src/domain/audit-events.ts'

test('the page lists every event of the audit log, with its subject, and no other', async () => {
  const page = await readFile(new URL('../../docs/audit-log.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| ((?:`[a-z_]+\.[a-z_]+`(?:, )?)+) \| `(\w+)` \|/gm)]
  const listed = rows.flatMap(([, names = '', subject]) => [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => [name!, subject] as const))
  expect(Object.fromEntries(listed)).toEqual(auditEvents)
  expect(listed).toHaveLength(Object.keys(auditEvents).length)
})
