import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ulid } from 'ulid'
import { createReceive } from '../../src/archive/receive.ts'
import { dayOf } from '../../src/base/day.ts'
import { newId, timeOfId } from '../../src/base/ids.ts'
import { exportProof } from '../../src/cli/proof.ts'
import type { TargetAnswer } from '../../src/connectors/connector.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { findJob } from '../../src/maintenance/jobs.ts'
import { blocksOf } from '../docs/commands.ts'
import type { Json } from '../support/client.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { createMaintenanceDeps } from '../support/maintenance.ts'
import { share } from '../support/share.ts'
import { withoutManifests } from '../support/without-manifests.ts'

// What the tests of manifests have in common.

export const { db, url } = share(await createTestDatabase())
export const dayMs = 86_400_000

const noWorkflows = {
  send: async () => {},
  findDeliveryWorkflow: async () => ({ state: 'working' as const }),
  findBulkRetryWorkflow: async () => ({ state: 'working' as const }),
  terminateDelivery: async () => {},
  terminateBulkRetry: async () => {},
}

/** Runs the job as of some days from now, when the day before is over. */
export const makeManifests = async (inDays: number, variables: Record<string, string> = {}, of = db) => {
  const now = new Date(Date.now() + inDays * dayMs)
  const deps = createMaintenanceDeps(of, noWorkflows, testConfig(variables))
  return findJob('make-manifests')!.run(deps, { now, signal: new AbortController().signal })
}

/** Creates a workspace whose manifests begin two days ago. Those of others are not due. */
export const arrange = async () => {
  await withoutManifests(db)
  await db('manifests').delete()
  const routes = await createRoutes(db, [{ name: 'a', connector: 'objstore' }])
  const since = new Date(Date.now() - 2 * dayMs)
  await db('workspaces').where({ id: routes.workspaceId }).update({ created_at: since })
  const receive = async (docId = newId(), compId = 'data') => {
    await createReceive(db, testConfig())(await receivedDocument(routes, { [compId]: `content of ${docId}` }, docId))
    const { id } = await db('documents').where({ doc_id: docId }).first<{ id: string }>('id')
    return { docId, documentId: id, day: dayOf(timeOfId(id)), destinationId: routes.destinations['a']! }
  }
  /** @param at the time at which the attempt is started */
  const deliver = async (delivery: { documentId: string; destinationId: string; docId: string }, answer: TargetAnswer, at = Date.now()) => {
    const job = (await createLoadJob(db, testConfig())({ ...delivery, ...firstRound }))!
    const sha256 = createHash('sha256').update(`content of ${delivery.docId}`).digest('hex')
    const result = { path: `s3://Müller/${delivery.docId}`, bytesSent: 5, sha256, sizeBytes: job.content.sizeBytes, answer }
    const end = { id: ulid(at), operation: 'attemptDelivered', outcome: 'delivered', durationMs: 5, bytesSent: 5, result } as const
    await createRecordAttempt(db, testConfig())(delivery, job, end)
    const { documentId: document_id, destinationId: destination_id } = delivery
    if (at > Date.now())
      await db('deliveries')
        .where({ document_id, destination_id })
        .update({ late_receipt_at: new Date(at) })
  }
  const workspace = `acme/${routes.workspaceSlug}`
  const stored = () =>
    db('manifests')
      .where({ workspace_id: routes.workspaceId })
      .orderBy('manifests.day')
      .select(['*', db.raw('manifests.day::text as day')])
  const exportAll = async (folder: string) => {
    const days = (await stored()).map(({ day }) => day as string)
    for (const day of days) await exportProof(db, testConfig(), { workspace, day, folder })
    return days
  }
  return { ...routes, workspace, receive, deliver, stored, exportAll, since: dayOf(since) }
}

export const linesOf = async (folder: string, day: string): Promise<Json[]> =>
  (await readFile(join(folder, `${day}.jsonl`), 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

// The commands of the page, for the files of a test.
const page = await readFile(new URL('../../docs/proof.md', import.meta.url), 'utf8')
const [, verifySignatureOf, verifyStampOf, verifyChainOf, findMissing] = blocksOf(page).map(({ content }) => content) as [
  string,
  string,
  string,
  string,
  string,
]
/** @param certificate the one that the auditor has kept */
export const verifySignature = (day: string, certificate = `${day}.pem`) =>
  verifySignatureOf.replaceAll('2026-11-28', day).replaceAll('relay.pem', certificate)
export const verifyStamp = (day: string, authority: string) =>
  verifyStampOf.replaceAll('2026-11-28', day).replace('authority.pem', authority)
export { findMissing, verifyChainOf }
