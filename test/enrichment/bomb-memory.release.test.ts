// Documents and answers that are hostile to their reader do not raise the memory of a worker for good.
import { setTimeout as delay } from 'node:timers/promises'
import { deflateSync } from 'node:zlib'
import { createBodies } from '../../bench/neighbours/bodies.ts'
import { slowPath } from '../../bench/neighbours/noises.ts'
import { allocatedMiB, allocatedTreeMiB, memoryOf, resetPeakMemory } from '../../bench/support/processes.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { cii, pdfWith, ubl } from './invoices.ts'

const ordinaryDocuments = 20
// Each wave.
const bombs = { pdf: 9, xml: 4, answer: 3 }
// The C library keeps some of what lies between memory in use. A worker that held all documents that waited kept 194 MiB.
const growthMaxMiB = 32
// Threads, and the process that reads, end after a minute without work.
const backMaxMs = 90_000
const idleMs = 10_000
const handledMaxMs = 300_000

const listOf = (entries: number) => JSON.stringify({ list: Array.from({ length: entries }, () => ({ a: `${'a'.repeat(60)}!` })) })
const hostileAnswer = listOf(27_000)

test('a worker has the memory back that documents and answers took which were hostile to their reader', async () => {
  await using target = await startHttpTarget()
  let answer = listOf(1)
  target.answerWith(({ url }, response) => {
    if (url.startsWith('/value')) response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
    else response.end()
  })
  await using installation = await startInstallation()
  const { db, worker, tenant } = installation
  const { change, id: workspaceId, sendCreate, wire } = await tenant('acme/bombs')
  const enriched = async (name: string, more: object): Promise<string> => {
    const { repoId, repositoryId } = await wire([`${target.origin}/accept`])
    await change('POST', '/enrichments', { name, repository_ids: [repositoryId], wait_seconds: 120, late_days: 0, ...more })
    return repoId
  }
  const invoices = await enriched('Invoices', { steps: [{ kind: 'e_invoice' }] })
  const values = await enriched('Values', {
    http: { url: target.origin },
    steps: [{ kind: 'http', name: 'x', path: '/value', fields: [{ name: 'v', path: slowPath, optional: true }] }],
  })

  let sent = 0
  const send = async (repoId: string, body: string | Buffer) => {
    sent += 1
    expect((await sendCreate(repoId, `D${sent}`, body, 'application/octet-stream')).status).toBe(201)
  }
  const { pid } = worker
  const untilHandled = () =>
    until(
      'all documents are read and delivered',
      async () => {
        const rows = await db('documents')
          .leftJoin('document_enrichments', 'document_id', 'documents.id')
          .where({ 'documents.workspace_id': workspaceId, 'documents.status': 'delivered' })
          .whereNot('document_enrichments.status', 'pending')
          .count({ n: '*' })
        return Number(rows[0]!['n'])
      },
      (count) => count === sent,
      handledMaxMs,
    )

  const bodyOf = createBodies()
  const [pdf, xml] = [bodyOf('pdf bomb')!, bodyOf('xml bomb')!]
  /** Sends bombs, and waits until the worker has the memory back. @returns MiB of the worker at its peak, and of it with what reads afterwards */
  const wave = async (allowedMiB: number) => {
    resetPeakMemory(pid)
    await Promise.all([
      ...Array.from({ length: bombs.pdf }, () => send(invoices, pdf)),
      ...Array.from({ length: bombs.xml }, () => send(invoices, xml)),
      ...Array.from({ length: bombs.answer }, () => send(values, 'hello')),
    ])
    await untilHandled()
    const { peakMiB } = memoryOf(pid)
    const handledAt = performance.now()
    const isBack = (mebibytes: number) => mebibytes < allowedMiB
    await until('the worker has the memory back', () => allocatedTreeMiB(pid), isBack, backMaxMs)
    const backMs = performance.now() - handledAt
    await delay(idleMs)
    return { peakMiB, backMs, afterMiB: allocatedTreeMiB(pid) }
  }

  const ordinary = [Buffer.from(ubl), Buffer.from(cii), pdfWith(deflateSync(cii), { filter: '/Filter /FlateDecode' })]
  for (let n = 0; n < ordinaryDocuments; n += 1) {
    await send(invoices, ordinary[n % ordinary.length]!)
    await send(values, 'hello')
  }
  await untilHandled()
  await delay(idleMs)
  const beforeMiB = allocatedMiB(pid)
  answer = hostileAnswer
  const allowedMiB = beforeMiB + growthMaxMiB
  const first = await wave(allowedMiB)
  const second = await wave(allowedMiB)
  process.stdout.write(`memory of the worker in MiB: ${JSON.stringify({ beforeMiB, first, second })}\n`)
  expect(first.afterMiB).toBeLessThan(allowedMiB)
  expect(second.afterMiB).toBeLessThan(allowedMiB)
  const tooMuch = await db('document_enrichments').whereRaw(`steps->0->>'error' like '%too much memory%'`)
  // The bombs were read: by far most of them have ended the process that read them.
  expect(tooMuch.length).toBeGreaterThan(bombs.pdf)
}, 900_000)
