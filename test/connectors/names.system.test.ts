import { parseTarget } from '../../src/connectors/target.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { names } from './names.ts'
import { contextOf, payloadOf } from './payloads.ts'
import { loadRigs } from './rig.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
afterAll(() => outbound.close())

// The other kinds have names of their own: those of SharePoint and Drive, of a content server, and none.
const ofFiles = (await loadRigs()).filter(({ kind }) => ['sftp', 'directory', 'objstore', 'blob'].includes(kind))

test('the kinds whose files have the names of the path are known', () => {
  expect(ofFiles).toHaveLength(4)
})

describe.each(ofFiles)('$kind', ({ kind, start }) => {
  test.each(['any', 'windows'] as const)('gives each name of the table its final name, for %s', async (fileNames) => {
    const running = await start()
    const { config, credentials } = running.target() as { config: object; credentials: object }
    const parsed = parseTarget(running.connector, { config: { ...config, file_names: fileNames }, credentials })
    if ('issues' in parsed) throw new Error(JSON.stringify(parsed.issues))
    const stored = new Set<string>()
    for (const [path, any, windows] of names) {
      const payload = payloadOf(Buffer.from(`content of ${path}`), { path: `T/${path}`, docId: path })
      const result = await running.connector.deliver(payload, parsed.target, contextOf(outbound))
      const expected = fileNames === 'windows' ? windows : any
      const name = result.path.slice(result.path.lastIndexOf('/T/') + 3)
      expect([kind, name]).toEqual([kind, typeof expected === 'string' ? expected : expect.stringMatching(expected)])
      stored.add(name)
      expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256 })
    }
    expect(stored.size).toBe(names.length)
    await running.stop()
  })
})
