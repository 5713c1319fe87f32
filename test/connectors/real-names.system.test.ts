import { finalNames, realNames, type FinalNames } from '../../docs/real-names.ts'
import { fileNameOf } from '../../src/connectors/drive/upload-session.ts'
import { parseTarget } from '../../src/connectors/target.ts'
import { pathSegment } from '../../src/domain/fan-out.ts'
import { readableName } from '../../src/domain/file-name.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, payloadOf } from './payloads.ts'
import { loadRigs } from './rig.ts'

// docs/path-templates.md has these names. Here, each kind of destination gives them to its target.

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
afterAll(() => outbound.close())

/** The columns of the table that a kind has, by its `file_names`. */
const columns: Record<string, { any: keyof FinalNames; windows?: keyof FinalNames }> = {
  sftp: { any: 'any', windows: 'windows' },
  directory: { any: 'any', windows: 'windows' },
  objstore: { any: 'any', windows: 'windows' },
  blob: { any: 'blob', windows: 'windows' },
  drive: { any: 'any' },
  teamsite: { any: 'teamsite' },
  email: { any: 'fileName' },
  'content-server': { any: 'kept' },
  webhook: { any: 'any' },
}
const rigs = await loadRigs()

test('every kind has a column of the table', () => {
  expect(rigs.map(({ kind }) => kind).toSorted()).toEqual(Object.keys(columns).toSorted())
})

/** Kinds whose location is the name of the file. */
const files = rigs.filter(({ kind }) => ['sftp', 'directory', 'objstore', 'blob', 'teamsite'].includes(kind))
const cases = files.flatMap((rig) => Object.entries(columns[rig.kind]!).map(([fileNames, column]) => ({ ...rig, fileNames, column })))

test.each(cases)('$kind gives real names their final form, file_names $fileNames', async ({ kind, start, fileNames, column }) => {
  const running = await start()
  const { config, credentials } = running.target() as { config: object; credentials: object }
  const parsed = parseTarget(running.connector, {
    config: { ...config, ...(columns[kind]!.windows && { file_names: fileNames }) },
    credentials,
  })
  if ('issues' in parsed) throw new Error(JSON.stringify(parsed.issues))
  const stored = new Map<string, string>()
  for (const [index, [sent, codePage]] of realNames.entries()) {
    const names = finalNames(sent, codePage)
    const path = `R1/D${index}/${pathSegment(readableName(names.kept))}`
    const payload = payloadOf(Buffer.from(`content of ${sent}`), { path, docId: `D${index}`, compId: names.kept })
    const result = await running.connector.deliver(payload, parsed.target, contextOf(outbound))
    const folder = `/D${index}/`
    const name = result.path.slice(result.path.lastIndexOf(folder) + folder.length)
    // In SharePoint, the location is an address.
    stored.set(sent, kind === 'teamsite' ? decodeURIComponent(name) : name)
    expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256 })
  }
  expect(Object.fromEntries(stored)).toEqual(
    Object.fromEntries(realNames.map(([sent, codePage]) => [sent, finalNames(sent, codePage)[column]])),
  )
  await running.stop()
})

test('a file in Drive has the name of its path', () => {
  for (const [sent, codePage] of realNames) {
    const { kept, any } = finalNames(sent, codePage)
    expect([sent, fileNameOf(pathSegment(readableName(kept)))]).toEqual([sent, any])
  }
})
