import { readFile, readlink, symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { newId } from '../../src/base/ids.ts'
import { version } from '../../src/base/version.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { migrationSource, requireSchema } from '../../src/db/migrations.ts'
import { databaseConfig } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { startNpmRegistry } from '../support/npm-registry.ts'
import { createRelayProcesses, relayVariables } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { runSteps, stepsOf, withValues } from './walk.ts'

// Runs the commands of docs/upgrade.md with a database that lacks the last migration. Both versions are this one: script/upgrade runs a
// former version with the schema of this one.

const page = await readFile(new URL('../../docs/upgrade.md', import.meta.url), 'utf8')
const programs = process.env.TEST_POSTGRES_DIR!
const adminUrl = process.env.TEST_DATABASE_URL!
const name = `test_${newId().toLowerCase()}`

const { path: folder } = share(await createFolder())

const urlOf = (database: string) => {
  const url = new URL(adminUrl)
  url.pathname = `/${database}`
  return url.href
}

const withDatabase = async <T>(url: string, work: (db: Database) => Promise<T>): Promise<T> => {
  const db = openDatabase(databaseConfig(url), 'test')
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}
const inDatabase = <T>(work: (db: Database) => Promise<T>) => withDatabase(urlOf(name), work)

describe('docs/upgrade.md', () => {
  test('an upgrade and both ways back leave a database that the version in use accepts, with what was in it', async () => {
    await withDatabase(adminUrl, (db) => db.raw('create database ??', [name]))
    const former = async () => (await migrationSource.getMigrations([])).slice(0, -1)
    const workspace = { id: newId(), user_slug: 'acme', workspace_slug: 'invoices' }
    await inDatabase(async (db) => {
      await db.migrate.latest({ migrationSource: { ...migrationSource, getMigrations: former } })
      await db('workspaces').insert(workspace)
    })
    await using temporal = await startTemporalServer()
    const variables = { ...relayVariables({ url: urlOf(name) }, temporal), TEMPORAL_START_TIMEOUT_MS: '60000' }
    await using processes = createRelayProcesses(variables)
    await using registry = await startNpmRegistry(join(folder, 'registry'), ['0.1.0', '0.2.0'])

    const [exports, ...steps] = stepsOf(page)
    const ran: string[] = []
    const follow = async (heading: string, values: Record<string, string> = {}): Promise<string> => {
      const { commands } = steps.find((step) => step.heading === heading)!
      ran.push(commands)
      const environment = {
        ...process.env,
        ...variables,
        ...registry.variables,
        PATH: [programs, process.env.PATH].join(delimiter),
        ADMIN_URL: adminUrl,
        DATABASE: name,
      }
      const withFolder = withValues(exports!.commands, { RELEASES: folder, ...values })
      return (await runSteps([withFolder, commands], { folder, environment, timeoutMs: 120_000 })).join('')
    }
    const expectNothingLost = () =>
      inDatabase(async (db) => expect(await db('workspaces').select('id', 'user_slug', 'workspace_slug')).toEqual([workspace]))

    try {
      await follow('Install the new version', { VERSION: '0.1.0' })
      await symlink('0.1.0', join(folder, 'current'))
      await follow('Install the new version')
      await expect(inDatabase(requireSchema)).rejects.toThrow('The database lacks 1 migrations of this version')
      expect(await follow('Back up and migrate')).toContain('Applied: ')
      await expect(inDatabase(requireSchema)).resolves.toBeUndefined()
      await follow('Switch')
      expect(await readlink(join(folder, 'current'))).toBe('0.2.0')
      await processes.start('worker')
      const checked = await follow('Check')
      expect(checked.split('\n')[0]).toBe(version)
      expect(checked).toContain('schema: up to date')
      expect(checked).not.toContain('does not know the variable')
      await processes.killAll()
      await expectNothingLost()

      await follow('Go back')
      expect(await readlink(join(folder, 'current'))).toBe('0.1.0')
      await follow('Go back to the backup')
      await expectNothingLost()
      await expect(inDatabase(requireSchema)).rejects.toThrow('The database lacks 1 migrations of this version')
      // The backup can be upgraded again.
      expect(await follow('Back up and migrate')).toContain('Applied: ')
      expect(new Set(ran)).toEqual(new Set(steps.map(({ commands }) => commands)))
    } finally {
      await withDatabase(adminUrl, (db) => db.raw('drop database ?? with (force)', [name]))
    }
  }, 300_000)
})
