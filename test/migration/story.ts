import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { requestQuery } from '../../src/content-server/sign.ts'
import { disposable } from '../support/disposable.ts'
import { startInstallation } from '../support/installation.ts'
import { readParts } from '../support/old-content-server-wire.ts'
import { share } from '../support/share.ts'
import { createSourceSystem, part, type SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import type { Contents, OldServer } from './old-servers.ts'

// A source system moves from an old content server to the relay, and back again.

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const relay = share(await startInstallation())
const folder = await mkdtemp(join(tmpdir(), 'relay-story-'))
share(disposable({}, () => rm(folder, { recursive: true })))

interface Ran {
  status: number
  stdout: string
  stderr: string
}

/** Runs a verb. @param variables none, for a verb that needs neither a database nor a network */
const cli = async (args: string[], variables: Record<string, string> = relay.variables): Promise<Ran> => {
  const command = ['--disable-warning=ExperimentalWarning', main, ...args]
  const env = { PATH: process.env['PATH'], ...variables }
  return promisify(execFile)(process.execPath, command, { env, cwd: folder, maxBuffer: 16 * 1024 * 1024 }).then(
    (output) => ({ status: 0, ...output }),
    (thrown: Ran & { code: number }) => ({ status: thrown.code, stdout: thrown.stdout, stderr: thrown.stderr }),
  )
}

/** Runs a verb that must not fail. @returns what it prints as JSON */
const ask = async <T>(args: string[]): Promise<T> => {
  const { status, stdout, stderr } = await cli([...args, '--json'])
  // A verb that goes on for long tells there what it does.
  expect([status, status === 0 ? '' : stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

interface Verified {
  open: { doc_id: string; verdict: string; reason: string | null }[]
  totals: Record<string, number>
}

/** Saves the report of a migration, and checks it elsewhere. */
const reportOf = async (id: string): Promise<Verified & { status: number; named: string[] }> => {
  const [report, key] = [`${id}.jsonl`, `${id}.pem`]
  await writeFile(join(folder, key), (await cli(['migrate-documents', 'public-key'])).stdout)
  expect((await cli(['migrate-documents', 'report', id, '--output', report])).status).toBe(0)
  const { status, stdout } = await cli(['migrate-documents', 'verify', report, '--public-key', key, '--json'], {})
  const verified = JSON.parse(stdout) as Verified
  return { ...verified, status, named: verified.open.map(({ doc_id: docId, verdict }) => `${docId} ${verdict}`).toSorted() }
}

/** Saves rows of a link table, as an export. @returns its name */
const exportOf = async (name: string, docIds: string[]): Promise<string> => {
  const rows = docIds.map((id) => `|BKPF|1000${id}2019|Z1|${id}|FIIINVOICE|02.03.2019|`)
  await writeFile(join(folder, name), ['|SAP_OBJECT|OBJECT_ID|ARCHIV_ID|ARC_DOC_ID|AR_OBJECT|AR_DATE|', ...rows].join('\n'))
  return name
}

const docIdOf = (number: number) => `D${String(number).padStart(4, '0')}`

const name = 'acme/invoices'

/** Tells the story with `total` documents, once in a file. */
export const switchThereAndBack = async (start: () => Promise<OldServer>, total: number): Promise<void> => {
  await using old = await start()
  const missing = [0.1, 0.5, 0.9].map((share_) => docIdOf(total * share_))
  const damaged: [string, string] = [docIdOf(total * 0.2), docIdOf(total * 0.7)]
  const changed = docIdOf(total - 1)
  const docIds = Array.from({ length: total }, (_, index) => docIdOf(index + 1))
  // What the source system has stored, and can expect to read. It also has links to the missing ones.
  const expected = new Map<string, Contents>()
  for (const docId of docIds.filter((id) => !missing.includes(id))) expected.set(docId, { data: `content of ${docId}` })
  for (const docId of docIds.slice(0, 9)) expected.set(docId, { data: `content of ${docId}`, note: `note of ${docId}` })
  await old.store(expected)
  await old.damage(damaged)
  for (const docId of damaged) expected.delete(docId)

  const client = await relay.tenant(name)
  // Another destination, which is not reached at the moment.
  const { repositoryId } = await client.wire(['http://127.0.0.1:9/'], { repoId: 'Z1', isActive: false })
  const setUpstream = (upstream: object | null) => client.change('PATCH', `/repositories/${repositoryId}`, { upstream })
  const upstream = { url: old.url, cont_rep: 'Z1', ...old.credentials }
  await setUpstream(upstream)
  await using source = disposable(createSourceSystem(`${relay.baseUrl}/receiver/${name}`), (each) => each.close())
  const does = async (what: Promise<SourceAnswer>, status = 200) => expect((await what).status).toBe(status)

  // The source system is switched. It reads from the first second, while documents at the old server are still changed.
  expect(String((await source.get(changed)).body)).toBe(`content of ${changed}`)
  await until(
    'the document is kept',
    () => relay.db('documents').where({ workspace_id: client.id, doc_id: changed }),
    (rows) => rows.length === 1,
  )
  await old.change(changed, { data: 'changed meanwhile' })
  expected.set(changed, { data: 'changed meanwhile' })
  await does(source.delete('D0009'))
  expected.delete('D0009')

  // The rest is copied.
  const linked = docIds.filter((id) => id !== 'D0009')
  const lists = [await exportOf('TOA01.txt', linked.slice(0, 100)), await exportOf('TOA02.txt', linked.slice(100))]
  // It goes on after a worker was lost. With this rate, it cannot be completed before.
  const { id } = await ask<{ id: string }>(['migrate-documents', 'start', name, 'Z1', ...lists, '--per-minute', '60'])
  await until(
    'some documents are copied',
    () => relay.db('document_migrations').where({ id }).first('copied'),
    (row: { copied: number }) => row.copied > 0,
  )
  await relay.worker.kill()
  await ask(['migrate-documents', 'pause', id])
  await relay.db('document_migrations').where({ id }).update({ documents_per_minute: null })
  await ask(['migrate-documents', 'resume', id])
  await relay.start('worker')
  const followed = await ask<object>(['migrate-documents', 'status', id, '--follow'])
  expect(followed).toMatchObject({ status: 'completed', rows: total - 1, missing: 3, damaged: 2, different: 0 })
  const { status, totals, named } = await reportOf(id)
  expect(status).toBe(1)
  expect(totals).toMatchObject({ rows: total - 1, copied: total - 6, missing: 3, damaged: 2 })
  const lost = [...missing.map((docId) => `${docId} missing`), ...damaged.map((docId) => `${docId} damaged`)].toSorted()
  expect(named).toEqual(lost)
  const noted = await relay
    .db('document_migration_rows')
    .where({ document_migration_id: id, verdict: 'copied' })
    .whereNotNull('reason')
    .pluck('doc_id')
  expect(noted).toEqual([changed])

  // The old server is stopped: nothing is missing, and the source system goes on.
  old.close()
  for (const [docId, { data }] of expected) {
    const answer = await source.get(docId)
    expect([docId, answer.status, String(answer.body)]).toEqual([docId, 200, data])
  }
  await does(source.create('N0000', 'refused'), 503)
  await setUpstream(null)
  await does(source.createParts('N0001', [part('data', 'new'), part('note', 'first note')]), 201)
  await does(source.update('D0001', 'updated'))
  await does(source.append('D0002', ', and more'))
  await does(source.delete('D0003'))
  await does(source.delete('D0004', '&compId=note'))
  await does(source.updateParts('D0005', [part('data', 'without a note')]))

  // It comes back, without a document. The way back is wired now: what was accepted before is not on its way by itself.
  old.open()
  await old.lose('D0008')
  await setUpstream(upstream)
  const back = {
    name: 'Old server',
    connector_type: 'content-server',
    config: { url: old.url, repository: 'Z1' },
    credentials: old.credentials,
  }
  const destinationId = await client.create('/destinations', back)
  await client.connect([repositoryId], [destinationId])
  await does(source.create('N0002', 'new, too'), 201)
  await does(source.create('N0003', 'a mistake'), 201)
  await does(source.delete('N0003'))
  await does(source.update('N0001', 'second note', { compId: 'note' }))
  await does(source.append('D0006', ', and more'))
  await does(source.delete('D0007'))
  await does(source.create('D0007', 'another one'), 201)
  for (const docId of ['D0003', 'D0008']) expected.delete(docId)
  for (const [docId, contents] of Object.entries<Contents>({
    N0001: { data: 'new', note: 'second note' },
    N0002: { data: 'new, too' },
    D0001: { data: 'updated', note: 'note of D0001' },
    D0002: { data: 'content of D0002, and more', note: 'note of D0002' },
    D0004: { data: 'content of D0004' },
    D0005: { data: 'without a note' },
    D0006: { data: 'content of D0006, and more', note: 'note of D0006' },
    D0007: { data: 'another one' },
  })) {
    expected.set(docId, contents)
  }

  // The source system is switched back: what it has sent is delivered, and what it has deleted is deleted there.
  const bulk = { destination_id: destinationId, repo_id: 'Z1', origin: 'source' }
  const { id: bulkId } = await client.change('POST', '/documents/deliver', bulk)
  const delivered = await until(
    'everything is delivered',
    () => client.attributesOf(`/bulk-retries/${bulkId}`),
    ({ status: state, open_deliveries: open }) => state === 'completed' && open === 0,
  )
  expect(delivered).toMatchObject({ action: 'deliver', retried_documents: 5, skipped_documents: 0, delivered_deliveries: 5 })
  await until(
    'nothing is on its way',
    () => relay.db('deliveries').where({ destination_id: destinationId }).whereNot({ status: 'delivered' }),
    (rows) => rows.length === 0,
  )
  const deletions = ['migrate-documents', 'deletions', name, 'Z1']
  const deleted = [
    ['D0003', null],
    ['D0004', 'note'],
    ['D0005', 'note'],
    ['D0007', 'note'],
    ['D0009', null],
    ['N0003', null],
  ].map(([doc_id, comp_id]) => ({ doc_id, comp_id }))
  expect(await ask(deletions)).toMatchObject(deleted)
  expect(await ask([...deletions, '--delete'])).toMatchObject(deleted.map((each) => ({ ...each, result: 'deleted' })))
  expect(await ask([...deletions, '--delete'])).toMatchObject(deleted.map((each) => ({ ...each, result: 'not there' })))

  // A check of all links names what the old server does not have.
  const links = await exportOf('TOA01-back.txt', [...expected.keys(), 'D0008', ...missing, ...damaged])
  const check = await ask<{ id: string }>(['migrate-documents', 'start', name, 'Z1', links, '--check', '--follow'])
  const checked = await reportOf(check.id)
  expect(checked.open.filter(({ verdict }) => verdict === 'different')).toMatchObject([
    { doc_id: 'D0008', reason: 'the old content server does not have it' },
  ])
  expect(checked.named).toEqual([...lost, 'D0008 different'].toSorted())
  expect(checked.totals).toMatchObject({ rows: expected.size + 6, equal: expected.size, different: 1, missing: 3, damaged: 2 })

  // The source system reads everything from the old server, which has nothing else.
  await using switchedBack = disposable(createSourceSystem(old.url), (each) => each.close())
  for (const [docId, contents] of expected) {
    const query = requestQuery('docGet', 'GET', { pVersion: '0045', contRep: 'Z1', docId }, old.signing)
    const answer = await switchedBack.call(query)
    expect([docId, answer.status]).toEqual([docId, 200])
    const parts = readParts(answer.headers['content-type']!, answer.body)
    const read = Object.fromEntries(parts.map(({ headers, body }) => [headers['x-compid'], String(body)]))
    expect([docId, read]).toEqual([docId, contents])
  }
  expect((await old.docIds()).toSorted()).toEqual([...expected.keys(), ...damaged].toSorted())
}
