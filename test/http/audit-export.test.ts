import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { createKey } from '../../src/commands/key.ts'
import { createWorkspace } from '../../src/commands/workspace.ts'
import { record } from '../../src/db/audit.ts'
import { idPrefixAt } from '../../src/ids.ts'
import { relayVariables, startRelayProcess } from '../support/relay-process.ts'
import { until } from '../support/until.ts'
import { startApi, startScene, type Tenant } from './api.ts'

const MiB = 1024 * 1024
const moment = '2026-11-21T09:00:00.000Z'
const header = 'created_at,event,subject_type,subject_id,description,user_id,actor_type,metadata'

const { database, api, acme, stop } = await startScene({ variables: { RELAY_EXPORT_MAX_ROWS: '8000', RELAY_MAX_CONCURRENT_EXPORTS: '1' } })
const many = await api.tenant('acme/many')
/** More than the buffers of a connection take: 80 MB. */
const long = await api.tenant('acme/long')
afterAll(stop)

const write = (workspaceId: string, description: string, metadata: object = {}, userId: string | null = null) =>
  database.db.transaction((trx) =>
    record(trx, {
      workspaceId,
      event: 'repository.updated',
      subjectId: 'S1',
      description,
      metadata: { ...metadata },
      actor: { type: 'api_key', userId },
    }),
  )

/** Entries as fast as PostgreSQL makes them. */
const fill = (workspaceId: string, rows: number, descriptionCharacters: number) =>
  database.db.raw(
    `insert into audit_logs (id, workspace_id, event, subject_type, subject_id, description, metadata, actor_type)
    select :prefix || lpad(n::text, 16, '0'), :workspaceId, 'rfc.call', 'RfcCall', 'S' || n, repeat('x', :descriptionCharacters), '{"name": "value"}', 'system'
    from generate_series(1, :rows) as n`,
    { prefix: idPrefixAt(new Date()), workspaceId, rows, descriptionCharacters },
  )

beforeAll(async () => {
  await database.db('audit_logs').delete()
  await fill(many.id, 9_000, 4_000)
  await fill(long.id, 2_000, 40_000)
})

/** The answer as it comes, before its body is read. */
const open = async (tenant: Tenant, headers: Record<string, string> = {}): Promise<IncomingMessage> => {
  const sent = request(`${api.url}${tenant.path}/audit-logs.csv`, {
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

// by their transaction: now and then a cursor is not idle but at work
const ofCursors = `
  from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()`

const cursors = async () => {
  const { rows } = await database.db.raw(`select pid ${ofCursors}`)
  return rows.length as number
}

const untilNoCursor = () => until('no cursor is open', async () => (await cursors()) === 0)

test('the columns are those of the contract, quoted by RFC 4180, and formulas are text', async () => {
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
    `,repository.updated,Repository,S1,${description},${user},api_key,${metadata}`
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

test('an export is filtered like the list, and one of nothing is its header', async () => {
  const { text } = await acme.call('GET', '/audit-logs.csv?event_prefix=cert.&per_page=5')
  expect(text).toBe(`${header}\r\n`)
  const { json } = await many.call('GET', '/audit-logs?per_page=100')
  const before = json.data[96].id
  const tail = await many.call('GET', `/audit-logs.csv?event_prefix=rfc.&subject_type=RfcCall&before=${before}`)
  expect(tail.text.split('\r\n')[1]).toContain(`,${json.data[97].attributes.subject_id},`)
  expect((await acme.call('GET', '/audit-logs.csv?colour=red')).status).toBe(400)
  expect((await api.call('GET', `${acme.path}/audit-logs.csv`)).status).toBe(401)
})

test('it ends at the limit of rows, and gzip gives the same', async () => {
  const plain = await bodyOf(await open(many))
  expect(plain.toString().split('\r\n')).toHaveLength(1 + 8_000 + 1)
  const packed = await open(many, { 'accept-encoding': 'gzip' })
  expect(packed.headers['content-encoding']).toBe('gzip')
  const bytes = await bodyOf(packed)
  expect(bytes.length).toBeLessThan(plain.length / 5)
  expect(gunzipSync(bytes).equals(plain)).toBe(true)
})

test('a HEAD opens nothing', async () => {
  const { status, headers, text } = await many.call('HEAD', '/audit-logs.csv')
  expect({ status, type: headers.get('content-type'), text }).toEqual({ status: 200, type: 'text/csv; charset=utf-8', text: '' })
  expect(await cursors()).toBe(0)
})

test('what is recorded meanwhile is not in it, and one export too many is told to wait', async () => {
  const answer = await open(many)
  expect(await cursors()).toBe(1)
  const second = await many.call('GET', '/audit-logs.csv')
  expect({ status: second.status, code: second.json.error.code, retry: second.headers.get('retry-after') }).toEqual({
    status: 503,
    code: 'unavailable',
    retry: '30',
  })
  await database.db('audit_logs').where({ workspace_id: many.id }).andWhere('subject_id', 'S2000').delete()
  expect((await bodyOf(answer)).toString()).toContain(',S2000,')
  await untilNoCursor()
  expect((await many.call('GET', '/audit-logs.csv')).text).not.toContain(',S2000,')
})

test('a client that leaves frees the connection', async () => {
  const answer = await open(many)
  answer.destroy()
  await untilNoCursor()
  expect((await many.call('GET', '/audit-logs.csv')).status).toBe(200)
})

test('a client that does not read is given up on in the end', async () => {
  const slow = await startApi(database.db, { variables: { RELAY_EXPORT_TIMEOUT_MS: '3000' } })
  try {
    const sent = request(`${slow.url}${long.path}/audit-logs.csv`, { headers: { authorization: `Bearer ${long.keys.viewer}` } })
    sent.on('error', () => {})
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    await untilNoCursor()
    await expect(bodyOf(answer)).rejects.toThrow('aborted')
  } finally {
    await slow.stop()
  }
})

test('a database that fails before the first row is an error, one that fails later breaks the answer off', async () => {
  await database.db.raw('alter table audit_logs rename to hidden_logs')
  expect((await acme.call('GET', '/audit-logs.csv')).status).toBe(500)
  await database.db.raw('alter table hidden_logs rename to audit_logs')

  const answer = await open(long)
  await database.db.raw(`select pg_terminate_backend(pid) ${ofCursors}`)
  await expect(bodyOf(answer)).rejects.toThrow('aborted')
  expect((await many.call('GET', '/audit-logs.csv')).status).toBe(200)
})

test('100,000 rows cost the process less than 64 MiB, for a client that reads slowly too', async () => {
  const { id } = await createWorkspace(database.db, 'acme/large')
  const { key } = await createKey(database.db, { workspace: 'acme/large', level: 'viewer' })
  await fill(id, 100_000, 60)
  const before = (await database.db('audit_logs').where({ workspace_id: id }).orderBy('id').offset(5_000).limit(1).pluck('id'))[0] as string
  // never asked for: an export needs no Temporal
  const relay = await startRelayProcess('api', relayVariables(database, '127.0.0.1:1'))
  const ask = (query: string) =>
    fetch(`${relay.baseUrl}/api/acme/large/audit-logs.csv${query}`, { headers: { authorization: `Bearer ${key}` } })
  try {
    // code, caches and the heap's first growth come with any export: what counts is what many rows add to that of a few
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
  }
})
