import { isDocIdOnHold } from '../archive/legal-holds.ts'
import { createReceivingRepositories } from '../archive/receiving-repository.ts'
import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { ContentServerFailure } from '../content-server/failure.ts'
import { record, systemActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { snakeCased } from '../domain/casing.ts'
import { listDeletions, type Deletion } from '../migration/deletions.ts'
import { toUpstreamFailure, UpstreamFailure } from '../migration/failure.ts'
import { createUpstreams, type Asked } from '../migration/upstreams.ts'
import { openOutboundGuard } from '../security/outbound.ts'
import { createKeyRing } from '../security/seal.ts'
import { findWorkspace } from '../workspace/administration.ts'
import { cellOf, tableOf } from './output.ts'

const results = ['deleted', 'not there', 'on hold', 'failed'] as const

/** What became of a deletion at the upstream. */
interface Repeated extends Deletion {
  /** Undefined if it was only listed. */
  result?: (typeof results)[number]
  reason?: string
}

/**
 * `relay migrate-documents deletions`: what the source system has deleted here.
 * @param isRepeated deletes it at the upstream as well, which one audit entry records
 * @param onRepeated is called after each deletion there
 * @throws `UserError` if the repository does not exist, or, to delete, if it has no upstream, or if the upstream does not answer
 */
export const showDeletions = async (
  db: Database,
  config: Config,
  { workspace: name, repoId, isRepeated }: { workspace: string; repoId: string; isRepeated: boolean },
  onRepeated: (repeated: Repeated) => void = () => {},
): Promise<Repeated[]> => {
  const { id: workspaceId, userSlug, workspaceSlug } = await findWorkspace(db, name)
  const repository = await createReceivingRepositories(db).find(userSlug, workspaceSlug, repoId, { forStoring: false })
  if (!repository) throw new UserError(`Workspace ${name} has no repository ${repoId}.`)
  const deletions = await listDeletions(db, repository.id)
  if (!isRepeated || deletions.length === 0) return deletions
  const { upstream } = repository
  if (!upstream) throw new UserError(`The repository ${repoId} has no upstream.`)
  const outbound = openOutboundGuard(config)
  const repeated: Repeated[] = []
  try {
    const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
    const asked = await createUpstreams({ outbound, keyRing, installation: createInstallation(db) }).of({ ...repository, upstream })
    for (const deletion of deletions) {
      const isOnHold = () => isDocIdOnHold(db, repository.id, deletion.docId)
      const one = { ...deletion, ...((await isOnHold()) ? { result: 'on hold' as const } : await repeat(asked, deletion, isOnHold)) }
      repeated.push(one)
      onRepeated(one)
    }
    return repeated
  } finally {
    await outbound.close()
    await db.transaction((trx) => recordRun(trx, { workspaceId, id: repository.id, repoId }, deletions.length, repeated))
  }
}

/** Records also a run that the upstream has ended. */
const recordRun = (
  trx: Transaction,
  { workspaceId, id, repoId }: { workspaceId: string; id: string; repoId: string },
  listed: number,
  repeated: Repeated[],
): Promise<void> => {
  const [deleted, notThere, kept, failed] = results.map((result) => repeated.filter((each) => each.result === result).length)
  return record(trx, {
    workspaceId,
    event: 'repository.deletions_repeated',
    subjectId: id,
    description: `Of ${listed} deletions in repository ${repoId}, ${deleted} were repeated at its upstream.`,
    metadata: { repo_id: repoId, listed, deleted, not_there: notThere, on_hold: kept, failed },
    actor: systemActor,
  })
}

/** @throws `UserError` if the upstream does not answer */
const repeat = async (asked: Asked, deletion: Deletion, isOnHold: () => Promise<boolean>): Promise<Pick<Repeated, 'result' | 'reason'>> => {
  try {
    return { result: await deleteUpstream(asked, deletion, isOnHold) }
  } catch (thrown) {
    if (!(thrown instanceof UpstreamFailure)) throw thrown
    const { cause, message } = thrown
    if (cause instanceof ContentServerFailure && cause.code !== 'unreachable') return { result: 'failed', reason: message }
    throw new UserError(`${message}. What was deleted there so far stays deleted. Run the command again later.`, { cause: thrown })
  }
}

/** @throws `UpstreamFailure` */
const deleteUpstream = async (
  { client, describe }: Asked,
  { docId, compId }: Deletion,
  isOnHold: () => Promise<boolean>,
): Promise<'deleted' | 'not there' | 'on hold'> => {
  const there = await describe(docId)
  const isThere = compId === null ? there : there?.components.some((component) => component.compId === compId)
  if (!isThere) return 'not there'
  // Again, as the last thing before: no transaction may wait for another system, so a new hold does not wait for this request.
  if (await isOnHold()) return 'on hold'
  const outcome = await client.delete(docId, compId === null ? {} : { compId })
  if (!outcome.ok) throw toUpstreamFailure(outcome.failure)
  return 'deleted'
}

export const presentDeletions = (deletions: Repeated[]) => snakeCased(deletions)

const resultOf = ({ result, reason }: Repeated): string => (reason === undefined ? (result ?? 'not asked') : `${result}: ${reason}`)

/** Returns a line for people, before all of them are known. */
export const deletionLine = (repeated: Repeated): string => `${repeated.docId}, ${repeated.compId ?? 'all'}: ${resultOf(repeated)}`

/** Returns a table for people. */
export const describeDeletions = (deletions: Repeated[]): string[] => {
  if (deletions.length === 0) return ['The source system has deleted nothing here.']
  return tableOf(
    ['DOCUMENT', 'COMPONENT', 'DELETED HERE (UTC)', 'UPSTREAM'],
    deletions.map((deletion) => [deletion.docId, deletion.compId ?? 'all', cellOf(deletion.deletedAt), resultOf(deletion)]),
  )
}
