import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { record } from '../../src/db/audit.ts'
import { startApi } from '../support/api.ts'
import type { WorkspaceClient } from '../support/client.ts'
import { startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'
import { insertEntries } from './audit-entries.ts'

const MiB = 1024 * 1024
const moment = '2026-11-21T09:00:00.000Z'
const header = 'created_at,event,subject_type,subject_id,description,user_id,actor_type,metadata'

const { database, api, acme, stop } = await startScene({ limits: { endpoints: { exportLimits: { maxRows: 8_000 } } } })
const many = await api.tenant('acme/many')
// The export of 50 MB of each is larger than the buffers of a connection, 36 MiB on common Linux systems: it stays open while nobody reads.
const long = await api.tenant('acme/long')
const wide = await api.tenant('acme/wide')
afterAll(stop)

const write = (workspaceId: string, description: string, metadata: object = {}, userId: string | null = null) =>
  database.db.transaction((trx) =>
    record(trx, {
      workspaceId,
      event: 'repository.updated',
      subjectId: 'S1',
      description,
      metadata: { ...metadata },
      actor: { type: 'user', userId },
    }),
  )

const fill = (workspaceId: string, rows: number, descriptionCharacters: number) =>
  insertEntries(database.db, workspaceId, rows, descriptionCharacters)

beforeAll(async () => {
  await database.db('audit_logs').delete()
  await fill(many.id, 9_000, 100)
  await fill(long.id, 2_000, 25_000)
  await fill(wide.id, 2_000, 25_000)
})

/** Requests an export. @returns the response before its body is read */
const open = async (tenant: WorkspaceClient, headers: Record<string, string> = {}): Promise<IncomingMessage> => {
  const sent = request(`${api.baseUrl}${tenant.path}/audit-logs.csv`, {
    headers: { authorization: `Bearer ${tenant.keys.viewer}`, ...headers },
  })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

const bodyOf = async (answer: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

// Cursors are identified by their open transaction, because their state is sometimes active instead of idle.
const fromCursors = `
  from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()`

const countCursors = async () => {
  const { rows } = await database.db.raw(`select pid ${fromCursors}`)
  return rows.length as number
}

const untilNoCursor = () => until('no cursor is open', async () => (await countCursors()) === 0)

test('the export has the specified columns, is quoted as in RFC 4180, and turns formulas into text', async () => {
  await write(acme.id, 'plain', { repo_id: 'A1' }, 'U1')
  await write(acme.id, 'a "quoted", folded\r\nline of Größe')
  for (const start of ['=1+1', '+1', '-1', '@sum', '\tx', '\rx', ' =1', '"=1', '\n=1', '\uff1d1']) await write(acme.id, start)
  await write(acme.id, 'one - two = x@y')

  const answer = await open(acme)
  expect(answer.headers).toMatchObject({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="audit-logs.csv"',
    vary: expect.stringMatching(/accept-encoding/i),
  })
  expect(answer.headers['content-encoding']).toBeUndefined()
  const text = (await bodyOf(answer)).toString()
  const line = (description: string, user = '', metadata = '{}') =>
    `,repository.updated,Repository,S1,${description},${user},user,${metadata}`
  const records = text.split(/\r\n(?=\d{4}-)/)
  expect(records[0]).toBe(header)
  expect(records.at(-1)?.endsWith('\r\n')).toBe(true)
  const found = records.slice(1).map((item) => item.replace(/\r\n$/, '').slice(moment.length))
  const expected = [
    line('one - two = x@y'),
    line("'\uff1d1"),
    line(`"'\n=1"`),
    line(`"'""=1"`),
    line(`' =1`),
    line(`"'\rx"`),
    line(`'\tx`),
    line("'@sum"),
    line("'-1"),
    line("'+1"),
    line("'=1+1"),
    line('"a ""quoted"", folded\r\nline of Größe"'),
    line('plain', 'U1', '"{""repo_id"":""A1""}"'),
  ]
  expect(found).toEqual(expected)
})

test('an export accepts the filters of the list, and without matching rows it is only the header', async () => {
  const { text } = await acme.call('GET', '/audit-logs.csv?event_prefix=cert.&per_page=5')
  expect(text).toBe(`${header}\r\n`)
  const { json } = await many.call('GET', '/audit-logs?per_page=100')
  const before = json.data[96].id
  const tail = await many.call('GET', `/audit-logs.csv?event_prefix=rfc.&subject_type=RfcCall&before=${before}`)
  expect(tail.text.split('\r\n')[1]).toContain(`,${json.data[97].attributes.subject_id},`)
  expect((await acme.call('GET', '/audit-logs.csv?colour=red')).status).toBe(400)
  expect((await api.call('GET', `${acme.path}/audit-logs.csv`)).status).toBe(401)
})

test('an export ends at the row limit, and the gzip export has the same content', async () => {
  const plain = await bodyOf(await open(many))
  expect(plain.toString().split('\r\n')).toHaveLength(1 + 8_000 + 1)
  const packed = await open(many, { 'accept-encoding': 'gzip' })
  expect(packed.headers['content-encoding']).toBe('gzip')
  const bytes = await bodyOf(packed)
  expect(bytes.length).toBeLessThan(plain.length / 5)
  expect(gunzipSync(bytes).equals(plain)).toBe(true)
})

test('HEAD opens no cursor', async () => {
  const { status, headers, text } = await many.call('HEAD', '/audit-logs.csv')
  expect({ status, type: headers.get('content-type'), text }).toEqual({ status: 200, type: 'text/csv; charset=utf-8', text: '' })
  expect(await countCursors()).toBe(0)
})

test('a second export of a workspace, and an export beyond the limit, are refused with Retry-After', async () => {
  const refused = { status: 503, code: 'unavailable', retry: '30' }
  const exportOf = async (tenant: WorkspaceClient) => {
    const { status, json, headers } = await tenant.call('GET', '/audit-logs.csv')
    return { status, code: json?.error.code, retry: headers.get('retry-after') }
  }
  const first = await open(long)
  expect(await exportOf(long)).toEqual(refused)
  const second = await open(wide)
  expect(await exportOf(acme)).toEqual(refused)
  first.destroy()
  second.destroy()
  await untilNoCursor()
  expect((await exportOf(acme)).status).toBe(200)
})

test('an export is a snapshot', async () => {
  const answer = await open(long)
  expect(await countCursors()).toBe(1)
  await database.db('audit_logs').where({ workspace_id: long.id }).andWhere('subject_id', 'S2000').delete()
  expect((await bodyOf(answer)).toString()).toContain(',S2000,')
  await untilNoCursor()
  expect((await long.call('GET', '/audit-logs.csv')).text).not.toContain(',S2000,')
})

test('an export whose client disconnects frees its database connection', async () => {
  const answer = await open(long)
  answer.destroy()
  await untilNoCursor()
  expect((await long.call('GET', '/audit-logs.csv')).status).toBe(200)
})

test('an export whose client does not read is aborted after the timeout', async () => {
  const slow = await startApi(database.db, { limits: { endpoints: { exportLimits: { timeoutMs: 3_000 } } } })
  try {
    const sent = request(`${slow.baseUrl}${long.path}/audit-logs.csv`, { headers: { authorization: `Bearer ${long.keys.viewer}` } })
    sent.on('error', () => {})
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    await untilNoCursor()
    await expect(bodyOf(answer)).rejects.toThrow('aborted')
  } finally {
    await slow.stop()
  }
})

test('an export whose client reads more slowly than the lowest rate is aborted', async () => {
  const strict = await startApi(database.db, { limits: { endpoints: { exportLimits: { waitMs: 1_000, minBytes: 1024 * MiB } } } })
  try {
    const sent = request(`${strict.baseUrl}${long.path}/audit-logs.csv`, { headers: { authorization: `Bearer ${long.keys.viewer}` } })
    sent.on('error', () => {})
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    // Reads a little now and then, so that the connection is never idle.
    const reading = setInterval(() => answer.read(), 50)
    await untilNoCursor()
    clearInterval(reading)
    await expect(bodyOf(answer)).rejects.toThrow('aborted')
  } finally {
    await strict.stop()
  }
})

test('a database failure before the first row is an error response, a later one aborts the response', async () => {
  await database.db.raw('alter table audit_logs rename to hidden_logs')
  expect((await acme.call('GET', '/audit-logs.csv')).status).toBe(500)
  await database.db.raw('alter table hidden_logs rename to audit_logs')

  const answer = await open(long)
  await database.db.raw(`select pg_terminate_backend(pid) ${fromCursors}`)
  await expect(bodyOf(answer)).rejects.toThrow('aborted')
  expect((await many.call('GET', '/audit-logs.csv')).status).toBe(200)
})
