import { mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { migrationSource, requireSchema } from '../../src/db/migrations.ts'
import { newId } from '../../src/ids.ts'
import { version } from '../../src/version.ts'
import { databaseConfig } from '../support/database.ts'
import { relayVariables, startRelayProcess } from '../support/relay-process.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { runSteps, stepsOf } from './walk.ts'

// Runs the commands of docs/upgrade.md with a database that lacks the last migration. Both versions are this one: script/upgrade runs a
// former version with the schema of this one.

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const page = await readFile(new URL('../../docs/upgrade.md', import.meta.url), 'utf8')
const programs = process.env.TEST_POSTGRES_DIR!
const adminUrl = process.env.TEST_DATABASE_URL!
const name = `test_${newId().toLowerCase()}`

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'relay-upgrade-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

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

/** Writes the command of a version where npm installs it. */
const install = async (release: string) => {
  const bin = join(folder, release, 'node_modules', '.bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, 'relay'), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 })
}

describe('docs/upgrade.md', () => {
  test('an upgrade and both ways back leave a database that the version in use accepts, with what was in it', async () => {
    await withDatabase(adminUrl, (db) => db.raw('create database ??', [name]))
    const former = async () => (await migrationSource.getMigrations([])).slice(0, -1)
    const workspace = { id: newId(), user_slug: 'acme', workspace_slug: 'invoices' }
    await inDatabase(async (db) => {
      await db.migrate.latest({ migrationSource: { ...migrationSource, getMigrations: former } })
      await db('workspaces').insert(workspace)
    })
    const temporal = await startTemporalServer()
    const variables = { ...relayVariables({ url: urlOf(name) }, temporal), TEMPORAL_START_TIMEOUT_MS: '60000' }
    await Promise.all([install('0.1.0'), install('0.2.0')])
    await symlink('0.1.0', join(folder, 'current'))

    const ran: string[] = []
    const follow = async (heading: string): Promise<string> => {
      const { commands } = stepsOf(page).find((step) => step.heading === heading)!
      ran.push(commands)
      const environment = {
        ...process.env,
        ...variables,
        PATH: [programs, process.env.PATH].join(delimiter),
        RELEASES: folder,
        VERSION: '0.2.0',
        ADMIN_URL: adminUrl,
        DATABASE: name,
      }
      return (await runSteps([commands], { folder, environment, timeoutMs: 120_000 })).join('')
    }
    const expectNothingLost = () =>
      inDatabase(async (db) => expect(await db('workspaces').select('id', 'user_slug', 'workspace_slug')).toEqual([workspace]))

    try {
      await expect(inDatabase(requireSchema)).rejects.toThrow('The database lacks 1 migrations of this version')
      expect(await follow('Back up and migrate')).toContain('Applied: ')
      await expect(inDatabase(requireSchema)).resolves.toBeUndefined()
      await follow('Switch')
      expect(await readlink(join(folder, 'current'))).toBe('0.2.0')
      const worker = await startRelayProcess('worker', variables)
      try {
        const checked = await follow('Check')
        expect(checked.split('\n')[0]).toBe(version)
        expect(checked).toContain('schema: up to date')
        expect(checked).not.toContain('does not know the variable')
      } finally {
        await worker.stop()
      }
      await expectNothingLost()

      await follow('Go back')
      expect(await readlink(join(folder, 'current'))).toBe('0.1.0')
      await follow('Go back to the backup')
      await expectNothingLost()
      await expect(inDatabase(requireSchema)).rejects.toThrow('The database lacks 1 migrations of this version')
      // The backup can be upgraded again.
      expect(await follow('Back up and migrate')).toContain('Applied: ')
      expect(new Set(ran)).toEqual(new Set(stepsOf(page).map(({ commands }) => commands)))
    } finally {
      await temporal.teardown()
      await withDatabase(adminUrl, (db) => db.raw('drop database ?? with (force)', [name]))
    }
  }, 300_000)
})
