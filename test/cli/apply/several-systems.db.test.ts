import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../../src/base/errors.ts'
import { applyFile, withApplyDeps } from '../../../src/cli/apply/apply.ts'
import { isDrift, type ApplyOptions } from '../../../src/cli/apply/change.ts'
import { createTestDatabase } from '../../support/database.ts'
import { testConfig } from '../../support/factories.ts'
import { createFolder } from '../../support/folder.ts'

// The file of docs/several-systems.md, as it stands there.

const page = await readFile(new URL('../../../docs/several-systems.md', import.meta.url), 'utf8')
const example = /```yaml\n([^]*?)```/.exec(page)![1]!
const variables = {
  ARCHIVE_USER: 'archive-user',
  ARCHIVE_PASSWORD: 'archive-password',
  MAIL_USER: 'mail-user',
  MAIL_PASSWORD: 'mail-password',
}

const createInstallation = async () => {
  const database = await createTestDatabase()
  const folder = await createFolder()
  const path = join(folder.path, 'systems.yaml')
  return {
    db: database.db,
    apply: async (text: string, options: ApplyOptions = {}) => {
      await writeFile(path, text)
      const changes = await withApplyDeps(testConfig(), variables, (deps) => applyFile(database.db, path, deps, options))
      return changes.filter(isDrift)
    },
    [Symbol.asyncDispose]: async () => {
      await database.drop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('the file of several systems creates all workspaces, a second run changes nothing, and a change of an anchor changes all', async () => {
  await using installation = await createInstallation()
  const { db, apply } = installation
  await apply(example)
  const slugs = ['operator', 'p01', 'p02', 'q01']
  expect(await db('workspaces').orderBy('workspace_slug').pluck('workspace_slug')).toEqual(slugs)
  const countOf = async (table: string) =>
    (await db(table).join('workspaces', 'workspaces.id', 'workspace_id').orderBy('workspace_slug').pluck('workspace_slug')) as string[]
  expect(await countOf('repositories')).toEqual(['p01', 'p01', 'p02', 'p02', 'q01', 'q01'])
  expect(await countOf('destinations')).toEqual(slugs)
  expect(await countOf('connections')).toEqual(slugs.slice(1))
  expect(await countOf('notifications')).toEqual(['operator'])
  const templates = await db('connections').pluck('settings')
  expect(new Set(templates.map((settings: { path_template: string }) => settings.path_template)).size).toBe(3)
  expect(await apply(example, { prune: true })).toEqual([])

  const changed = await apply(example.replace('host: sftp.example.com', 'host: archive.example.com'))
  expect(changed).toHaveLength(3)
  expect(new Set(changed.map(({ kind, name, action }) => `${action} ${kind} ${name}`))).toEqual(new Set(['update destination Archive']))
})

test('an anchor may be used up to 100 times', async () => {
  await using installation = await createInstallation()
  const file = (systems: number) =>
    ['workspaces:', '  - slug: acme/s0', '    settings: &settings { content_days: 90 }']
      .concat(Array.from({ length: systems - 1 }, (_, index) => `  - slug: acme/s${index + 1}\n    settings: *settings`))
      .join('\n')
  await expect(installation.apply(file(103), { dryRun: true })).rejects.toThrow(UserError)
  expect(await installation.apply(file(100), { dryRun: true })).toHaveLength(200)
})
