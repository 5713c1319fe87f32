import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const { workspace, database } = share(await startScene())

const start = async (options: Parameters<typeof workspace>[1] = {}) => {
  const created = await workspace([{ name: 'archive' }], options)
  const { call, keys, repositoryId } = created
  const check = (body: object = {}, key = keys.admin) => call('POST', `/repositories/${repositoryId}/check`, body, { key })
  const change = (values: object) => database.db('repositories').where({ id: repositoryId }).update(values)
  return { ...created, check, change }
}

describe('a check of a repository', () => {
  test('uses it as the source system would, and tells each check', async () => {
    const { check, repositoryId } = await start()
    const { status, json } = await check()
    expect([status, json.data]).toEqual([
      200,
      expect.objectContaining({ profile: 'smoke', signed: false, failed: 0, interrupted: false, left_behind: [] }),
    ])
    expect(json.data.results.find(({ id }: { id: string }) => id === 'create-put')).toMatchObject({
      title: 'create by PUT stores a component, which get returns',
      status: 'passed',
      message: null,
      remedy: null,
    })
    expect(await database.db('archive_documents').where({ repository_id: repositoryId, deleted_at: null })).toEqual([])
  })

  test('sends requests that a list of refused ones can leave out', async () => {
    const { check, source, list, ask } = await start()
    expect((await check({ profile: 'core' })).json.data.failed).toBe(0)
    const { headers } = await source.get('NONE')
    await until(
      'the last request is captured',
      () => ask('GET', `/requests/${headers['x-relay-request-id']}`),
      ({ status }) => status === 200,
    )
    const refused = async (more = '') => (await ask('GET', `/requests?status_class=4xx&per_page=100${more}`)).json.data
    expect((await refused()).length).toBeGreaterThan(5)
    expect((await refused('&without_checks=false')).length).toBeGreaterThan(5)
    expect(await refused('&without_checks=true')).toMatchObject([{ id: headers['x-relay-request-id'] }])
    expect((await list(1)).length).toBeGreaterThan(5)
  })

  test('signs with a certificate of its own where signatures are required', async () => {
    const { check, change, ask, repositoryId } = await start()
    await change({ signature_verification: true })
    expect((await check({ profile: 'core' })).json.data).toMatchObject({ signed: true, failed: 0, not_checked: 0, left_behind: [] })
    const { json } = await ask('GET', '/audit-logs?per_page=4')
    const events = json.data.map(({ attributes }: { attributes: { event: string } }) => attributes.event)
    expect(events).toEqual(['cert.deleted', 'cert.activated', 'cert.received', 'repository.checked'])
    expect(await database.db('certificates').where({ repository_id: repositoryId })).toEqual([])
  })

  test('leaves no delivery that is still to be made, and nothing that needs attention', async () => {
    const { check, ask, repositoryId } = await start()
    expect((await check({ profile: 'core' })).json.data.failed).toBe(0)
    const deliveries = await database
      .db('deliveries')
      .select('deliveries.status', 'ended_by', 'needs_attention', 'acknowledged_at')
      .join('documents', 'document_id', 'documents.id')
      .where({ repository_id: repositoryId })
    expect(deliveries.length).toBeGreaterThan(5)
    expect(
      new Set(
        deliveries.map(({ status, ended_by: end, needs_attention: needs, acknowledged_at: at }) =>
          [status, end, needs, at !== null].join(),
        ),
      ),
    ).toEqual(new Set(['cancelled,check_ended,false,true']))
    expect((await ask('GET', '/failures')).json.data).toEqual([])
    const cancelled = await database.db('outbox').whereRaw("message ->> 'kind' = 'cancelDelivery'")
    expect(cancelled.length).toBeGreaterThanOrEqual(deliveries.length)
  })

  test('says what a source system would be told where its address is not allowed', async () => {
    const { check } = await start({ workspaceSettings: { receiver_allowed_cidrs: ['192.0.2.0/24'] } })
    const { json } = await check()
    expect(json.data.failed).toBe(2)
    expect(json.data.results.find(({ id }: { id: string }) => id === 'access')).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/^info was answered with 403 \(address_not_allowed: /),
    })
  })

  test('is refused for a lower level, other profiles, and repositories that cannot be checked', async () => {
    const { check, change, keys, ask, connections } = await start()
    expect((await check({}, keys.member)).status).toBe(403)
    expect((await check({ profile: 'full' })).status).toBe(422)
    await change({ status: 'inactive' })
    expect((await check()).json.error).toMatchObject({ code: 'conflict', message: 'The repository is inactive: it refuses requests.' })
    await change({ status: 'active' })
    await ask('DELETE', `/connections/${Object.values(connections)[0]!}`)
    expect((await check()).json.error.message).toMatch(/^No connection leads from the repository to a destination/)
  })

  test('is refused on legal hold, because it could not delete its documents', async () => {
    const { check, call } = await start()
    await call('POST', '/legal-holds', { repo_id: 'Z1', reason: 'Tax audit' })
    const { status, json } = await check()
    expect([status, json.error.message]).toEqual([409, 'The repository is on legal hold, which has to be lifted first.'])
  })

  test('runs once at a time in a workspace', async () => {
    const { check } = await start()
    const answers = await Promise.all([check(), check(), check()])
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(['200', '409', '409'])
    expect((await check()).status).toBe(200)
  })
})
