import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { record } from '../../src/db/audit.ts'
import { openDatabase } from '../../src/db/database.ts'
import { startApi } from '../support/api.ts'
import type { WorkspaceClient } from '../support/client.ts'
import { databaseConfig } from '../support/database.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { insertEntries } from './audit-entries.ts'

const MiB = 1024 * 1024
const moment = '2026-11-21T09:00:00.000Z'
const header = 'created_at,event,subject_type,subject_id,description,user_id,actor_type,metadata'

const { database, api, acme } = share(await startScene({ limits: { endpoints: { exportLimits: { maxRows: 8_000, maxConcurrent: 2 } } } }))
const many = await api.tenant('acme/many')
// The export of 50 MB of each is larger than the buffers of a connection, 36 MiB on common Linux systems: it stays open while its client
// does not read.
const long = await api.tenant('acme/long')
const wide = await api.tenant('acme/wide')

const write = (workspaceId: string, description: string, metadata: object = {}, userId: string | null = null) =>
  database.db.transaction((trx) =>
    record(trx, {
      workspaceId,
      event: 'repository.updated',
      subjectId: 'S1',
      description,
      metadata: { ...metadata },
      actor: { type: 'user', id: 'P1', name: 'ada@example.com', userId },
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
const ask = async (tenant: WorkspaceClient, headers: Record<string, string> = {}, at = api): Promise<IncomingMessage> => {
  const sent = request(`${at.baseUrl}${tenant.path}/audit-logs.csv`, {
    headers: { authorization: `Bearer ${tenant.keys.viewer}`, ...headers },
  })
  sent.on('error', () => {})
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

// A workspace has one export at a time, and one that was broken off takes a moment to end.
/** Begins an export, as soon as there may be one. */
const open = async (...args: Parameters<typeof ask>): Promise<IncomingMessage> => {
  const { status, take } = await until(
    'an export is not refused',
    async () => {
      const answer = await ask(...args)
      if (answer.statusCode === 503) answer.resume()
      return { status: answer.statusCode, take: () => answer }
    },
    (begun) => begun.status !== 503,
  )
  expect(status).toBe(200)
  return take()
}

/** Asks for an export and reads it, as soon as there may be one. */
const exportOf = (tenant: WorkspaceClient, query = '') =>
  until(
    'an export is not refused',
    () => tenant.call('GET', `/audit-logs.csv${query}`),
    ({ status }) => status !== 503,
  )

const bodyOf = async (answer: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Asks for an export, and reads none of it. */
const statusOf = async (tenant: WorkspaceClient, at = api) => {
  const answer = await ask(tenant, {}, at)
  answer.destroy()
  return answer.statusCode
}
/** Waits until the export of a workspace has ended: only then is there another one. */
const untilEnded = (tenant: WorkspaceClient, at = api) => until('the export has ended', async () => (await statusOf(tenant, at)) === 200)

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
  const person = '""person_id"":""P1"",""person_name"":""ada@example.com""'
  const line = (description: string, user = '', metadata = `"{${person}}"`) =>
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
    line('plain', 'U1', `"{""repo_id"":""A1"",${person}}"`),
  ]
  expect(found).toEqual(expected)
})

test.each([
  ['semicolon', ';'],
  ['comma', ','],
])(
  'an export for a spreadsheet with the separator %s begins with a byte-order mark, and turns formulas into text',
  async (spreadsheet, separator) => {
    await write(many.id, `=1+1 of Größe${separator} and more`, {}, 'SHEET')
    const read = () =>
      fetch(`${api.baseUrl}${many.path}/audit-logs.csv?spreadsheet=${spreadsheet}&user_id=SHEET`, {
        headers: { authorization: `Bearer ${many.keys.viewer}` },
      })
    const answer = await until('an export is not refused', read, ({ status }) => status !== 429 && status !== 503)
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect(bytes.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]))
    const [first, ...lines] = bytes.subarray(3).toString('utf8').split('\r\n')
    expect(first).toBe(header.replaceAll(',', separator))
    expect(lines.join()).toContain(`${separator}"'=1+1 of Größe${separator} and more"${separator}SHEET${separator}`)
    await database.db('audit_logs').where({ user_id: 'SHEET' }).delete()
  },
)

test('an export accepts the filters of the list, and without matching rows it is only the header', async () => {
  const { text } = await exportOf(acme, '?event_prefix=cert.&per_page=5')
  expect(text).toBe(`${header}\r\n`)
  const { json } = await many.call('GET', '/audit-logs?per_page=100')
  const before = json.data[96].id
  const tail = await exportOf(many, `?event_prefix=rfc.&subject_type=RfcCall&before=${before}`)
  expect(tail.text.split('\r\n')[1]).toContain(`,${json.data[97].attributes.subject_id},`)
  expect((await acme.call('GET', '/audit-logs.csv?colour=red')).status).toBe(400)
  expect((await acme.call('GET', '/audit-logs.csv?spreadsheet=tab')).status).toBe(400)
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

test('HEAD reads nothing', async () => {
  const { status, headers, text } = await many.call('HEAD', '/audit-logs.csv')
  expect({ status, type: headers.get('content-type'), text }).toEqual({ status: 200, type: 'text/csv; charset=utf-8', text: '' })
})

test('a second export of a workspace, and an export beyond the limit, are refused with Retry-After', async () => {
  const refused = { status: 503, code: 'unavailable', retry: '30' }
  const limited = { status: 429, code: 'rate_limited', retry: '30' }
  const refusalOf = async (tenant: WorkspaceClient) => {
    const { status, json, headers } = await tenant.call('GET', '/audit-logs.csv')
    return { status, code: json?.error.code, retry: headers.get('retry-after') }
  }
  const first = await open(long)
  expect(await refusalOf(long)).toEqual(limited)
  const second = await open(wide)
  expect(await refusalOf(acme)).toEqual(refused)
  first.destroy()
  second.destroy()
  await untilEnded(long)
  await untilEnded(wide)
  await untilEnded(acme)
})

test('clients that do not read hold no connection to the database, and do not keep other workspaces from exporting', async () => {
  const one = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }, 'test')
  const small = await startApi(one)
  try {
    const slow = [await open(long, {}, small), await open(wide, {}, small)]
    const { headers, text } = await small.call('GET', `${many.path}/audit-logs.csv`, { key: many.keys.viewer })
    expect({ type: headers.get('content-type'), rows: text.split('\r\n').length }).toEqual({
      type: 'text/csv; charset=utf-8',
      rows: 1 + 9_000 + 1,
    })
    for (const each of slow) each.destroy()
  } finally {
    await small.stop()
    await one.destroy()
  }
})

test('an export does not contain what is written while it is read', async () => {
  const answer = await open(long)
  await write(long.id, 'written meanwhile')
  const text = (await bodyOf(answer)).toString()
  expect(text.split('\r\n')).toHaveLength(1 + 2_000 + 1)
  expect(text).not.toContain('written meanwhile')
  expect((await exportOf(long)).text).toContain('written meanwhile')
  await database.db('audit_logs').where({ description: 'written meanwhile' }).delete()
})

test('an export whose client disconnects ends', async () => {
  const answer = await open(long)
  expect(await statusOf(long)).toBe(429)
  answer.destroy()
  await untilEnded(long)
})

test('an export whose client does not read is aborted after the timeout', async () => {
  const slow = await startApi(database.db, { limits: { endpoints: { exportLimits: { timeoutMs: 3_000 } } } })
  try {
    const answer = await open(long, {}, slow)
    await untilEnded(long, slow)
    await expect(bodyOf(answer)).rejects.toThrow('aborted')
  } finally {
    await slow.stop()
  }
})

test('an export whose client reads more slowly than the lowest rate is aborted', async () => {
  const strict = await startApi(database.db, { limits: { endpoints: { exportLimits: { waitMs: 1_000, minBytes: 1024 * MiB } } } })
  try {
    const answer = await open(long, {}, strict)
    // Reads a little now and then, so that the connection is never idle.
    const reading = setInterval(() => answer.read(), 50)
    await untilEnded(long, strict)
    clearInterval(reading)
    await expect(bodyOf(answer)).rejects.toThrow('aborted')
  } finally {
    await strict.stop()
  }
})

test('a database failure before the first row is an error response, a later one aborts the response', async () => {
  await database.db.raw('alter table audit_logs rename to hidden_logs')
  expect((await exportOf(acme)).status).toBe(500)
  await database.db.raw('alter table hidden_logs rename to audit_logs')

  const answer = await open(long)
  await database.db.raw('alter table audit_logs rename to hidden_logs')
  await expect(bodyOf(answer)).rejects.toThrow('aborted')
  await database.db.raw('alter table hidden_logs rename to audit_logs')
  expect((await exportOf(many)).status).toBe(200)
})
