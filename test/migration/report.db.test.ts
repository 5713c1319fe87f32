import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { rotateKeys } from '../../src/access/sealing-keys.ts'
import { describeReport, writeOpenRows, writeReport } from '../../src/cli/document-migrations.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createDocumentMigrations } from '../../src/migration/migrations.ts'
import { fingerprintOf, openSigningKey } from '../../src/migration/signing-key.ts'
import { verifyReport } from '../../src/migration/verify-report.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { disposable } from '../support/disposable.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const keyOf = (id: string, byte: number) => `${id}:${Buffer.alloc(32, byte).toString('base64')}`
const keyRing = createKeyRing([keyOf('one', 1)])

const scene = share(await startScene())
const folder = await mkdtemp(join(tmpdir(), 'relay-report-'))
share(disposable({}, () => rm(folder, { recursive: true })))

const { workspaceId, repositoryId, name } = await scene.workspace()
const setUpstream = (upstream: object | null) =>
  scene
    .db('repositories')
    .where({ id: repositoryId })
    .update({ upstream: upstream && JSON.stringify(upstream) })
await setUpstream({ url: 'https://archive.example/archive', cont_rep: 'Y1' })
const list = "SAP_OBJECT;OBJECT_ID;ARCHIV_ID;ARC_DOC_ID;AR_OBJECT\nBKPF;2;Z1;D1;FIIINVOICE\nBKPF;1;Z1;D2;=cmd\nBKPF;3;Z1;D3;'+cmd\n"
const barcodes = 'BARCODE;CONTREP;EX_DOC_ID\n4711;Z1;D4\n'
const files = [
  { name: 'TOA01.csv', bytes: Readable.from([Buffer.from(list)]) as AsyncIterable<Buffer> },
  { name: 'BDS_BAR_EX.csv', bytes: Readable.from([Buffer.from(barcodes)]) as AsyncIterable<Buffer> },
]
const migration = await createDocumentMigrations(scene.db).start(
  { workspaceId, repositoryId, mode: 'copy', documentsPerMinute: null, files },
  systemActor,
)
// The report names the server that the documents were compared with.
await setUpstream(null)
const judge = (position: number, verdict: string, reason: string | null = null) =>
  scene
    .db('document_migration_rows')
    .where({ document_migration_id: migration.id, position })
    .update({ verdict, reason, components: 1, size_bytes: 5, judged_at: new Date('2026-11-27T00:00:00Z') })
await judge(1, 'copied')
await judge(2, 'missing')
await judge(3, 'damaged', 'it breaks off')

const path = join(folder, 'report.jsonl')
const lines: string[] = []
await writeReport(scene.db, keyRing, migration.id, (line) => void lines.push(line))
await writeFile(path, lines.join(''))
const { publicKey } = await openSigningKey(scene.db, keyRing)

/** Writes the report with changed lines. */
const changed = async (change: (all: string[]) => string[]) => {
  const other = join(folder, 'changed.jsonl')
  await writeFile(other, change([...lines]).join(''))
  return verifyReport(other, publicKey)
}

describe('the report of a migration', () => {
  test('has a line for every row, and is verified with the key of the installation', async () => {
    const verified = await verifyReport(path, publicKey)
    expect(verified).toMatchObject({
      isKeyGiven: true,
      fingerprint: fingerprintOf(publicKey),
      header: {
        workspace: name,
        repo_id: 'Z1',
        upstream: { url: 'https://archive.example/archive', cont_rep: 'Y1' },
        status: 'running',
        lists: [
          { name: 'TOA01.csv', rows: 3 },
          { name: 'BDS_BAR_EX.csv', rows: 1 },
        ],
      },
      totals: { rows: 4, copied: 1, missing: 1, damaged: 1, equal: 0, different: 0, found: 0, open: 1 },
    })
    expect(lines).toHaveLength(7)
    expect(JSON.parse(lines[1]!)).toMatchObject({
      line: 2,
      doc_id: 'D1',
      verdict: 'copied',
      size_bytes: 5,
      judged_at: '2026-11-27T00:00:00.000Z',
    })
  })

  test('lists by business object what somebody has to decide about', async () => {
    const verified = await verifyReport(path)
    expect(describeReport(verified).slice(-3)).toEqual([
      'BKPF 1 (=cmd): document D2 is missing',
      "BKPF 3 ('+cmd): document D3 is damaged, it breaks off",
      'bar code 4711: document D4 without a verdict',
    ])
    expect(describeReport(verified).join('\n')).toContain('Compare this with: relay migrate-documents public-key')
    await writeOpenRows(join(folder, 'open.csv'), verified)
    expect((await readFile(join(folder, 'open.csv'), 'utf8')).split('\r\n')).toEqual([
      'erp_object_type,erp_object_id,barcode,ar_object,archived_on,doc_id,verdict,reason,list,line',
      "BKPF,1,,'=cmd,,D2,missing,,TOA01.csv,3",
      "BKPF,3,,''+cmd,,D3,damaged,it breaks off,TOA01.csv,4",
      ',,4711,,,D4,,,BDS_BAR_EX.csv,2',
      '',
    ])
    await writeOpenRows(join(folder, 'open.csv'), verified, 'semicolon')
    const german = await readFile(join(folder, 'open.csv'))
    expect(german.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]))
    expect(german.toString('utf8')).toContain("\r\nBKPF;1;;'=cmd;;D2;missing;;TOA01.csv;3\r\n")
  })

  test.each<[string, (all: string[]) => string[], string]>([
    ['another verdict', (all) => all.map((line) => line.replace('"missing"', '"copied"')), 'it was changed'],
    ['a row less', (all) => all.toSpliced(2, 1), 'it was changed'],
    ['a row twice', (all) => all.toSpliced(2, 0, all[2]!), 'it was changed'],
    ['no end', (all) => all.slice(0, -1), 'its end is missing'],
    ['a line after the signature', (all) => [...all, all[1]!], 'it goes on after its signature'],
    ['no header', (all) => all.slice(1), 'it does not begin with a header'],
    ['another text', () => ['hello\n'], 'a line is not JSON'],
    ['a line without an end', () => ['x'.repeat(5 * 1024 * 1024)], 'a line has more than 4 MiB'],
    ['a line without an object', (all) => [...all.slice(0, 1), 'null\n', ...all.slice(1)], 'a line is not an object'],
  ])('with %s is not valid', async (_, change, problem) => {
    await expect(changed(change)).rejects.toThrow(problem)
  })

  test('that has fewer rows than its lists is not valid', async () => {
    await scene.db('document_migration_rows').where({ document_migration_id: migration.id, position: 4 }).delete()
    const short: string[] = []
    await writeReport(scene.db, keyRing, migration.id, (line) => void short.push(line))
    await expect(changed(() => short)).rejects.toThrow('its lists have 4 rows, and it has 3')
  })

  test('of another installation is not valid with this key', async () => {
    const other = share(await startScene())
    const { publicKey: strange } = await openSigningKey(other.db, keyRing)
    await expect(verifyReport(path, strange)).rejects.toThrow('another key has signed it')
    await expect(verifyReport(path, 'no key')).rejects.toThrow('not an Ed25519 key in PEM')
  })
})

test('the signing key stays the same when the keys that seal it are rotated', async () => {
  const both = createKeyRing([keyOf('two', 2), keyOf('one', 1)])
  expect(await rotateKeys(scene.db, both)).toMatchObject({ unreadable: [] })
  expect((await openSigningKey(scene.db, createKeyRing([keyOf('two', 2)]))).publicKey).toBe(publicKey)
  // The other tests have the first key only.
  await rotateKeys(scene.db, createKeyRing([keyOf('one', 1), keyOf('two', 2)]))
})
