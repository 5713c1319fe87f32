import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { disposable } from '../support/disposable.ts'
import { startInstallation } from '../support/installation.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { share } from '../support/share.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { until } from '../support/until.ts'

// A source system moves from an old content server to the relay, and could move back at any time.

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
  return promisify(execFile)(process.execPath, command, { env, cwd: folder }).then(
    (output) => ({ status: 0, ...output }),
    (thrown: Ran & { code: number }) => ({ status: thrown.code, stdout: thrown.stdout, stderr: thrown.stderr }),
  )
}

const total = 1_000
const docIds = Array.from({ length: total }, (_, index) => `D${String(index + 1).padStart(4, '0')}`)
const missing = ['D0100', 'D0500', 'D0900']
const damaged = ['D0200', 'D0700']
const changed = 'D0999'

/** Returns rows of a link table. */
const linkTable = (ids: string[]) =>
  [
    '|SAP_OBJECT|OBJECT_ID|ARCHIV_ID|ARC_DOC_ID|AR_OBJECT|AR_DATE|',
    ...ids.map((id) => `|BKPF|1000${id}2019|Z1|${id}|FIIINVOICE|02.03.2019|`),
  ].join('\n')

test('a source system is switched to the relay and back, and nothing is lost', async () => {
  const old = share(disposable(await startOldContentServer(), () => {}))
  const date = new Date('2019-03-02T10:15:30Z')
  for (const docId of docIds.filter((id) => !missing.includes(id))) old.put(docId, { data: `content of ${docId}` }, { date })
  for (const docId of damaged) old.documents.get(`Z1/${docId}`)!.components[0]!.sizeBytes += 1
  const client = await relay.tenant('acme/invoices')
  const { repositoryId } = await client.wire([], { repoId: 'Z1' })
  await client.change('PATCH', `/repositories/${repositoryId}`, { upstream: { url: old.url, cont_rep: 'Z1' } })
  const source = createSourceSystem(`${relay.baseUrl}/receiver/acme/invoices`)

  // The source system reads from the first second.
  expect(String((await source.get(changed)).body)).toBe(`content of ${changed}`)
  await until(
    'the document is kept',
    () => relay.db('documents').where({ doc_id: changed }),
    (rows) => rows.length === 1,
  )
  // Somebody still changes documents at the old server.
  old.put(changed, { data: 'changed meanwhile' }, { date: new Date('2020-01-01T00:00:00Z') })

  await writeFile(join(folder, 'TOA01.txt'), linkTable(docIds.slice(0, 600)))
  await writeFile(join(folder, 'TOA02.txt'), linkTable(docIds.slice(600)))
  const started = await cli(['migrate-documents', 'start', 'acme/invoices', 'Z1', 'TOA01.txt', 'TOA02.txt', '--json'])
  expect(started.stderr).toBe('')
  const { id } = JSON.parse(started.stdout) as { id: string }
  // It goes on after a worker was lost.
  await until(
    'some documents are copied',
    () => relay.db('document_migrations').where({ id }).first('copied'),
    (row: { copied: number }) => row.copied > 0,
  )
  await relay.worker.kill()
  expect((await cli(['migrate-documents', 'pause', id])).status).toBe(0)
  expect((await cli(['migrate-documents', 'resume', id])).status).toBe(0)
  await relay.start('worker')
  const followed = await cli(['migrate-documents', 'status', id, '--follow', '--json'])
  expect(JSON.parse(followed.stdout)).toMatchObject({ status: 'completed', rows: total, missing: 3, damaged: 2, different: 0 })

  const key = await cli(['migrate-documents', 'public-key'])
  await writeFile(join(folder, 'key.pem'), key.stdout)
  expect((await cli(['migrate-documents', 'report', id, '--output', 'report.jsonl'])).status).toBe(0)
  const verified = await cli(['verify', 'report.jsonl', '--public-key', 'key.pem', '--csv', 'missing.csv', '--json'], {})
  const { open, totals } = JSON.parse(verified.stdout) as { open: { doc_id: string; verdict: string }[]; totals: object }
  expect(verified.status).toBe(1)
  expect(totals).toMatchObject({ rows: total, copied: total - 5, missing: 3, damaged: 2 })
  expect(open.map(({ doc_id: docId, verdict }) => `${docId} ${verdict}`).toSorted()).toEqual([
    'D0100 missing',
    'D0200 damaged',
    'D0500 missing',
    'D0700 damaged',
    'D0900 missing',
  ])
  const noted = await relay
    .db('document_migration_rows')
    .where({ document_migration_id: id, verdict: 'copied' })
    .whereNotNull('reason')
    .pluck('doc_id')
  expect(noted).toEqual([changed])

  await old.stop()
  for (const docId of docIds.filter((each) => ![...missing, ...damaged].includes(each))) {
    const { status, body } = await source.get(docId)
    expect([docId, status, String(body)]).toEqual([docId, 200, docId === changed ? 'changed meanwhile' : `content of ${docId}`])
  }

  // The way back: what the relay has accepted meanwhile reaches the old server, which is up again.
  await using again = await startOldContentServer()
  const destination = {
    name: 'Old server',
    connector_type: 'content-server',
    config: { url: again.url, repository: 'Z1' },
    credentials: {},
  }
  await client.connect([repositoryId], [await client.create('/destinations', destination)])
  await client.change('PATCH', `/repositories/${repositoryId}`, { upstream: null })
  await client.sendDocument('Z1', 'delivered', 'N0001')
  const switchedBack = createSourceSystem(again.url)
  expect(String((await switchedBack.get('N0001')).body)).toBe('hello')
  await source.close()
  await switchedBack.close()
}, 300_000)
