import { pino } from 'pino'
import { diagnose } from '../../src/cli/doctor/doctor.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createRepositoryMetrics } from '../../src/observe/metrics.ts'
import { warnAboutOpenReceivers } from '../../src/routing/repository-warnings.ts'
import type { Answer } from '../support/client.ts'
import { testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'
import { until } from '../support/until.ts'
import { wire } from './objstore.ts'

const { database, api, acme, other } = share(await startScene())

const signer = share(await createSigner('P-256'))

const codesOf = ({ json }: Answer) => json.data.attributes.warnings.map(({ code }: { code: string }) => code)
const warningsOf = async (id: string) => codesOf(await acme.call('GET', `/repositories/${id}`))

test('a repository warns while everybody may send documents, and while they are discarded', async () => {
  const created = await acme.call('POST', '/repositories', { repo_id: 'A1', name: 'A' })
  const { id } = created.json.data
  expect(codesOf(created)).toEqual(['open_to_all', 'not_connected'])
  const destination = await acme.call('POST', '/destinations', {
    name: 'Hook',
    connector_type: 'webhook',
    config: { url: 'https://example.com/' },
    credentials: {},
  })
  const links = { repository_ids: [id], destination_ids: [destination.json.data.id] }
  // An inactive connection holds documents: nothing is discarded.
  const connection = await acme.call('POST', '/connections', { name: 'A', is_active: false, ...links })
  expect(await warningsOf(id)).toEqual(['open_to_all'])

  await acme.call('PATCH', '/settings', { receiver_allowed_cidrs: ['192.0.2.0/24'] })
  expect(await warningsOf(id)).toEqual([])
  await acme.call('PATCH', '/settings', { receiver_allowed_cidrs: [] })
  expect(codesOf(await acme.call('PATCH', `/repositories/${id}`, { signature_verification: true }))).toEqual(['no_active_certificate'])
  const certificate = { auth_id: 'CN=A1', certificate: signer.pem, status: 'active' }
  await acme.call('POST', `/repositories/${id}/certificates`, certificate)
  expect(await warningsOf(id)).toEqual([])

  await acme.call('DELETE', `/connections/${connection.json.data.id}`)
  expect(await warningsOf(id)).toEqual(['not_connected'])
  expect(codesOf(await acme.call('PATCH', `/repositories/${id}`, { status: 'inactive' }))).toEqual([])
})

test('a list shows the warnings of each repository', async () => {
  const tenant = await api.tenant('acme/list')
  const wired = await wire(tenant, 'L1')
  await tenant.call('POST', '/repositories', { repo_id: 'L2', name: 'A', signature_verification: true })
  const { json } = await tenant.call('GET', '/repositories')
  const listed = json.data.map(({ attributes }: { attributes: { repo_id: string; warnings: { code: string }[] } }) => [
    attributes.repo_id,
    attributes.warnings.map(({ code }) => code),
  ])
  expect(listed).toEqual([
    ['L1', ['open_to_all']],
    ['L2', ['not_connected', 'no_active_certificate']],
  ])
  await tenant.call('DELETE', `/destinations/${wired.destinationId}`)
  expect(codesOf(await tenant.call('GET', `/repositories/${wired.repositoryId}`))).toEqual(['open_to_all', 'not_connected'])
})

test('a repository warns while the latest requests of its source system were all refused, with the reason and what to do', async () => {
  const tenant = await api.tenant('acme/refused')
  const { repoId, repositoryId } = await wire(tenant, 'R1')
  const refused = async () => {
    const { warnings } = (await tenant.call('GET', `/repositories/${repositoryId}`)).json.data.attributes
    return warnings.find(({ code }: { code: string }) => code === 'requests_refused')?.message
  }
  for (let count = 0; count < 5; count += 1) {
    expect(await refused()).toBeUndefined()
    expect((await tenant.send('PUT', `create&pVersion=0045&contRep=${repoId}&docId=D${count}`, 'hello')).status).toBe(400)
    await until('the request has been captured', async () => (await tenant.call('GET', '/requests')).json.data.length === count + 1)
  }
  expect(await refused()).toMatch(/^The latest 5 requests .* refused, the last one with invalid_parameter\. Correct the parameter/)
  await tenant.sendCreate(repoId, 'D6')
  await until('a request has been accepted', async () => (await refused()) === undefined)
})

test('repositories whose names begin alike warn while they accept signatures of the same signer', async () => {
  const create = async (repoId: string, authId = 'CN=TST', status = 'active') => {
    const { json } = await acme.call('POST', '/repositories', { repo_id: repoId, name: 'A', signature_verification: true })
    const { id } = json.data
    const added = await acme.call('POST', `/repositories/${id}/certificates`, { auth_id: authId, certificate: signer.pem, status })
    return { id, certificate: `/repositories/${id}/certificates/${added.json.data.id}` }
  }
  const short = await create('CRM')
  const long = await create('CRMORDER')
  await create('CRM2', 'CN=OTHER')
  await create('CRN')
  const inactive = await create('CRM_OLD', 'CN=TST', 'inactive')
  const similar = async (id: string) => {
    const { warnings } = (await acme.call('GET', `/repositories/${id}`)).json.data.attributes
    return warnings.find(({ code }: { code: string }) => code === 'similar_name')?.message
  }
  expect(await similar(short.id)).toContain('begin alike: CRMORDER.')
  expect(await similar(long.id)).toContain('begin alike: CRM.')
  await acme.call('PATCH', inactive.certificate, { status: 'active' })
  expect(await similar(short.id)).toContain('begin alike: CRMORDER, CRM_OLD.')
  await acme.call('PATCH', `/repositories/${short.id}`, { signature_verification: false })
  expect(await similar(short.id)).toBeUndefined()
})

test('doctor names the repositories with warnings and stays ok', async () => {
  // Of its own, because doctor names five repositories of the installation.
  const own = await startScene()
  for (const repoId of ['M1', 'M2'])
    await own.other.call('POST', '/repositories', { repo_id: repoId, name: 'A', signature_verification: true })
  const findings = await diagnose({ ...testConfig({ DATABASE_URL: own.database.url }), TEMPORAL_START_TIMEOUT_MS: 100 })
  await own.stop()
  for (const [check, condition] of [
    ['unconnected repositories', 'discard'],
    ['repositories without a certificate', 'refuse'],
  ] as const) {
    const { ok, warnings } = findings.find(({ name }) => name === check)!
    expect(ok).toBe(true)
    expect(warnings).toEqual([
      expect.stringMatching(new RegExp(`^These repositories ${condition} .*: .*other/prod M1, other/prod M2.*\\.$`)),
    ])
  }
})

test('a metric counts the repositories with each warning', async () => {
  const countOf = async (code: string) => {
    const [metric] = createRepositoryMetrics(database.db)
    const { values } = await metric!.get()
    return values.find(({ labels }) => labels['code'] === code)!.value
  }
  const before = await countOf('not_connected')
  await other.call('POST', '/repositories', { repo_id: 'M3', name: 'A', signature_verification: true })
  expect(await countOf('not_connected')).toBe(before + 1)
  expect(await countOf('similar_name')).toBeGreaterThanOrEqual(0)
})

test('the API logs one line at its start that names the open repositories, and starts without the database', async () => {
  const tenant = await api.tenant('acme/open')
  await tenant.call('POST', '/repositories', { repo_id: 'L1', name: 'A' })
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => void lines.push(line) })
  await warnAboutOpenReceivers(database.db, log)
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, repositories: expect.arrayContaining(['acme/open L1']), msg: expect.stringContaining('accept unsigned requests') },
  ])

  const unreachable = openDatabase({ ...testConfig({ DATABASE_URL: 'postgres://relay@127.0.0.1:1/relay' }) }, 'api')
  await warnAboutOpenReceivers(unreachable, log)
  expect(lines).toHaveLength(2)
  await unreachable.destroy()
})

test('only an admin weakens the verification of signatures; a member strengthens it', async () => {
  const create = (level: 'member' | 'admin', body: object) =>
    api.call('POST', `${acme.path}/repositories`, { key: acme.keys[level], body: { name: 'A', ...body } })
  const { id } = (await create('member', { repo_id: 'S1' })).json.data
  const patch = async (level: 'member' | 'admin', body: object) => {
    const { status, json } = await api.call('PATCH', `${acme.path}/repositories/${id}`, { key: acme.keys[level], body })
    return [status, json.error?.code]
  }
  const [on, off] = [{ signature_verification: true }, { signature_verification: false }]
  expect(await patch('member', off)).toEqual([200, undefined])
  expect(await patch('member', on)).toEqual([200, undefined])
  expect(await patch('member', { ...off, name: 'B' })).toEqual([403, 'forbidden'])
  expect((await acme.call('GET', `/repositories/${id}`)).json.data.attributes).toMatchObject({ ...on, name: 'A' })
  expect(await patch('member', { ...on, name: 'B' })).toEqual([200, undefined])
  expect(await patch('admin', off)).toEqual([200, undefined])

  const [any, fixed] = [{ signed_parameter_order: 'any' }, { signed_parameter_order: 'fixed' }]
  expect(await patch('member', any)).toEqual([403, 'forbidden'])
  expect(await patch('admin', any)).toEqual([200, undefined])
  expect(await patch('member', { ...any, name: 'C' })).toEqual([200, undefined])
  expect(await patch('member', fixed)).toEqual([200, undefined])
  expect((await create('member', { repo_id: 'S2', ...any })).status).toBe(403)
  expect((await create('admin', { repo_id: 'S2', ...any })).json.data.attributes).toMatchObject(any)

  const [refused, accepted] = [{ accepts_mcreate: false }, { accepts_mcreate: true }]
  expect(await patch('member', refused)).toEqual([200, undefined])
  expect(await patch('member', accepted)).toEqual([403, 'forbidden'])
  expect(await patch('admin', accepted)).toEqual([200, undefined])
  const entries = await database.db('audit_logs').where({ subject_id: id, event: 'repository.updated' }).orderBy('id')
  expect(entries.map(({ metadata }) => metadata.after)).toEqual([on, { name: 'B' }, off, any, { name: 'C' }, fixed, refused, accepted])
})
