import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { createOnItsOwn, type Loop } from '../../src/db/on-its-own.ts'
import { addMessages, createOutbox, outboxKey, type CancelDelivery } from '../../src/db/outbox.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createReconcile } from '../../src/delivery/reconcile.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createCallLines } from '../../src/delivery/wake.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createCheckUpstreams, createUpstreamFailures } from '../../src/migration/failures.ts'
import { createStartMigrations } from '../../src/migration/start-due.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { computeAggregates } from '../../src/observe/aggregates.ts'
import { createDispatcher } from '../../src/temporal/dispatcher.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'
import { until } from '../support/until.ts'
import { withoutManifests } from '../support/without-manifests.ts'

// One object for which the work of a loop fails, beside others: the others go on, and the failure is logged with its cause and counted.

const config = testConfig()
const dayMs = 86_400_000
const neverAborted = new AbortController().signal

type Routes = Awaited<ReturnType<typeof createRoutes>>

interface Scene {
  db: Database
  bad: Routes
  good: Routes
  /** The document that each workspace has received. */
  documents: { bad: string; good: string }
  reports: Pick<ReturnType<typeof createOnItsOwn>, 'onItsOwn' | 'passOver'>
  log: ReturnType<typeof logsTo>['log']
}

interface Case {
  loop: Loop
  /** Text of the log line that names the object. */
  names(scene: Scene): string
  /** Arranges the poisoned object. */
  poison(scene: Scene): Promise<unknown>
  run(scene: Scene, db: Database): Promise<unknown>
  /** Returns true if the others were done. */
  isDone(scene: Scene): Promise<boolean>
}

const unreadable = { settings: JSON.stringify({ max_retries: 101 }) }
const spoilSettings = ({ db, bad }: Scene) => db('workspaces').where({ id: bad.workspaceId }).update(unreadable)
const failing = (workspaceId: string, table: string, event: string) => `
  create function refuse() returns trigger language plpgsql as $$
  begin
    if old.workspace_id = '${workspaceId}' then
      raise exception 'poisoned';
    end if;
    return coalesce(new, old);
  end
  $$;
  create trigger poison before ${event} on ${table} for each row execute function refuse();`
const has = async (db: Database, table: string, where: object) => (await db(table).where(where).limit(1)).length > 0
const workflows = (missing: string) => ({
  findDeliveryWorkflow: async ({ documentId }: { documentId: string }) => {
    if (documentId === missing) throw new TypeError('poisoned')
    return { state: 'missing' as const }
  },
  findBulkRetryWorkflow: async () => ({ state: 'working' as const }),
  terminateDelivery: async () => {},
  terminateBulkRetry: async () => {},
})
const inLine = (db: Database) => async (routes: Routes) => {
  const id = routes.destinations['archive']!
  await db('destination_gates').insert({ destination_id: id })
  await db('destination_slots').insert({ destination_id: id, number: 1 })
  await db('deliveries').where({ destination_id: id }).update({ waiting: 'in_line', begin_at: null, next_attempt_at: 'infinity' })
}
const cancelOf = ({ bad }: Scene, documentId: string): CancelDelivery => ({
  kind: 'cancelDelivery',
  document: { documentId, workspace: `acme/${bad.workspaceSlug}`, repoId: 'Z1', docId: 'D', compId: 'data' },
  destinationId: 'archive',
  requestId: 'R',
})
const failedDocument = (db: Database, { workspaceId, destinations }: Routes) =>
  db('notifications')
    .insert({
      id: newId(),
      workspace_id: workspaceId,
      name: 'n',
      events: ['delivery.failed', 'certificate.expiring'],
      destination_id: destinations['archive']!,
      quiet_seconds: 60,
      silence_hours: 72,
    })
    .then(() => db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'failed' }))
const later = new Date(Date.now() + 2 * dayMs)
const retain = async ({ reports }: Scene, db: Database) => {
  await withoutManifests(db)
  return createRetention(db, { ...config, RETENTION_DOCUMENTS_DAYS: 1 }, { onItsOwn: reports.onItsOwn }).removeExpired(later, neverAborted)
}
const migrationOf = async (db: Database, id: string, { workspaceId, repositoryId }: Routes) =>
  db('document_migrations').insert({
    id,
    workspace_id: workspaceId,
    repository_id: repositoryId,
    repo_id: 'Z1',
    upstream_url: 'http://old',
    upstream_cont_rep: 'Z1',
    mode: 'copy',
    lists: '[]',
    rows: 1,
  })

const cases: Record<string, Case> = {
  'documents to begin, of a workspace whose settings cannot be read': {
    loop: 'dispatcher',
    names: ({ bad }) => bad.workspaceId,
    poison: (scene) =>
      spoilSettings(scene).then(() => scene.db('deliveries').update({ begin_at: scene.db.raw(`now() - interval '1 minute'`) })),
    run: async ({ db, documents, reports, log }) => {
      const send = async (message: object) => {
        const { documentId } = (message as { input: { documentId: string } }).input
        await db('deliveries').where({ document_id: documentId }).update({ begin_at: null })
      }
      const dispatcher = createDispatcher({ db, temporal: { send }, config, log, passOver: reports.passOver })
      dispatcher.start()
      const isPostponed = () => db('deliveries').where({ document_id: documents.bad }).where('begin_at', '>', db.fn.now()).first()
      await until('the poisoned document is postponed', async () => (await isPostponed()) !== undefined)
      await until('the other is begun', async () => has(db, 'deliveries', { document_id: documents.good, begin_at: null }))
      await dispatcher.close()
    },
    isDone: ({ db, documents }) => has(db, 'deliveries', { document_id: documents.good, begin_at: null }),
  },
  'messages of the outbox': {
    loop: 'outbox',
    names: ({ documents }) => documents.bad,
    poison: async (scene) => {
      await scene.db.transaction((trx) => addMessages(trx, [cancelOf(scene, scene.documents.bad), cancelOf(scene, scene.documents.good)]))
    },
    run: async ({ documents, reports, log }, db) => {
      const send = async (message: object) => {
        if (JSON.stringify(message).includes(documents.bad)) throw new TypeError('poisoned')
      }
      await createLauncher({ send }, createOutbox(db), log, { sweepAgeMs: 0, passOver: reports.passOver }).sweep()
    },
    isDone: async (scene) => !(await has(scene.db, 'outbox', { key: outboxKey(cancelOf(scene, scene.documents.good)) })),
  },
  'lines of destinations, of a workspace whose settings cannot be read': {
    loop: 'call-lines',
    names: ({ bad }) => bad.destinations['archive']!,
    poison: async (scene) => {
      await spoilSettings(scene)
      for (const routes of [scene.bad, scene.good]) await inLine(scene.db)(routes)
    },
    run: ({ reports }, db) => createCallLines(db, config, () => {}, reports.onItsOwn)(),
    isDone: ({ db, documents }) => has(db, 'deliveries', { document_id: documents.good, waiting: 'called' }),
  },
  'overdue deliveries, of which Temporal cannot be asked about one': {
    loop: 'reconcile',
    names: ({ documents }) => documents.bad,
    poison: ({ db }) => db('deliveries').update({ begin_at: null, next_attempt_at: db.raw(`now() - interval '1 hour'`) }),
    run: ({ documents, reports }, db) =>
      createReconcile(db, workflows(documents.bad), createBulkRetries(db), async () => {}, config, reports)(),
    isDone: ({ db, documents }) => has(db, 'deliveries', { document_id: documents.good, begin_as: 'delivery' }),
  },
  'overdue deliveries, of which one cannot be changed': {
    loop: 'reconcile',
    names: ({ documents }) => documents.bad,
    poison: async ({ db, bad }) => {
      await db('deliveries').update({ begin_at: null, next_attempt_at: db.raw(`now() - interval '1 hour'`) })
      await db.raw(failing(bad.workspaceId, 'deliveries', 'update'))
    },
    run: ({ reports }, db) => createReconcile(db, workflows(''), createBulkRetries(db), async () => {}, config, reports)(),
    isDone: ({ db, documents }) => has(db, 'deliveries', { document_id: documents.good, begin_as: 'delivery' }),
  },
  'connections that hold deliveries, of which one has settings that cannot be read': {
    loop: 'reconcile',
    names: ({ bad }) => bad.connections['archive']!,
    poison: async ({ db, bad }) => {
      await db('deliveries').update({ status: 'held' })
      await db('connections')
        .where({ id: bad.connections['archive'] })
        .update({ settings: JSON.stringify({ on_resume: 'backwards' }) })
    },
    run: ({ reports }, db) => createRelease(db, reports.onItsOwn).releaseOverdue(),
    isDone: async ({ db, good }) =>
      (await db('outbox').where('key', 'like', `release-batches/${good.connections['archive']}%`).select('key')).length === 1,
  },
  'running migrations': {
    loop: 'migrations',
    names: () => 'M1',
    poison: async ({ db, bad, good }) => {
      await migrationOf(db, 'M1', bad)
      await migrationOf(db, 'M2', good)
    },
    run: ({ db: own, reports }, db) =>
      createStartMigrations(
        db,
        async ({ documentMigrationId }) => {
          if (documentMigrationId === 'M1') throw new TypeError('poisoned')
          await own('document_migrations').where({ id: documentMigrationId }).update({ waiting_reason: 'started' })
        },
        reports.onItsOwn,
      )(),
    isDone: ({ db }) => has(db, 'document_migrations', { id: 'M2', waiting_reason: 'started' }),
  },
  'upstreams that have failed': {
    loop: 'upstreams',
    names: ({ bad }) => bad.repositoryId,
    poison: async ({ db, bad, good }) => {
      for (const { repositoryId } of [bad, good]) await db('upstream_failures').insert({ repository_id: repositoryId, last_error: 'x' })
      await db('repositories')
        .where({ id: bad.repositoryId })
        .update({ upstream: JSON.stringify({ url: 'http://old', cont_rep: 'Z1' }) })
    },
    run: ({ reports }, db) => {
      const of = () => Promise.reject(new TypeError('the stored secrets cannot be opened'))
      return createCheckUpstreams(
        createUpstreamFailures(db),
        { of },
        { findLastFetched: async () => undefined },
        reports.onItsOwn,
      )(neverAborted)
    },
    isDone: async ({ db, good }) => !(await has(db, 'upstream_failures', { repository_id: good.repositoryId })),
  },
  'metrics, of which one cannot be computed': {
    loop: 'aggregates',
    names: () => 'relay_certificate_not_after_timestamp_seconds',
    poison: ({ db }) => db.raw('alter table certificates rename to gone'),
    run: ({ reports }, db) => computeAggregates(db, reports.onItsOwn),
    isDone: ({ db }) => has(db, 'aggregates', { metric: 'relay_statistics_computed_timestamp_seconds' }),
  },
  'incidents, of which one kind cannot be checked': {
    loop: 'incidents',
    names: () => 'certificate.expiring',
    poison: async ({ db, good }) => {
      await failedDocument(db, good)
      await db.raw('alter table certificates rename to gone')
    },
    run: ({ reports }, db) => createCheckIncidents(db, config, reports)(new Date()),
    isDone: ({ db }) => has(db, 'incidents', { event: 'delivery.failed' }),
  },
  'retention, of a workspace whose settings cannot be read': {
    loop: 'retention',
    names: ({ bad }) => bad.workspaceId,
    poison: spoilSettings,
    run: retain,
    isDone: async ({ db, good }) => !(await has(db, 'events', { workspace_id: good.workspaceId })),
  },
  'retention of events, which fails in one workspace': {
    loop: 'retention',
    names: ({ bad }) => bad.workspaceId,
    poison: ({ db, bad }) => db.raw(failing(bad.workspaceId, 'events', 'delete')),
    run: retain,
    isDone: async ({ db, good }) => !(await has(db, 'events', { workspace_id: good.workspaceId })),
  },
  'retention of documents, which fails in one workspace': {
    loop: 'retention',
    names: ({ bad }) => bad.workspaceId,
    poison: async ({ db, bad }) => {
      await db('deliveries').update({ status: 'delivered' })
      await db('documents').update({ content_id: null })
      await db.raw(failing(bad.workspaceId, 'documents', 'delete'))
    },
    run: retain,
    isDone: async ({ db, documents, good }) =>
      !(await has(db, 'documents', { id: documents.good })) && !(await has(db, 'events', { workspace_id: good.workspaceId })),
  },
}

const arrange = async () => {
  const database = await createTestDatabase()
  const { db } = database
  const lines: string[] = []
  const { log } = logsTo(lines)
  const reports = createOnItsOwn({ log })
  const receive = async () => {
    const routes = await createRoutes(db, [{ name: 'archive' }], { workspaceSettings: { events_days: 1, content_days: 1 } })
    const { documents } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
    return { routes, documentId: documents[0]!.documentId }
  }
  const [bad, good] = [await receive(), await receive()]
  const scene: Scene = {
    db,
    bad: bad.routes,
    good: good.routes,
    documents: { bad: bad.documentId, good: good.documentId },
    reports,
    log,
  }
  const counted = async (loop: Loop) => {
    const [counter] = await Promise.all(reports.metrics.map((metric) => metric.get()))
    return counter!.values.find(({ labels }) => labels['loop'] === loop)!.value
  }
  return { scene, lines, counted, [Symbol.asyncDispose]: database.drop }
}

test.each(Object.entries(cases))('%s: the others go on', async (_, { loop, names, poison, run, isDone }) => {
  await using arranged = await arrange()
  const { scene, lines, counted } = arranged
  await poison(scene)
  await run(scene, scene.db)
  expect(await isDone(scene)).toBe(true)
  expect(await counted(loop)).toBeGreaterThan(0)
  const reported = lines.filter((line) => line.includes(`"loop":"${loop}"`) && line.includes(names(scene)))
  expect(reported.map((line) => JSON.parse(line) as object)).toMatchObject({
    0: { level: 'error', err: { message: expect.any(String) as string } },
  })
})

const withDatabase = Object.entries(cases).filter(([, { loop }]) => loop !== 'dispatcher')

test.each(withDatabase)('%s: that the database is away is not hidden', async (_, { run }) => {
  await using arranged = await arrange()
  const { scene, counted } = arranged
  const away = openDatabase({ ...databaseConfig('postgres://nobody@127.0.0.1:1/none'), acquireTimeoutMs: 2_000 }, 'test')
  await expect(run(scene, away)).rejects.toThrow(/ECONNREFUSED/)
  expect(await counted('retention')).toBe(0)
  await away.destroy()
})
