import { createKey, listKeys, revokeKey } from '../../src/access/key-administration.ts'
import { createMembers } from '../../src/access/members.ts'
import { UserError } from '../../src/base/errors.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createWorkspace } from '../../src/workspace/administration.ts'
import { createTestDatabase } from '../support/database.ts'
import { waitsForLock } from '../support/locks.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const database = share(await createTestDatabase())
await createWorkspace(database.db, 'acme/prod')

test('a key is created, listed without its secret, and revoked once', async () => {
  const { db } = database
  await createWorkspace(db, 'keys/one')
  const created = await createKey(db, { workspace: 'keys/one', level: 'admin' })
  expect(created).toEqual({ id: expect.any(String), key: expect.stringContaining(created.id), level: 'admin' })
  const listed = await listKeys(db, 'keys/one')
  expect(listed).toMatchObject([{ id: created.id, level: 'admin', user_slug: 'keys', workspace_slug: 'one', revoked_at: null }])
  expect(JSON.stringify(listed)).not.toContain(created.key.slice(-43))
  await revokeKey(db, created.id)
  expect((await listKeys(db)).find(({ id }) => id === created.id)?.revoked_at).toEqual(expect.any(String))
  await expect(revokeKey(db, created.id)).rejects.toThrow(UserError)
})

test('a key can have an expiry time and a member, who is created only once', async () => {
  const { db } = database
  const workspace = await createWorkspace(db, 'keys/two')
  const options = { workspace: 'keys/two', level: 'viewer', member: 'ada@example.org', expiresAt: '2099-01-01T00:00:00Z', name: 'Reader' }
  await createKey(db, options)
  await createKey(db, options)
  const [one, two] = await listKeys(db, 'keys/two')
  expect(one).toMatchObject({ name: 'Reader', user_id: expect.any(String), expires_at: '2099-01-01T00:00:00.000Z' })
  expect(two?.user_id).toBe(one?.user_id)
  expect(await db('audit_logs').where({ event: 'member.created', workspace_id: workspace.id })).toMatchObject([
    {
      subject_type: 'Member',
      subject_id: one?.user_id,
      actor_type: 'system',
      metadata: { email: 'ada@example.org', name: 'ada@example.org' },
    },
  ])
})

test('a key whose member is deleted meanwhile gets a new member', async () => {
  const { db } = database
  const workspace = await createWorkspace(db, 'keys/deleted')
  const memberId = await createMembers(db).ensure(workspace.id, 'ada@example.org', systemActor)
  const deletion = await db.transaction()
  await deletion('members').where({ id: memberId }).forUpdate().first()
  const created = createKey(db, { workspace: 'keys/deleted', level: 'viewer', member: 'ada@example.org' })
  await until('the new key waits for the deletion', () => waitsForLock(db))
  await createMembers(deletion).delete(workspace.id, memberId, systemActor)
  await deletion.commit()
  await created
  const [member, ...others] = await createMembers(db).list(workspace.id)
  expect(others).toEqual([])
  expect(member?.id).not.toBe(memberId)
  expect(await listKeys(db, 'keys/deleted')).toMatchObject([{ user_id: member?.id, revoked_at: null }])
})

test('a key whose member is deleted while the key is inserted is revoked', async () => {
  const { db } = database
  const workspace = await createWorkspace(db, 'keys/waiting')
  const memberId = await createMembers(db).ensure(workspace.id, 'ada@example.org', systemActor)
  const pause = await db.transaction()
  await pause.raw('lock table api_keys in access exclusive mode')
  const created = createKey(db, { workspace: 'keys/waiting', level: 'viewer', member: 'ada@example.org' })
  await until('the new key waits for its table', () => waitsForLock(db))
  const deletion = createMembers(db).delete(workspace.id, memberId, systemActor)
  await until('the deletion waits too', () => waitsForLock(db, 2))
  await pause.commit()
  await created
  await deletion
  expect(await listKeys(db, 'keys/waiting')).toMatchObject([{ user_id: null, revoked_at: expect.any(String) }])
})

test('a key that cannot be inserted leaves no member', async () => {
  const { db } = database
  const workspace = await createWorkspace(db, 'keys/refused')
  await db.raw("alter table api_keys add constraint refused check (name <> 'refused by the test')")
  const refused = { workspace: 'keys/refused', level: 'viewer', member: 'ada@example.org', name: 'refused by the test' }
  await expect(createKey(db, refused)).rejects.toThrow('violates check constraint "refused"')
  expect(await createMembers(db).list(workspace.id)).toEqual([])
  expect(await db('audit_logs').where({ workspace_id: workspace.id })).toEqual([])
})

test.each([
  [{ workspace: 'no/body', level: 'admin' }, /no workspace no\/body\. There is: .*acme\/prod/],
  [{ workspace: 'acme/prod', level: 'owner' }, /viewer, member, admin/],
  [{ workspace: 'acme/prod', level: 'admin', expiresAt: 'soon' }, /ISO 8601/],
  [{ workspace: 'acme/prod', level: 'admin', expiresAt: '2020-01-01' }, /expired/],
  [{ workspace: 'acme/prod', level: 'admin', member: 'Ada' }, /"Ada" is not a valid e-mail address/],
])('%p is refused with a message', async (options, message) => {
  await expect(createKey(database.db, options)).rejects.toThrow(message)
})
