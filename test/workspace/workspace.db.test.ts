import { UserError } from '../../src/base/errors.ts'
import { createWorkspace, setTier } from '../../src/workspace/administration.ts'
import { createWorkspaces } from '../../src/workspace/workspaces.ts'
import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

test('two concurrent calls create a workspace only once', async () => {
  const { db } = database
  const results = await Promise.allSettled([createWorkspace(db, 'acme/prod'), createWorkspace(db, 'acme/prod')])
  const created = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  expect(created).toEqual([{ id: expect.any(String), user_slug: 'acme', workspace_slug: 'prod' }])
  await createWorkspace(db, 'acme/0-test')
  const slugs = (await createWorkspaces(db).list()).map(({ workspaceSlug }) => workspaceSlug)
  expect(slugs.filter((slug) => slug !== 'regulated')).toEqual(['0-test', 'prod'])
})

test.each(['acme', 'acme/', '/prod', 'acme/prod/x', 'Acme/prod', 'acme/pr od', `acme/${'x'.repeat(64)}`, ''])(
  '%p is not a valid workspace name',
  async (name) => {
    await expect(createWorkspace(database.db, name)).rejects.toThrow(UserError)
  },
)

test('a change of the tier is recorded in the audit log, once', async () => {
  const { db } = database
  const { id } = await createWorkspace(db, 'acme/regulated')
  const workspaces = createWorkspaces(db)
  const changed = { id, user_slug: 'acme', workspace_slug: 'regulated' }
  expect(await setTier(db, 'acme/regulated', 'compliance')).toEqual({ ...changed, tier: 'compliance' })
  expect((await workspaces.findSettings(id)).tier).toBe('compliance')
  await setTier(db, 'acme/regulated', 'compliance')
  expect(await setTier(db, 'acme/regulated', 'standard')).toEqual({ ...changed, tier: 'standard' })
  expect((await workspaces.findSettings(id)).tier).toBe('standard')
  const entries = await db('audit_logs').where({ workspace_id: id }).orderBy('id').select('event', 'metadata', 'actor_type')
  const [event, actor_type] = ['settings.updated', 'system']
  expect(entries).toEqual([
    { event, actor_type, metadata: { before: { tier: 'standard' }, after: { tier: 'compliance' } } },
    { event, actor_type, metadata: { before: { tier: 'compliance' }, after: { tier: 'standard' } } },
  ])
  await expect(setTier(db, 'acme/nobody', 'compliance')).rejects.toThrow(UserError)
})
