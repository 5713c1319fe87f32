import { z } from 'zod'
import { answered, changeOf, configuredEndpoints } from '../../src/api/configured.ts'
import { entityTagOf, type Endpoint } from '../../src/api/endpoint.ts'
import { resource } from '../../src/api/schemas.ts'
import { fileKind, inFile } from '../../src/cli/apply/file-kind.ts'
import type { Target } from '../../src/cli/apply/kind.ts'
import { systemActor } from '../../src/db/audit.ts'
import { toCamelCase, toSnakeCase } from '../../src/domain/casing.ts'
import { timestamp } from '../../src/domain/date-range.ts'
import { configuredKind } from '../../src/workspace/configured-kind.ts'
import { createConfigured } from '../../src/workspace/configured.ts'
import { name } from '../../src/workspace/inputs.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'

// What CONTRIBUTING.md says about a new kind of object and a new field: columns, and lines of a schema. Everything else follows from them.

const { db } = share(await createTestDatabase())
await db.raw(`
  create table reminders (
    id text primary key, workspace_id text not null, name text not null, created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    wait_hours integer not null, tags text[] not null, target jsonb, destination_id text, is_active boolean not null
  )
`)
const { workspaceId, destinations } = await createRoutes(db, [{ name: 'inbox' }, { name: 'other' }])

const values = z.strictObject({
  name,
  wait_hours: z.int().min(1).describe('Hours until it is sent.').default(8),
  tags: z.array(z.string()).default([]),
  target: z
    .strictObject({ reply_to: z.string(), headers: z.record(z.string(), z.string()).meta({ masked: true }) })
    .nullable()
    .default(null),
  destination_id: z.string(),
  is_active: z.boolean().default(true),
})
// It borrows the events of notifications, which are a list of their own.
const kind = configuredKind({ table: 'reminders', event: 'notification', noun: 'Reminder', schema: values })
const reminders = createConfigured(db, kind)
const endpoints = configuredEndpoints(
  {
    type: 'notification',
    id: 'Reminder',
    singular: 'a reminder',
    path: '/reminders',
    descriptions: { list: '', update: '' },
    resource: resource('Reminder', 'notification', answered(values).extend({ created_at: timestamp, updated_at: timestamp })),
    input: values,
    change: changeOf(values),
  },
  reminders,
)

interface Answered {
  id: string
  attributes: object
}

const actor = { type: 'api_key', id: 'key', name: 'Key', userId: null, workspace: { id: workspaceId } }

/** Calls an endpoint as the API does. @returns the body and the tag of its answer, as a client gets them */
const call = async (method: Endpoint['method'], path: string, body?: object, ifMatch?: string, level = 'member') => {
  const definition = endpoints.find((each) => each.method === method && each.path === path.replace(/^(\/\w+\/).+$/, '$1:id'))!
  const { response, version, handle } = definition
  const checkVersion = (current: unknown) => {
    if (ifMatch !== undefined && entityTagOf(current) !== ifMatch) throw new Error('has changed')
  }
  const input = {
    params: { id: path.split('/')[2] },
    query: { page: 1, perPage: 10 },
    body: body && toCamelCase(definition.body!, definition.body!.parse(body)),
  }
  const answer = await handle(input, { actor: { ...actor, level }, workspaceId, checkVersion } as never)
  return {
    json: typeof response === 'string' ? undefined : (toSnakeCase(response, answer as never) as { data: never }).data,
    tag: version && entityTagOf(version(answer)),
  } as unknown as { json: Answered & Answered[]; tag: string }
}

/** Returns the entries about the reminder with a name. */
const entriesOf = async (reminder: string) => {
  const rows = await db('audit_logs').where({ workspace_id: workspaceId }).whereRaw(`metadata ->> 'name' = ?`, [reminder]).orderBy('id')
  return rows.map(({ event, description, metadata }) => ({ event, description, metadata }))
}

const target = { reply_to: 'ops@example.com', headers: { 'x-key': 'canary-1' } }

test('a kind of object is stored, answered, versioned, audited and applied by its schema', async () => {
  const { json: created, tag } = await call('POST', '/reminders', {
    name: 'Daily',
    tags: ['b', 'a', 'b'],
    target,
    destination_id: destinations['inbox'],
  })
  const { id } = created
  expect(created.attributes).toEqual({
    name: 'Daily',
    wait_hours: 8,
    tags: ['b', 'a'],
    target,
    destination_id: destinations['inbox'],
    is_active: true,
    created_at: expect.any(Date),
    updated_at: expect.any(Date),
  })
  expect(await db('reminders').first()).toMatchObject({ id, wait_hours: 8, tags: ['b', 'a'], target })
  expect(await call('GET', `/reminders/${id}`)).toEqual({ json: created, tag })
  expect((await call('GET', '/reminders')).json).toEqual([created])
  const seen = await call('GET', `/reminders/${id}`, undefined, undefined, 'viewer')
  expect(seen.json.attributes).toMatchObject({ target: { ...target, headers: { 'x-key': '[REDACTED]' } } })
  expect(endpoints.find(({ method }) => method === 'PATCH')!.body!.safeParse({ wait_hours: 0 }).success).toBe(false)

  const changed = await call('PATCH', `/reminders/${id}`, { wait_hours: 2, target: { ...target, headers: { 'x-key': 'canary-2' } } }, tag)
  expect(changed.tag).not.toBe(tag)
  await expect(call('PATCH', `/reminders/${id}`, { wait_hours: 3 }, tag)).rejects.toThrow('has changed')
  // Nothing changes: the order in a set has no meaning for the entry, but the set is stored as it was sent.
  await call('PATCH', `/reminders/${id}`, { wait_hours: 2, tags: ['b', 'a'] })
  await call('DELETE', `/reminders/${id}`)
  await expect(call('GET', `/reminders/${id}`)).rejects.toMatchObject({ code: 'not_found' })

  const recorded = {
    name: 'Daily',
    wait_hours: 8,
    tags: ['a', 'b'],
    target: { reply_to: 'ops@example.com' },
    destination_id: destinations['inbox'],
    is_active: true,
  }
  const by = { key_id: 'key', key_name: 'Key' }
  expect(await entriesOf('Daily')).toEqual([
    { event: 'notification.created', description: 'Reminder Daily was created.', metadata: { ...recorded, ...by } },
    {
      event: 'notification.updated',
      description: 'Reminder Daily was changed: wait_hours, target.headers.',
      metadata: { name: 'Daily', before: { wait_hours: 8 }, after: { wait_hours: 2 }, ...by },
    },
    { event: 'notification.deleted', description: 'Reminder Daily was deleted.', metadata: { name: 'Daily', ...by } },
  ])
})

test('relay apply compares, creates and changes it by the same schema', async () => {
  const inbox = { id: destinations['inbox']!, name: 'inbox' }
  const state = { destinations: [inbox], repositories: [] } as never
  const schema = values.omit({ destination_id: true }).extend({ destination: z.string() })
  const kindIn = async () => {
    const current = await kind.listAll(db, workspaceId)
    const describe = (row: object) => inFile(kind, row, state)
    return fileKind({ workspaceId, state, wanted: { notifications: [] } } as unknown as Target, {
      kind: 'notification',
      list: 'notifications',
      schema,
      input: values,
      current,
      describe,
      uses: reminders,
    })
  }
  const wanted = { name: 'Weekly', wait_hours: 8, tags: ['b', 'a'], target, destination: 'inbox', is_active: true }
  await (await kindIn()).create(wanted)
  const { compare, update, current } = await kindIn()
  expect(current).toMatchObject([{ name: 'Weekly', destinationId: inbox.id, tags: ['b', 'a'] }])
  expect(await compare(current[0]!, { ...wanted, tags: ['a', 'b'] })).toEqual([])
  const other = { ...wanted, wait_hours: 1, target: { ...target, headers: {} } }
  expect(await compare(current[0]!, other)).toEqual([{ name: 'wait_hours', before: 8, after: 1 }, { name: 'target.headers' }])
  await update(current[0]!, other, ['wait_hours', 'target.headers'])
  expect(await reminders.find(workspaceId, current[0]!.id)).toMatchObject({
    waitHours: 1,
    target: { replyTo: target.reply_to, headers: {} },
  })
  await reminders.delete(workspaceId, current[0]!.id, systemActor)
})
