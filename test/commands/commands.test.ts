import { createKey, listKeys, revokeKey } from '../../src/commands/key.ts'
import { createWorkspace, listWorkspaces, setTier } from '../../src/commands/workspace.ts'
import { createWorkspaces } from '../../src/db/workspaces.ts'
import { UserError } from '../../src/errors.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(() => database.drop())

test('a workspace is made once, also by two at a time', async () => {
  const { db } = database
  const results = await Promise.allSettled([createWorkspace(db, 'acme/prod'), createWorkspace(db, 'acme/prod')])
  const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  expect(made).toEqual([{ id: expect.any(String), user_slug: 'acme', workspace_slug: 'prod' }])
  await createWorkspace(db, 'acme/0-test')
  expect((await listWorkspaces(db)).map((workspace) => workspace.workspace_slug)).toEqual(['0-test', 'prod'])
  expect(await listWorkspaces(db)).toContainEqual(made[0])
})

test.each(['acme', 'acme/', '/prod', 'acme/prod/x', 'Acme/prod', 'acme/pr od', `acme/${'x'.repeat(64)}`, ''])(
  '%p is no name of a workspace',
  async (name) => {
    await expect(createWorkspace(database.db, name)).rejects.toThrow(UserError)
  },
)

test('a workspace is put into the compliance tier, and out of it where its settings allow that', async () => {
  const { db } = database
  const { id } = await createWorkspace(db, 'acme/regulated')
  const workspaces = createWorkspaces(db)
  expect(await setTier(db, 'acme/regulated', 'compliance')).toEqual({
    id,
    user_slug: 'acme',
    workspace_slug: 'regulated',
    tier: 'compliance',
  })
  await workspaces.updateSettings(id, () => ({ settings: { audit_days: null } }))
  await expect(setTier(db, 'acme/regulated', 'standard')).rejects.toThrow(/set audit_days to a number first/)
  expect((await workspaces.findSettings(id)).complianceTier).toBe(true)
  await workspaces.updateSettings(id, () => ({ settings: {} }))
  await setTier(db, 'acme/regulated', 'standard')
  expect((await workspaces.findSettings(id)).complianceTier).toBe(false)
  await expect(setTier(db, 'acme/nobody', 'compliance')).rejects.toThrow(UserError)
})

test('a key is made, listed without its secret, and revoked once', async () => {
  const { db } = database
  await createWorkspace(db, 'keys/one')
  const created = await createKey(db, { workspace: 'keys/one', level: 'admin' })
  expect(created).toEqual({ id: expect.any(String), key: expect.stringContaining(created.id), level: 'admin' })
  const listed = await listKeys(db, 'keys/one')
  expect(listed).toMatchObject([{ id: created.id, level: 'admin', user_slug: 'keys', workspace_slug: 'one', revoked_at: null }])
  expect(JSON.stringify(listed)).not.toContain(created.key.slice(-43))
  await revokeKey(db, created.id)
  expect((await listKeys(db)).find(({ id }) => id === created.id)?.revoked_at).toBeInstanceOf(Date)
  await expect(revokeKey(db, created.id)).rejects.toThrow(UserError)
})

test('a key may belong to a member, who is made once, and may expire', async () => {
  const { db } = database
  await createWorkspace(db, 'keys/two')
  const options = { workspace: 'keys/two', level: 'viewer', member: 'ada@example.org', expiresAt: '2099-01-01T00:00:00Z', name: 'Reader' }
  await createKey(db, options)
  await createKey(db, options)
  const [one, two] = await listKeys(db, 'keys/two')
  expect(one).toMatchObject({ name: 'Reader', user_id: expect.any(String), expires_at: new Date('2099-01-01T00:00:00Z') })
  expect(two?.user_id).toBe(one?.user_id)
})

test.each([
  [{ workspace: 'no/body', level: 'admin' }, /relay workspace create no\/body/],
  [{ workspace: 'acme/prod', level: 'owner' }, /viewer, member, admin/],
  [{ workspace: 'acme/prod', level: 'admin', expiresAt: 'soon' }, /ISO 8601/],
  [{ workspace: 'acme/prod', level: 'admin', expiresAt: '2020-01-01' }, /expired/],
  [{ workspace: 'acme/prod', level: 'admin', member: 'Ada' }, /"Ada" is no e-mail address/],
])('%p is refused in words', async (options, message) => {
  await expect(createKey(database.db, options)).rejects.toThrow(message)
})
