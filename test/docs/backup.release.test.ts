import { createHash, randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { createRelayProcesses, relayVariables, saveTarget } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'
import { backupSteps, createBackupCommands, type BackupCommands } from './backup-commands.ts'

// Runs the commands of docs/backup.md with a PostgreSQL of its own: database, contents and Temporal are destroyed while deliveries are
// open, and restored.

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const programs = process.env.TEST_POSTGRES_DIR!

const bearerToken = 'sealed-in-the-database'

const ran = new Set<string>()
/** SHA-256 of every acknowledged content, by docId. */
const acknowledged = new Map<string, string>()

const { path: folder } = share(await createFolder())
const bin = join(folder, 'bin')
await mkdir(bin)
await writeFile(join(bin, 'relay'), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 })

/** What the loss of everything replaces. */
const current = { temporal: await startTemporalServer(), isTargetAway: true, apiUrl: '' }
share(disposable({}, () => current.temporal.teardown()))
const target = share(await startHttpTarget())
target.answerWith(({ url }, response) => response.writeHead(url === '/away' && current.isTargetAway ? 503 : 200).end())

const variables = () => ({
  ...relayVariables({ url: backup.databaseUrl }, current.temporal),
  CONTENT_DIR: backup.contentDir,
  // On a busy machine, Temporal takes seconds to describe a schedule.
  TEMPORAL_START_TIMEOUT_MS: '60000',
  RECONCILE_INTERVAL_MS: '2000',
  // The trials of an open circuit would only prolong the test.
  DELIVERY_CIRCUIT_FAILURES: '0',
})

const withDatabase = async <T>(work: (db: Database) => Promise<T>): Promise<T> => {
  const db = openDatabase(databaseConfig(backup.databaseUrl), 'test')
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}

const backup: BackupCommands = share(
  disposable(
    await createBackupCommands({
      folder,
      programs,
      port: await findFreePort(),
      bin: () => bin,
      variables,
      onBlock: (commands) => void ran.add(commands),
    }),
    (each) => each.stop(),
  ),
)
await backup.createCluster(['fsync=off'])
const { workspaceSlug } = await withDatabase(async (db) => {
  await migrate(db)
  const away = { url: `${target.origin}/away` }
  const here = { url: `${target.origin}/here` }
  const retries = { retry_initial_interval_seconds: 2, retry_max_interval_seconds: 2, max_retries: 30 }
  const routes = await createRoutes(db, [{ name: 'away' }, { name: 'here' }], { workspaceSettings: retries })
  for (const [name, config] of Object.entries({ away, here })) {
    const id = routes.destinations[name]!
    await saveTarget(db, { workspaceId: routes.workspaceId, id }, 'webhook', config, { bearer_token: bearerToken })
  }
  return routes
})

const processes = share(createRelayProcesses({}))
const startRelay = async () => {
  const [api] = await Promise.all([processes.start('api', variables()), processes.start('worker', variables())])
  current.apiUrl = api.baseUrl
}

/** Kills the relay, and replaces Temporal by an empty one. */
const loseEverythingBut = async (destroyDatabase: () => Promise<unknown>) => {
  await processes.killAll()
  await destroyDatabase()
  await rm(backup.contentDir, { recursive: true })
  await current.temporal.teardown()
  current.temporal = await startTemporalServer()
}

/** Sends documents below and above CONTENT_DIR_MIN_BYTES. @returns their docIds */
const send = async (batch: string): Promise<string[]> => {
  const contents = [randomBytes(100), randomBytes(200 * 1024), randomBytes(3_000_000)]
  return Promise.all(
    contents.map(async (body, index) => {
      const docId = `${batch}${index}`
      const query = `create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`
      const response = await fetch(`${current.apiUrl}/receiver/acme/${workspaceSlug}?${query}`, { method: 'PUT', body })
      expect(response.status).toBe(201)
      acknowledged.set(docId, createHash('sha256').update(body).digest('hex'))
      return docId
    }),
  )
}

/** Waits until every document has been delivered to the target that is here, and its delivery to the other one has this status. */
const untilAway = (status: string, docIds: string[]) =>
  until(
    `the deliveries of ${docIds.join()} are ${status}`,
    () =>
      withDatabase((db) =>
        db('deliveries')
          .join('documents', 'documents.id', 'document_id')
          .join('destinations', 'destinations.id', 'destination_id')
          .whereIn('doc_id', docIds)
          .whereRaw("deliveries.status = case name when 'here' then 'delivered' else ? end", [status])
          .pluck('doc_id'),
      ),
    (found) => found.length === 2 * docIds.length,
    120_000,
  )
const hasArrived = (path: string, docId: string) =>
  target.arrivals.some(
    ({ url, sha256, headers }) => url === path && sha256 === acknowledged.get(docId) && headers.authorization === `Bearer ${bearerToken}`,
  )

/** Returns the acknowledged documents that the database does not have. */
const lost = async (): Promise<string[]> => {
  const known: string[] = await withDatabase((db) => db('documents').pluck('doc_id'))
  return [...acknowledged.keys()].filter((docId) => !known.includes(docId))
}

describe('docs/backup.md', () => {
  test('after the loss of everything, the base backup and the archived log bring back what was acknowledged before the last segment', async () => {
    await backup.follow('Archive the write-ahead log', 0)
    await startRelay()
    const before = await send('BEFORE')
    await backup.follow('Take a base backup')
    await backup.follow('Copy the contents')
    const after = await send('AFTER')
    await untilAway('retrying', [...before, ...after])
    await backup.follow('Archive everything until now')
    await backup.follow('Copy the contents')
    expect(await backup.follow('Archive the write-ahead log', 1)).toMatch(/\| +0 \|/)
    const unarchived = await send('UNARCHIVED')
    await loseEverythingBut(() => backup.destroyCluster())

    await backup.follow('1. Restore the database', 0)
    await backup.follow('2. Restore the contents')
    expect(await backup.follow('3. Check')).toContain('none is damaged.')
    expect((await lost()).filter((docId) => !unarchived.includes(docId))).toEqual([])
    current.isTargetAway = false
    await startRelay()
    await untilAway('delivered', [...before, ...after])
    for (const docId of [...before, ...after])
      expect({ docId, hasArrived: hasArrived('/away', docId) }).toEqual({ docId, hasArrived: true })
    for (const docId of await lost()) acknowledged.delete(docId)
    expect(await backup.follow('5. Start')).toMatch(/every sealed credential opens[^]*Nothing was changed/)
    await backup.follow('6. Make a new backup')
    await untilAway('delivered', await send('LATER'))
  }, 300_000)

  test('after the loss of everything, a dump and a copy of the contents bring back every document that was acknowledged before the dump', async () => {
    current.isTargetAway = true
    const open = await send('DUMPED')
    await untilAway('retrying', open)
    await backup.follow('Logical backup')
    const later = await send('AFTERDUMP')
    await backup.follow('Copy the contents')
    await loseEverythingBut(() => backup.asPostgres('dropdb --force relay'))

    await backup.follow('1. Restore the database', 1)
    await backup.follow('1. Restore the database', 2)
    await expect(backup.asRelay('relay contents verify')).rejects.toThrow(/DUMPED1 data .* in files\): missing[^]*: \d+ damaged\./)
    await backup.follow('2. Restore the contents')
    expect(await backup.follow('3. Check')).toContain('none is damaged.')
    expect((await lost()).toSorted()).toEqual(later)
    for (const docId of later) acknowledged.delete(docId)
    // Two of the three documents are large enough for a file.
    expect(await backup.follow('4. Remove files without a document')).toMatch(/^2 /)
    expect(await backup.follow('4. Remove files without a document', 0)).toMatch(/^0 /)
    current.isTargetAway = false
    await startRelay()
    await untilAway('delivered', [...acknowledged.keys()])
    for (const docId of open) expect({ docId, hasArrived: hasArrived('/away', docId) }).toEqual({ docId, hasArrived: true })
    await untilAway('delivered', await send('LAST'))
  }, 300_000)

  test('with recovery_target_time, the database is recovered to that moment, and later base backups have no target', async () => {
    await backup.follow('Take a base backup')
    await send('EARLY')
    const { rows } = await withDatabase((db) => db.raw<{ rows: { now: string }[] }>('select now()::text as now'))
    const late = await send('LATE')
    await backup.follow('Archive everything until now')
    expect((await backup.asPostgres(`grep 'STOP TIME' "$BACKUP"/wal/*.backup`)).join('')).toContain('STOP TIME: ')
    await loseEverythingBut(() => backup.destroyCluster())

    const { commands } = (await backupSteps()).find(({ heading }) => heading === '1. Restore the database')!
    expect(commands).toMatch(/^#recovery_target_time = /m)
    await backup.asPostgres(commands.replace(/^#recovery_target_time = .*$/m, `recovery_target_time = '${rows[0]!.now}'`))
    expect((await lost()).toSorted()).toEqual(late)
    expect((await backup.asPostgres('cat "$PGDATA/postgresql.auto.conf"')).join('')).not.toMatch(/recovery_target|restore_command/)
  }, 300_000)

  test('every command of the page was run', async () => {
    const blocks = (await backupSteps()).map(({ commands }) => commands)
    expect(blocks.filter((commands) => !ran.has(commands))).toEqual([])
    for (const commands of blocks) expect(commands).toMatch(/^# as the account of (PostgreSQL|the relay)\n/)
  })
})
