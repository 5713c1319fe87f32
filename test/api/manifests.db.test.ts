import { createHash } from 'node:crypto'
import { findJob } from '../../src/maintenance/jobs.ts'
import { testConfig } from '../support/factories.ts'
import { createMaintenanceDeps } from '../support/maintenance.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const scene = share(await startScene())
const noWorkflow = async () => ({ state: 'working' as const })

test('the manifests of a workspace are listed, and their parts are downloaded by the day', async () => {
  const { ask, name, keys } = await scene.workspace()
  const deps = createMaintenanceDeps(
    scene.db,
    {
      send: async () => {},
      findDeliveryWorkflow: noWorkflow,
      findBulkRetryWorkflow: noWorkflow,
      terminateDelivery: async () => {},
      terminateBulkRetry: async () => {},
    },
    testConfig(),
  )
  expect((await ask('GET', '/manifests')).json).toEqual({ data: [], meta: { current_page: 1, per_page: 25, total: 0 } })
  await findJob('make-manifests')!.run(deps, { now: new Date(Date.now() + 2 * 86_400_000), signal: new AbortController().signal })

  const { json } = await ask('GET', '/manifests?per_page=1', keys.viewer)
  expect(json.meta.total).toBeGreaterThanOrEqual(2)
  const [{ id: day, attributes }] = json.data
  expect(json.data).toEqual([
    {
      id: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      type: 'manifest',
      attributes: {
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        size_bytes: expect.any(Number),
        documents: 0,
        receipts: 0,
        is_stamped: false,
        stamp_error: null,
        made_at: expect.any(String),
        copies: [],
      },
    },
  ])
  const download = async (part: string) => {
    const response = await fetch(`${scene.api.baseUrl}/api/${name}/manifests/${day}/${part}`, {
      headers: { authorization: `Bearer ${keys.viewer}` },
    })
    return { status: response.status, name: response.headers.get('content-disposition'), bytes: Buffer.from(await response.arrayBuffer()) }
  }
  const file = await download('file')
  expect(file).toMatchObject({ status: 200, name: `attachment; filename="${day}.jsonl"` })
  expect(createHash('sha256').update(file.bytes).digest('hex')).toBe(attributes.sha256)
  expect(await download('signature')).toMatchObject({ status: 200, name: `attachment; filename="${day}.p7s"` })
  expect((await download('certificate')).bytes.toString()).toMatch(/^-----BEGIN CERTIFICATE-----/)
  expect(await download('timestamp')).toMatchObject({ status: 404 })
  for (const other of ['2001-01-01', 'yesterday', '2026-13-40']) {
    expect(await ask('GET', `/manifests/${other}/file`)).toMatchObject({ status: 404, json: { error: { code: 'not_found' } } })
  }
})
