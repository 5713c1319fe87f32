import { createUpstreamDocuments } from '../../src/archive/upstream-documents.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createCheckUpstreams, createUpstreamFailures } from '../../src/migration/failures.ts'
import { createUpstreams } from '../../src/migration/upstreams.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { startMigration } from './migration.ts'

const migration = share(await startMigration())
const { db, api } = migration.scene
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())
// A check asks about all failures of the database.
beforeEach(() => db('upstream_failures').delete())

const checkIncidents = createCheckIncidents(db, testConfig())
const checkUpstreams = createCheckUpstreams(
  createUpstreamFailures(db),
  createUpstreams({ outbound, keyRing: api.keyRing, installation: createInstallation(db) }),
  createUpstreamDocuments(db, testConfig()),
)
const check = async () => {
  const checked = await checkUpstreams(new AbortController().signal)
  await checkIncidents(new Date())
  return checked
}

/** Opens a repository whose upstream fails, and a notification about that. */
const open = async () => {
  const migrated = await migration.open()
  const { old, source, ask, call, repositoryId, workspaceId } = migrated
  old.put('D1', { data: 'hello' })
  const { json } = await ask('GET', '/destinations')
  await call('POST', '/notifications', { name: 'On call', events: ['upstream.failing'], destination_id: json.data[0].id })
  old.faults.add('fails')
  expect((await source.get('D1')).status).toBe(503)
  const failures = () => db('upstream_failures').where({ repository_id: repositoryId })
  await until('the failure is recorded', failures, (rows) => rows.length === 1)
  return {
    ...migrated,
    failures,
    /** Dates the beginning of the failure back. */
    age: (minutes: number) => failures().update({ failing_since: new Date(Date.now() - minutes * 60_000) }),
    warning: async () => {
      const { attributes } = (await ask('GET', `/repositories/${repositoryId}`)).json.data
      return attributes.warnings.find(({ code }: { code: string }) => code === 'upstream_failing')?.message
    },
    notices: async () => {
      const rows = await db('notices')
        .join('incidents', 'incidents.id', 'incident_id')
        .where('notices.workspace_id', workspaceId)
        .orderBy('notices.id')
      return rows.map(({ event, transition, data }) => [event, transition, data.summary, data.error?.message])
    },
  }
}

test('an upstream that fails for five minutes is a warning and an incident of its repository, until it answers again', async () => {
  const { old, failures, age, warning, notices } = await open()
  await age(4)
  expect(await check()).toEqual({ asked: 1, answering: 0 })
  expect([await warning(), await notices()]).toEqual([undefined, []])
  await age(6)
  await check()
  const reason = 'upstream: the content server answers 500: internal error'
  expect(await warning()).toMatch(
    new RegExp(`^The upstream has failed since \\d{4}-[^:]+:[^:]+:[^:]+: ${reason}\\. Documents that only it has`),
  )
  const opened = ['upstream.failing', 'opened', expect.stringContaining('The upstream of repository Z1 fails'), reason]
  expect(await notices()).toEqual([opened])

  old.faults.delete('fails')
  expect(await check()).toEqual({ asked: 1, answering: 1 })
  expect([await failures(), await warning()]).toEqual([[], undefined])
  expect(await notices()).toEqual([opened, ['upstream.failing', 'closed', 'The upstream of repository Z1 no longer fails.', reason]])
})

test('a process records the failures of an upstream once a minute, and the check tells the latest reason', async () => {
  const { source, failures, set } = await open()
  const [first] = await failures()
  expect((await source.get('D2')).status).toBe(503)
  expect((await source.head('D3')).status).toBe(503)
  // Failures are recorded without waiting: what D2 and D3 would have recorded is there when a later failure is.
  await open()
  expect(await failures()).toEqual([first])
  // Nothing listens at the port discard.
  await set({ url: 'http://127.0.0.1:9/', cont_rep: 'Z1' })
  expect(await check()).toEqual({ asked: 2, answering: 0 })
  const [second] = await failures()
  expect(second).toMatchObject({ failing_since: first.failing_since, last_error: expect.stringContaining('cannot be reached') })
})

test('a failure ends with the upstream', async () => {
  const { set, failures, age, warning, notices } = await open()
  await age(6)
  await check()
  await set(null)
  expect(await warning()).toBeUndefined()
  expect(await check()).toEqual({ asked: 1, answering: 1 })
  expect([await failures(), (await notices()).map(([, transition]) => transition)]).toEqual([[], ['opened', 'closed']])
})

test('a document that the upstream does not have is no failure', async () => {
  const { old, source, repositoryId } = await migration.open()
  expect((await source.get('D1')).status).toBe(404)
  // Failures are recorded without waiting, and once a minute: the first one stays.
  old.faults.add('fails')
  expect((await source.get('D1')).status).toBe(503)
  const [failure] = await until(
    'a failure is recorded',
    () => db('upstream_failures').where({ repository_id: repositoryId }),
    (rows) => rows.length === 1,
  )
  expect(failure.last_error).toContain('answers 500')
})

test.each([
  ['no document', 1, () => true],
  ['one document', 0, (url: string) => url.includes('docId=D2')],
])('an upstream that describes documents and delivers %s has %i failures after a check', async (_, count, breaks) => {
  const { old, source, kept, repositoryId } = await migration.open()
  for (const docId of ['D1', 'D2']) old.put(docId, { data: 'hello' })
  await source.get('D1')
  await kept('D1', 1)
  // The old server breaks off after half of the bytes.
  old.timing.beforeAnswer = async (url) => void (breaks(url) ? old.faults.add('closes_midway') : old.faults.delete('closes_midway'))
  await source.get('D2').catch(() => {})
  const failures = () => db('upstream_failures').where({ repository_id: repositoryId })
  await until('the failure is recorded', failures, (rows) => rows.length === 1)
  await check()
  expect(await failures()).toHaveLength(count)
})

test('an upstream that answers wrongly about the document that was fetched last answers, unless it does so about any document', async () => {
  const { old, source, kept, failures } = await open()
  old.faults.delete('fails')
  await source.get('D1')
  await kept('D1', 1)
  old.documents.delete('Z1/D1')
  old.faults.add('unknown_is_200')
  expect(await check()).toEqual({ asked: 1, answering: 0 })
  old.timing.beforeAnswer = async (url) =>
    void (url.includes('docId=D1') ? old.faults.add('unknown_is_200') : old.faults.delete('unknown_is_200'))
  expect(await check()).toEqual({ asked: 1, answering: 1 })
  expect(await failures()).toEqual([])
})
