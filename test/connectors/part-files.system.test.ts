import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createConnectors } from '../../src/connectors/index.ts'
import { sftp } from '../../src/connectors/sftp/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { disposable } from '../support/disposable.ts'
import { share } from '../support/share.ts'
import { startSshd } from '../support/sshd.ts'
import { createArchive } from './directory/rig.ts'
import { contextOf, failing, failure, largePayload, MiB, pausedAt } from './payloads.ts'

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (guard) => guard.close()))
const server = share(await startSshd())
const archive = await createArchive()
afterAll(archive.remove)

const kinds = [
  {
    kind: 'sftp',
    folder: server.directory,
    connector: sftp,
    config: { host: '127.0.0.1', port: server.port, host_key_sha256: server.hostKeyFingerprint },
    credentials: { username: server.username, private_key: server.privateKey },
  },
  { kind: 'directory', folder: archive.archive, connector: archive.connector, config: { path: archive.archive }, credentials: {} },
]

const filesBelow = async (folder: string) => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
}

describe.each(kinds)('$kind', ({ folder, connector, ...destination }) => {
  test.each([
    ['.relay-{id}.part', /^R1\/[^/]+\/\.relay-[0-9a-f]{16}\.part$/],
    ['{id}.tmp', /^R1\/[^/]+\/[0-9a-f]{16}\.tmp$/],
    ['tmp/{id}', /^tmp\/[0-9a-f]{16}$/],
    ['.in/parts/of-{id}.part', /^\.in\/parts\/of-[0-9a-f]{16}\.part$/],
  ])('writes a file as %s and renames it, and a failure leaves nothing', async (partFile, expected) => {
    const target = {
      config: connector.config.parse({ ...destination.config, part_file: partFile }),
      credentials: connector.credentials.parse(destination.credentials),
    } as never
    const before = await filesBelow(folder)
    const isNew = (files: string[]) => files.filter((file) => !before.includes(file))
    let during: string[] = []
    const document = largePayload(2 * MiB, { properties: { Vendor: '0000017300' } })
    const payload = pausedAt(document, MiB, async () => {
      during = isNew(await filesBelow(folder))
    })

    await connector.deliver(payload, target, contextOf(outbound))
    expect(during.length).toBeGreaterThan(0)
    for (const file of during) expect(file).toMatch(expected)
    expect(isNew(await filesBelow(folder)).toSorted()).toEqual([document.path, `${document.path}.meta.json`])

    await failure(connector.deliver(failing(largePayload(2 * MiB), MiB), target, contextOf(outbound)))
    expect(isNew(await filesBelow(folder))).toHaveLength(2)
    expect(await connector.probe(target, contextOf(outbound))).toContain('removed it')
    expect(isNew(await filesBelow(folder))).toHaveLength(2)
  })

  test.each(['x.part', '{id}/x', '{id}-{id}', '../{id}', '/{id}', 'a//{id}', './{id}', 'a\\{id}', 'a\n{id}', '', `${'x'.repeat(100)}{id}`])(
    'refuses %j',
    (partFile) => {
      expect(connector.config.safeParse({ ...destination.config, part_file: partFile }).success).toBe(false)
    },
  )
})

test('every kind that renames a file has the setting', () => {
  const having = createConnectors().all.filter(({ config }) => 'part_file' in (config as unknown as { shape: object }).shape)
  expect(having.map(({ kind }) => kind)).toEqual(['sftp', 'directory'])
})
