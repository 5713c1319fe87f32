import { idPrefixAt, newId } from '../../src/base/ids.ts'
import { record, systemActor, type AuditActor } from '../../src/db/audit.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { auditEventNames, type AuditEvent } from '../../src/domain/audit-events.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { database, api, acme, other } = share(await startScene())

const ada = newId()
const subject = newId()

const write = (workspaceId: string, event: AuditEvent, subjectId: string = newId(), actor: AuditActor = systemActor) =>
  database.db.transaction((trx) =>
    record(trx, { workspaceId, event, subjectId, description: `Test entry: ${event}`, metadata: { repo_id: 'A1' }, actor }),
  )
const keyOfAda: AuditActor = { type: 'api_key', id: 'K1', name: 'Night batch', userId: ada }

beforeAll(async () => {
  await database.db('audit_logs').delete()
  for (const event of auditEventNames) await write(acme.id, event)
  await write(acme.id, 'settings.updated', newId(), { type: 'user', id: 'P1', name: 'Müller', userId: null })
  await write(acme.id, 'repository.updated', subject, keyOfAda)
  await write(acme.id, 'repository.deleted', subject, keyOfAda)
  await write(other.id, 'repository.created', subject, keyOfAda)
})

const events = async (query: string): Promise<AuditEvent[]> => {
  const { status, json } = await acme.call('GET', `/audit-logs?per_page=100&${query}`)
  expect(status).toBe(200)
  return json.data.map((entry: { attributes: { event: AuditEvent } }) => entry.attributes.event)
}

test('an entry has all of its attributes', async () => {
  const { json } = await acme.call('GET', '/audit-logs?per_page=1')
  expect(json).toEqual({
    data: [
      {
        id: expect.stringMatching(/^[0-9A-Z]{26}$/),
        type: 'audit_log',
        attributes: {
          event: 'repository.deleted',
          subject_type: 'Repository',
          subject_id: subject,
          description: 'Test entry: repository.deleted',
          metadata: { repo_id: 'A1', key_id: 'K1', key_name: 'Night batch' },
          user_id: ada,
          actor_type: 'api_key',
          created_at: expect.any(String),
        },
      },
    ],
    meta: { per_page: 1, next_cursor: json.data[0].id },
  })
})

test('the list is ordered newest first, and a viewer can read it', async () => {
  const answer = await api.call('GET', `${acme.path}/audit-logs?per_page=100`, { key: acme.keys.viewer })
  const ids = answer.json.data.map(({ id }: { id: string }) => id)
  expect(ids).toHaveLength(auditEventNames.length + 3)
  expect(ids).toEqual(ids.toSorted().toReversed())
})

test.each([
  ['event=cert.received', ['cert.received']],
  ['event_prefix=cert.', ['cert.deleted', 'cert.deactivated', 'cert.activated', 'cert.received']],
  ['event_prefix=cert.&event=rfc.call', []],
  ['event_prefix=%25', []],
  [
    'subject_type=Repository',
    [
      'repository.deleted',
      'repository.updated',
      'repository.deletions_repeated',
      'repository.checked',
      'repository.test_document_sent',
      'repository.deleted',
      'repository.updated',
      'repository.created',
    ],
  ],
  ['subject_type=Repository&event_prefix=repository.u', ['repository.updated', 'repository.updated']],
  [`subject_id=${subject}`, ['repository.deleted', 'repository.updated']],
  [`subject_id=${subject}&event=repository.updated`, ['repository.updated']],
  [`subject_id=${subject}&subject_type=Certificate`, []],
  ['subject_id=nobody', []],
  [`user_id=${ada}`, ['repository.deleted', 'repository.updated']],
  [`user_id=${ada}&event_prefix=repository.d`, ['repository.deleted']],
  [`user_id=${ada}&event=cert.received`, []],
  ['actor=night%20BATCH', ['repository.deleted', 'repository.updated']],
  ['actor=Night%20batch&event_prefix=repository.d', ['repository.deleted']],
  ['actor=m%C3%BCLLER', ['settings.updated']],
  ['actor=Night', []],
  ['date_from=2999-01-01', []],
  ['date_to=2020-01-01', []],
  ['date_from=0001-01-01&date_to=9999-12-31&event=rfc.call', ['rfc.call']],
])('the filter %s finds the matching entries', async (query, expected) => {
  expect(await events(query)).toEqual(expected)
})

test('date_from and date_to are inclusive to the millisecond', async () => {
  const { json } = await acme.call('GET', '/audit-logs?event=rfc.call')
  const { created_at: moment } = json.data[0].attributes
  const beside = (milliseconds: number) => new Date(Date.parse(moment) + milliseconds).toISOString()
  expect(await events(`event=rfc.call&date_from=${moment}&date_to=${moment}`)).toEqual(['rfc.call'])
  expect(await events(`event=rfc.call&date_from=${beside(1)}`)).toEqual([])
  expect(await events(`event=rfc.call&date_to=${beside(-1)}`)).toEqual([])
})

test('following next_cursor returns every entry once, and it is null after a full last page', async () => {
  const seen: string[] = []
  let cursor: string | null = null
  const pages: number[] = []
  do {
    const { json } = await acme.call('GET', `/audit-logs?event_prefix=cert.&per_page=2${cursor ? `&before=${cursor}` : ''}`)
    seen.push(...json.data.map(({ id }: { id: string }) => id))
    pages.push(json.data.length)
    cursor = json.meta.next_cursor
  } while (cursor)
  expect({ pages, distinct: new Set(seen).size }).toEqual({ pages: [2, 2], distinct: 4 })

  const first = await acme.call('GET', '/audit-logs?subject_type=Repository&per_page=4')
  expect(first.json.meta).toEqual({ per_page: 4, next_cursor: first.json.data[3].id })
  const second = await acme.call('GET', `/audit-logs?subject_type=Repository&per_page=4&before=${first.json.meta.next_cursor}`)
  expect({ rows: second.json.data.length, meta: second.json.meta }).toEqual({ rows: 4, meta: { per_page: 4, next_cursor: null } })
})

test('a reader that follows with after gets every entry once, oldest first, and none of the last minute', async () => {
  const hourMs = 3_600_000
  const start = Date.parse('2026-03-02T10:00:00Z')
  const future = new Date(Date.now() + hourMs)
  const followed = await api.tenant('acme/followed')
  await database.db('audit_logs').where({ workspace_id: followed.id }).delete()
  const times = [0, 1, 2, 3, 4].map((hour) => new Date(start + hour * hourMs))
  for (const time of [...times, future]) await ensurePartitions(database.db, time)
  const ids = [...times, future].map((time) => idPrefixAt(time).padEnd(26, '0'))
  const names: AuditEvent[] = ['cert.received', 'cert.deleted', 'rfc.call', 'cert.received', 'cert.deleted', 'cert.received']
  const rows = ids.map((id, index) => ({
    id,
    workspace_id: followed.id,
    event: names[index],
    subject_type: 'Certificate',
    subject_id: subject,
    description: '',
    user_id: ada,
    actor_type: 'user',
  }))
  await database.db('audit_logs').insert(rows)

  const read = async (query: string) => {
    const seen: string[][] = []
    let path: string | undefined = `/audit-logs?${query}&after=${'0'.repeat(26)}`
    while (path) {
      const { json, headers } = await followed.call('GET', path)
      seen.push(json.data.map(({ id }: { id: string }) => id))
      const link = /<(.*)>; rel="next"/.exec(headers.get('link') ?? '')
      expect(json.meta.next_cursor).toBe(link ? seen.at(-1)!.at(-1) : null)
      path = link ? `/audit-logs${new URL(link[1]!).search}` : undefined
    }
    return seen
  }
  const all = ids.slice(0, -1)
  expect(await read('per_page=2')).toEqual([all.slice(0, 2), all.slice(2, 4), all.slice(4)])
  const ofCertificates = [all[0], all[1], all[3], all[4]]
  expect(await read('event_prefix=cert.&per_page=2')).toEqual([ofCertificates.slice(0, 2), ofCertificates.slice(2)])
  expect(await read(`event_prefix=cert.&user_id=${ada}`)).toEqual([ofCertificates])
  expect(await read(`event_prefix=cert.&subject_id=${subject}`)).toEqual([ofCertificates])
  const later = await followed.call('GET', `/audit-logs?after=${all.at(-1)}`)
  expect(later.json).toEqual({ data: [], meta: { per_page: 25, next_cursor: null } })
})

test.each([
  'event=cert.expired',
  'subject_type=Invoice',
  'before=yesterday',
  'after=yesterday',
  'after=00000000000000000000000000&before=00000000000000000000000000',
  'per_page=101',
  'per_page=0',
  'date_from=soon',
  'page=1',
  'colour=red',
  'event=rfc.call&event=rfc.call',
  'subject_id=%00',
])('the query %s is answered with 400', async (query) => {
  const { status, json } = await acme.call('GET', `/audit-logs?${query}`)
  expect({ status, code: json.error.code }).toEqual({ status: 400, code: 'invalid_request' })
})
