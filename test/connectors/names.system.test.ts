import { finalNames, sampleNames } from '../../docs/names.ts'
import { parseTarget } from '../../src/connectors/target.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { startDrive } from './drive/rig.ts'
import { names } from './names.ts'
import { contextOf, payloadOf } from './payloads.ts'
import { loadRigs } from './rig.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
afterAll(() => outbound.close())

const rigs = await loadRigs()
// The other kinds have names of their own: those of SharePoint and Drive, of a content server, and none.
const ofFiles = rigs.filter(({ kind }) => ['sftp', 'directory', 'objstore', 'blob'].includes(kind))

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

test.each(['any', 'windows'] as const)('drive gives each name of the table and of the page its final name, for %s', async (fileNames) => {
  const drive = await startDrive()
  const target = drive.target({ config: { file_names: fileNames } })
  const expected = names.map(([path, any, windows]) => [`T/${path}`, fileNames === 'windows' ? windows : any] as const)
  for (const [path, name] of expected) {
    await drive.connector.deliver(payloadOf(Buffer.from(path), { path }), target, contextOf(outbound))
    const stored = [...drive.double.files.values()].at(-1)!.name
    const source = typeof name === 'string' ? `^T - ${literal(name)}$` : name.source.replace('^', '^T - ').replaceAll('\\/', ' - ')
    // The digest of a name that is too long is one of the whole name.
    if (Buffer.byteLength(stored) < 255) expect([path, stored]).toEqual([path, expect.stringMatching(new RegExp(source, 'u'))])
  }
  expect(drive.double.files.size).toBe(expected.length)
  await drive.stop()
})

const literal = (name: string) => name.replaceAll('/', ' - ').replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')

test('each name of the page is what the kinds that have a double or a server store', async () => {
  const drive = await startDrive()
  const sharePoint = await rigs.find(({ kind }) => kind === 'teamsite')!.start()
  for (const name of sampleNames) {
    const path = `R1/${name}`
    const { teamsite, drive: inDrive } = finalNames(name)
    await drive.connector.deliver(payloadOf(Buffer.from(path), { path }), drive.target(), contextOf(outbound))
    expect([...drive.double.files.values()].at(-1)!.name).toBe(inDrive)
    const result = await sharePoint.connector.deliver(payloadOf(Buffer.from(path), { path }), sharePoint.target(), contextOf(outbound))
    expect(decodeURIComponent(result.path).endsWith(`/R1/${teamsite}`)).toBe(true)
  }
  await sharePoint.stop()
  await drive.stop()
})
