import { Registry } from 'prom-client'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'
import { until } from '../support/until.ts'

const scene = share(await startScene())

const linesOf = (event: string, workspace: string) =>
  scene.api.log
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['event'] === event && line['workspace'] === workspace)

const metrics = async () => {
  const registry = new Registry()
  for (const metric of scene.api.receiverMetrics) registry.registerMetric(metric)
  return registry.metrics()
}

const valueOf = (text: string, series: string) =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length),
  )

test('every document that is received is one line with what is needed to find it', async () => {
  const { source, workspaceSlug } = await scene.workspace([{ name: 'archive' }, { name: 'audit' }])
  const before = await metrics()
  const { headers } = await source.createParts('D1', [part('data', 'x'.repeat(100)), part('note', 'y')])
  await source.call('update&pVersion=0045&contRep=Z1&docId=D1&compId=note', { method: 'PUT', body: 'zz' })

  const workspace = `acme/${workspaceSlug}`
  const lines = linesOf('document.received', workspace)
  const documentIds = await scene
    .db('documents')
    .where({ doc_id: 'D1', workspace_id: (await workspaceOf(workspaceSlug)).id })
    .orderBy('id')
    .pluck('id')
  expect(lines.map(({ document_id: id }) => id)).toEqual(documentIds)
  expect(lines[0]).toMatchObject({
    request_id: headers['x-relay-request-id'],
    command: 'create',
    workspace,
    repo_id: 'Z1',
    doc_id: 'D1',
    comp_id: 'data',
    workflow_id: `document/${workspace}/Z1/D1/data/${documentIds[0]}`,
    outcome: 'accepted',
    size_bytes: 100,
    destinations: 2,
    duration_ms: expect.any(Number),
  })
  expect(lines[2]).toMatchObject({ command: 'update', comp_id: 'note', size_bytes: 2 })

  const after = await metrics()
  const increase = (series: string) => valueOf(after, series) - (valueOf(before, series) || 0)
  expect(increase('relay_documents_received_total{outcome="accepted"}')).toBe(3)
  expect(increase('relay_received_bytes_total')).toBe(103)
  expect(increase('relay_receiver_request_duration_seconds_count{command="create",status="2xx"}')).toBe(1)
})

const workspaceOf = (workspaceSlug: string) => scene.db('workspaces').where({ workspace_slug: workspaceSlug }).first('id')

test('a document that leads nowhere is logged and counted as discarded', async () => {
  const { source, workspaceSlug } = await scene.workspace([])
  await source.create('D1', 'x')
  const [line] = linesOf('document.received', `acme/${workspaceSlug}`)
  expect(line).toMatchObject({ outcome: 'discarded', destinations: 0, size_bytes: 1 })
  expect(line).not.toHaveProperty('workflow_id')
  expect(valueOf(await metrics(), 'relay_documents_received_total{outcome="discarded"}')).toBe(1)
})

test('a refused request is logged and counted with its code, and not as received', async () => {
  const { source, workspaceSlug } = await scene.workspace()
  await source.create('D1', 'x')
  const hostile = 'd'.repeat(10_000)
  for (const docId of ['D1', hostile]) {
    await source.call(`create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data&secKey=canary`, { method: 'PUT', body: 'x' })
  }

  const [line, long] = await until(
    'both refusals are logged',
    () => linesOf('receiver.refused', `acme/${workspaceSlug}`),
    (lines) => lines.length === 2,
  )
  expect(line).toMatchObject({ command: 'create', repo_id: 'Z1', doc_id: 'D1', code: 'document_exists', source_ip: expect.any(String) })
  expect(String(long!['doc_id']).length).toBeLessThan(1_000)
  expect(linesOf('document.received', `acme/${workspaceSlug}`)).toHaveLength(1)
  expect(scene.api.log.join('')).not.toContain('canary')
  expect(valueOf(await metrics(), 'relay_receiver_refusals_total{code="document_exists"}')).toBeGreaterThan(0)
})
