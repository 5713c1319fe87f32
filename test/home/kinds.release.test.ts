import { createHash } from 'node:crypto'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, payloadOf } from '../connectors/payloads.ts'
import { loadRigs } from '../connectors/rig.ts'
import { opaqueBytes } from '../support/source-system.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { startHomeScene } from './scene.ts'

const MiB = 1024 * 1024
const rigs = await loadRigs()
const readable = rigs.filter(({ kind }) => createConnectors().find(kind)?.read)
const { find } = createConnectors()
const refused = {
  status: 503,
  headers: expect.objectContaining({
    'retry-after': '5',
    'x-errordescription': expect.stringMatching(/^home_failed: the (?:document is not|destination that) [a-z, ]+$/),
  }),
}

test('every kind of destination but email and webhook can be a home', () => {
  expect(rigs.map(({ kind }) => kind).filter((kind) => !readable.some((rig) => rig.kind === kind))).toEqual(['email', 'webhook'])
})

test.each(readable.map((rig) => [rig.kind, rig] as const))(
  'contents at a home of the kind %s are read as they were delivered; changed, missing and frozen, none is wrong',
  async (kind, rig) => {
    const running = await rig.start()
    const fault = { kind: 'stall' as const, afterBytes: Infinity }
    const proxy = running.network && (await startTcpProxy(running.network.port, fault))
    const connector = (proxy && running.network?.connectorAt?.(proxy.port)) ?? running.connector
    const target = running.target(proxy?.port)
    const roots = kind === 'directory' ? [(target.config as { path: string }).path] : []
    const scene = await startHomeScene(roots, {
      findConnector: (name) => (name === kind ? connector : find(name)),
      limits: { home: { readLimits: { idleTimeoutMs: 15_000 } } },
    })
    const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
    try {
      const home = await scene.workspace({
        connector: kind,
        config: target.config as Record<string, unknown>,
        credentials: target.credentials as Record<string, unknown>,
      })
      await home.setHome()
      const documents = new Map([
        ['S1', opaqueBytes(1_000)],
        ['S2', opaqueBytes(70_000)],
        ['LARGE', opaqueBytes(5 * MiB + 3)],
      ])
      for (const [docId, bytes] of documents) await home.source.create(docId, bytes)
      expect(await home.deliver()).toEqual([{ status: 'delivered' }, { status: 'delivered' }, { status: 'delivered' }])
      await home.move()
      expect([await home.movedCount(), await home.bytesHere()]).toEqual([3, 0])
      for (const [docId, bytes] of documents) {
        expect((await home.source.get(docId)).body.equals(bytes)).toBe(true)
        expect((await home.source.get(docId, '&fromOffset=100&toOffset=899')).body.equals(bytes.subarray(100, 900))).toBe(true)
      }
      const end = await home.source.get('LARGE', `&fromOffset=${4 * MiB - 5}&toOffset=${4 * MiB + 5}`)
      expect(end.body.equals(documents.get('LARGE')!.subarray(4 * MiB - 5, 4 * MiB + 6))).toBe(true)

      // Another program appends a byte, and then changes one.
      const row = await scene
        .db('deliveries')
        .join('documents', 'documents.id', 'document_id')
        .where({ doc_id: 'S2', 'documents.workspace_id': home.workspaceId })
        .first('path', 'location', 'document_id', 'destination_id')
      const names = {
        docId: 'S2',
        compId: 'data',
        path: row.path,
        location: row.location,
        documentId: row.document_id,
        deliveryId: `${row.document_id}_${row.destination_id}`,
      }
      const changed = Buffer.from(documents.get('S2')!)
      changed[69_000]! ^= 1
      const errors = () => scene.db('home_contents').whereNotNull('altered_since').orderBy('document_id').pluck('last_error')
      const replace = (bytes: Buffer) => connector.deliver(payloadOf(bytes, names), target, contextOf(outbound))
      await replace(Buffer.concat([documents.get('S2')!, Buffer.from('x')]))
      expect(await home.source.get('S2')).toMatchObject(refused)
      expect(await errors()).toEqual([expect.stringMatching(/it has more than 70000 bytes$/)])
      await replace(changed)
      expect(await home.source.get('S2')).toMatchObject(refused)
      expect(await home.source.get('S2', '&fromOffset=0&toOffset=9')).toMatchObject(refused)
      expect(
        createHash('sha256')
          .update((await home.source.get('S1')).body)
          .digest(),
      ).toEqual(createHash('sha256').update(documents.get('S1')!).digest())

      await running.reset()
      expect(await home.source.get('S1')).toMatchObject(refused)
      expect(await errors()).toEqual([expect.stringMatching(/it is not there$/), expect.stringMatching(/other ones/)])
      if (!proxy) return
      fault.afterBytes = 0
      expect(await home.source.get('LARGE')).toMatchObject(refused)
      expect(await errors()).toHaveLength(2)
    } finally {
      await outbound.close()
      await scene.stop()
      await proxy?.stop()
      await running.stop()
    }
  },
  240_000,
)
