import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rotateKeys } from '../../src/access/sealing-keys.ts'
import { dayAfter, dayOf } from '../../src/base/day.ts'
import { newId } from '../../src/base/ids.ts'
import { exportProof, proofCertificate } from '../../src/cli/proof.ts'
import { credentialsOwner } from '../../src/connectors/target.ts'
import { identityOf } from '../../src/proof/make-manifests.ts'
import { createManifests } from '../../src/proof/manifests.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { inShell, startAuthority } from './openssl.ts'
import { db, dayMs, makeManifests, arrange, linesOf, verifySignature, verifyStamp, verifyChainOf, findMissing } from './scene.ts'

test('a real day is verified with openssl alone, and refused after one byte was changed', async () => {
  await using folder = await createFolder()
  await using authority = Object.assign(await startAuthority(join(folder.path, 'tsa')), {
    [Symbol.asyncDispose]: async () => authority.stop(),
  })
  const { receive, deliver, exportAll } = await arrange()
  const [delivered, open] = [await receive(), await receive()]
  await deliver(delivered, { status: 200, etag: '"e1"', version_id: 'v1' })
  expect(await makeManifests(2, { PROOF_TIMESTAMP_URL: authority.url })).toMatch(/^[4-5] manifests made, [4-5] stamped,/)
  const days = await exportAll(folder.path)
  expect(days).toContain(open.day)

  for (const day of days) {
    expect(await inShell(folder.path, verifySignature(day))).toMatchObject({ ok: true, output: expect.stringContaining('successful') })
    expect(await inShell(folder.path, verifyStamp(day, authority.certificate))).toMatchObject({
      ok: true,
      output: expect.stringContaining('OK'),
    })
  }
  const { day } = delivered
  const document = (await linesOf(folder.path, day)).find(({ doc_id: docId }) => docId === delivered.docId)
  expect(document).toMatchObject({
    type: 'document',
    repo_id: 'Z1',
    document_id: delivered.documentId,
    sha256: createHash('sha256').update(`content of ${delivered.docId}`).digest('hex'),
    status: 'delivered',
    deliveries: [
      {
        kind: 'objstore',
        status: 'delivered',
        receipt: { sha256: document!['sha256'], target: { status: 200, etag: '"e1"', version_id: 'v1' } },
      },
    ],
  })
  const path = join(folder.path, `${day}.jsonl`)
  const bytes = await readFile(path)
  bytes[bytes.length >> 1]! ^= 1
  await writeFile(path, bytes)
  expect(await inShell(folder.path, verifySignature(day))).toMatchObject({ ok: false, output: expect.stringContaining('failure') })
  expect(await inShell(folder.path, verifyStamp(day, authority.certificate))).toMatchObject({
    ok: false,
    output: expect.stringContaining('FAILED'),
  })
})

test('a manifest that somebody else has signed is refused, also if an authority that the machine trusts has issued the certificate', async () => {
  await using folder = await createFolder()
  const { receive, exportAll } = await arrange()
  const { day } = await receive()
  await makeManifests(2)
  await exportAll(folder.path)
  await writeFile(join(folder.path, 'kept.pem'), await proofCertificate(db, testConfig()))
  const verify = () => inShell(folder.path, `SSL_CERT_DIR=$PWD/trusted ${verifySignature(day, 'kept.pem')}`)
  expect(await verify()).toMatchObject({ ok: true })
  const forged = await inShell(
    folder.path,
    `set -e; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 30 -subj /CN=CA
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -out other.csr -subj /CN=other
    openssl x509 -req -in other.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out other.pem
    mkdir trusted; cp ca.pem trusted/$(openssl x509 -hash -noout -in ca.pem).0
    sed -i s/delivered/discarded/ ${day}.jsonl; cp other.pem ${day}.pem
    openssl cms -sign -binary -in ${day}.jsonl -signer other.pem -inkey other.key -outform DER -out ${day}.p7s`,
  )
  expect(forged).toMatchObject({ ok: true })
  expect(await verify()).toMatchObject({ ok: false, output: expect.stringMatching(/signer certificate not found/i) })
})

test('an export that fails leaves no file, and one that is repeated adds what is not there yet', async () => {
  await using folder = await createFolder()
  const { receive, stored, workspace, workspaceId } = await arrange()
  const { day } = await receive()
  await makeManifests(2)
  const exported = (to = folder.path) => exportProof(db, testConfig(), { workspace, day, folder: to })
  const files = async () => (await readdir(folder.path)).toSorted()
  await writeFile(join(folder.path, `${day}.p7s`), 'of another')
  await expect(exported()).rejects.toThrow(`${day}.p7s exists, with other bytes`)
  expect(await files()).toEqual([`${day}.p7s`])
  await rm(join(folder.path, `${day}.p7s`))

  const { content_id: id } = (await stored()).find((manifest) => manifest.day === day)!
  const { data } = await db('content_chunks').where({ content_id: id }).first<{ data: Buffer }>('data')
  await db('content_chunks')
    .where({ content_id: id })
    .update({ data: Buffer.from(data).fill('x', 0, 1) })
  await expect(exported()).rejects.toThrow('is not what was signed')
  expect(await files()).toEqual([])
  await db('content_chunks').where({ content_id: id }).update({ data })

  await exported()
  await db('manifests')
    .where({ workspace_id: workspaceId, day })
    .update({ stamp: Buffer.from('later') })
  expect((await exported()).files).toHaveLength(4)
  expect(await files()).toEqual([`${day}.jsonl`, `${day}.p7s`, `${day}.pem`, `${day}.tsr`])
})

test('a document that is missing here is found by a join with a list of the source system', async () => {
  await using folder = await createFolder()
  const { receive, exportAll } = await arrange()
  const docIds: string[] = []
  for (let count = 0; count < 5; count += 1) docIds.push((await receive()).docId)
  const [first] = docIds as [string]
  const replaced = await receive()
  await makeManifests(2)
  // It is deleted on a later day, and what the source system has created again under its docId is lost.
  const at = new Date(Date.parse(replaced.day) + 2.5 * dayMs)
  await db('documents').where({ id: replaced.documentId }).update({ superseded_at: at, superseded_by: 'delete' })
  await makeManifests(4)
  await exportAll(folder.path)
  await rm(join(folder.path, `${replaced.day}.jsonl`))
  expect((await linesOf(folder.path, dayOf(at))).map(({ type }) => type)).toContain('superseded')
  const listed = async (lines: string[]) => {
    await writeFile(join(folder.path, 'toa01.txt'), lines.join(''))
    return inShell(folder.path, findMissing)
  }
  expect(await listed([`Z1 ${replaced.docId}\n`])).toEqual({ ok: true, output: `Z1 ${replaced.docId}\n` })

  await rm(folder.path, { recursive: true })
  await exportAll(folder.path)
  const lines = [...docIds, 'LOST'].map((docId) => `Z1 ${docId}\n`)
  const lost = { ok: true, output: 'Z1 LOST\n' }
  expect(await listed(lines)).toEqual(lost)
  // A document is linked to two business objects; a table is exported in its own order, with blanks, and from Windows.
  expect(await listed([...lines, ...lines].toReversed())).toEqual(lost)
  expect(await listed(lines.map((line) => ` ${line.trim().replace(' ', '   ')}   \r\n`))).toEqual(lost)
  expect(await listed(lines.map((line) => line.replace(' ', '\t')))).toEqual(lost)
  // Another repository has it.
  expect(await listed([`Z2 ${first}\n`])).toEqual({ ok: true, output: `Z2 ${first}\n` })
})

test('the chain names the digest of each day before, without a gap for days on which nothing ran, and several runs at a time make each day once', async () => {
  await using folder = await createFolder()
  const { receive, stored, exportAll, since, workspaceId } = await arrange()
  await receive()
  expect(await makeManifests(0)).toMatch(/^[1-3] manifests made/)
  const before = (await stored()).length
  await Promise.all([makeManifests(3), makeManifests(3), makeManifests(3)])
  const rows = await stored()
  expect(rows.length).toBeGreaterThanOrEqual(before + 2)
  expect(await makeManifests(3)).toBe('0 manifests made, 0 stamped, 0 copied to destinations')
  const days = await exportAll(folder.path)
  expect(days[0]).toBe(since)
  let previous: object | null = null
  for (const [index, day] of days.entries()) {
    if (index > 0) expect(day).toBe(dayAfter(days[index - 1]!))
    const [header] = await linesOf(folder.path, day)
    expect(header).toMatchObject({ type: 'manifest', day, previous, database_changed: false })
    const command = verifyChainOf.replaceAll(/2026-11-2[78]/g, (named) => (named === '2026-11-27' ? day : (days[index + 1] ?? day)))
    const { output } = await inShell(folder.path, command)
    const [sha256] = output.split(' ')
    expect(output).toContain(index + 1 < days.length ? `"previous":{"day":"${day}","sha256":"${sha256}"}` : day)
    previous = { day, sha256 }
  }
  // What a slower run has written belongs to nothing, and is removed.
  const own = await db('contents').where({ workspace_id: workspaceId }).whereNotNull('owned_at')
  expect(own).toHaveLength(days.length + 1)
})

test('databases are told apart, and one stays the same', async () => {
  await using other = await createTestDatabase()
  const identity = await identityOf(db)
  expect(identity).toMatch(/^\d+\/[0-9A-F]{8}\/\d+\/\d+$/)
  expect(await identityOf(db)).toBe(identity)
  expect(await identityOf(other.db)).not.toBe(identity)
  // As `pg_restore --clean` does.
  await other.db.raw('create table kept (like manifests including all)')
  const before = await identityOf(other.db)
  await other.db.raw('drop table manifests cascade')
  await other.db.raw('alter table kept rename to manifests')
  expect(await identityOf(other.db)).not.toBe(before)
})

test('an authority that refuses or answers anything else is asked again, says why, and does not stop manifests', async () => {
  await using folder = await createFolder()
  await using authority = Object.assign(await startAuthority(join(folder.path, 'tsa')), {
    [Symbol.asyncDispose]: async () => authority.stop(),
  })
  const { workspaceId, stored } = await arrange()
  const variables = { PROOF_TIMESTAMP_URL: authority.url }
  let earlier: Buffer = Buffer.alloc(0)
  authority.answerWith((query) => {
    earlier = query
    return { status: 200, body: Buffer.alloc(0) }
  })
  await makeManifests(0, variables)
  const [replayed, refusal] = [await authority.reply(earlier), await authority.reply(Buffer.from('no query'))]
  const answers: [RegExp, { status: number; body: Buffer }][] = [
    [/no time stamp/, { status: 200, body: Buffer.alloc(0) }],
    [/no time stamp/, { status: 200, body: Buffer.from('<html>Sign in</html>') }],
    [/refuses: status 2/, { status: 200, body: Buffer.from('30053003020102', 'hex') }],
    [/answered 503/, { status: 503, body: Buffer.from('later') }],
    [/of another request/, { status: 200, body: replayed }],
    [/more than 65536 bytes/, { status: 200, body: Buffer.alloc(1_000_000, 0x30) }],
    [/refuses: status 2 .*request/i, { status: 200, body: refusal }],
  ]
  for (const [index, [message, answer]] of answers.entries()) {
    authority.answerWith(() => answer)
    expect(await makeManifests(index, variables)).toMatch(/, 0 stamped,/)
    for (const row of await stored()) expect(row).toMatchObject({ stamp: null, stamp_error: expect.stringMatching(message) })
  }
  authority.answerWith(undefined)
  const count = (await stored()).length
  expect(await makeManifests(answers.length - 1, variables)).toBe(`0 manifests made, ${count} stamped, 0 copied to destinations`)
  for (const row of await stored()) expect(row).toMatchObject({ stamp: expect.any(Buffer), stamp_error: null, is_stamp_due: false })
  expect((await createManifests(db).list(workspaceId, { page: 1, perPage: 2 })).items).toMatchObject([
    { isStamped: true },
    { isStamped: true },
  ])
})

test('the key that signs manifests is sealed, is sealed with another key, and stays the same', async () => {
  await arrange()
  const before = await proofCertificate(db, testConfig())
  const { RELAY_SECRET_KEYS: old } = testConfig()
  const both = [`new:${Buffer.alloc(32, 8).toString('base64')}`, ...old]
  expect(await rotateKeys(db, createKeyRing(both))).toMatchObject({ resealed: expect.any(Number), unreadable: [] })
  expect(await proofCertificate(db, testConfig({ RELAY_SECRET_KEYS: both[0]! }))).toBe(before)
  await rotateKeys(db, createKeyRing([...old, both[0]!]))
  const { proof_key_sealed: sealed } = await db('installation').first('proof_key_sealed')
  expect(sealed.toString('latin1')).not.toContain('PRIVATE KEY')
})

test('what was stored and is not what was signed is not handed out', async () => {
  await using folder = await createFolder()
  const { workspace, stored } = await arrange()
  await makeManifests(0)
  const [row] = await stored()
  const chunk = { content_id: row.content_id }
  const { data } = await db('content_chunks').where(chunk).first('data')
  data[data.length >> 1] ^= 1
  await db('content_chunks').where(chunk).update({ data })
  const request = { workspace, day: row.day as string, folder: folder.path }
  await expect(exportProof(db, testConfig(), request)).rejects.toThrow(/not what was signed/)
  await expect(exportProof(db, testConfig(), { ...request, day: '2001-01-01' })).rejects.toThrow(/has no manifest of 2001-01-01/)
})

test('a destination gets each manifest with its parts, and a stamp that comes later, and is asked again after a failure', async () => {
  await using folder = await createFolder()
  await using authority = Object.assign(await startAuthority(join(folder.path, 'tsa')), {
    [Symbol.asyncDispose]: async () => authority.stop(),
  })
  const { stored, destinations, workspaceId } = await arrange()
  const path = join(folder.path, 'archive')
  const id = destinations['a']!
  const keyRing = createKeyRing(testConfig().RELAY_SECRET_KEYS)
  const sealed = keyRing.seal({}, credentialsOwner({ boundKeys: [] }, { workspaceId, id, config: { path } }))
  const values = { connector_type: 'directory', config: JSON.stringify({ path }), credentials_sealed: sealed }
  await db('destinations').where({ id }).update(values)
  const variables = {
    PROOF_DESTINATIONS: `${newId()},${id}`,
    RELAY_DIRECTORY_ROOTS: folder.path,
    PROOF_TIMESTAMP_URL: authority.url,
  }
  authority.answerWith(() => ({ status: 503, body: Buffer.alloc(0) }))
  // The folder is missing.
  expect(await makeManifests(0, variables)).toMatch(/, 0 stamped, 0 copied/)
  await mkdir(path)
  const days = (await stored()).map(({ day }) => day as string)
  expect(await makeManifests(0, variables)).toMatch(new RegExp(`, 0 stamped, ${days.length} copied`))
  const filesOf = (ends: string[]) => days.flatMap((day) => ends.map((end) => `${day}.${end}`)).toSorted()
  const copies = async () => (await readdir(join(path, 'manifests'))).toSorted()
  expect(await copies()).toEqual(filesOf(['jsonl', 'p7s', 'pem']))
  const [first] = days
  await writeFile(join(path, 'manifests', `${first}.pem`), 'kept')
  authority.answerWith(undefined)
  expect(await makeManifests(0, variables)).toMatch(new RegExp(`, ${days.length} stamped, ${days.length} copied`))
  // The other parts are not sent again.
  expect(await readFile(join(path, 'manifests', `${first}.pem`), 'utf8')).toBe('kept')
  expect(await copies()).toEqual(filesOf(['jsonl', 'p7s', 'pem', 'tsr']))
  const { items } = await createManifests(db).list(workspaceId, { page: 1, perPage: 100 })
  const copy = {
    day: expect.any(String),
    destinationId: id,
    destinationName: expect.any(String),
    copiedAt: expect.any(Date),
    isStamped: true,
  }
  expect(items.map((each) => each.copies)).toEqual(days.map(() => [copy]))
  expect(await makeManifests(0, variables)).toMatch(/^0 manifests made, 0 stamped, 0 copied/)
  for (const day of days.slice(1)) expect(await inShell(join(path, 'manifests'), verifySignature(day))).toMatchObject({ ok: true })
})
