import { createReceivingRepositories } from '../archive/receiving-repository.ts'
import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { ContentServerFailure } from '../content-server/failure.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { listDeletions, type Deletion } from '../document-migration/deletions.ts'
import { createOutboundGuard } from '../security/outbound.ts'
import { createKeyRing } from '../security/seal.ts'
import { toUpstreamFailure, UpstreamFailure } from '../upstream/failure.ts'
import { createUpstreams, type Asked } from '../upstream/upstreams.ts'
import { findWorkspace } from '../workspace/administration.ts'
import { cellOf, tableOf } from './output.ts'

/** What became of a deletion at the upstream. */
interface Repeated extends Deletion {
  /** Undefined if it was only listed. */
  result?: 'deleted' | 'not there' | 'failed'
  reason?: string
}

/**
 * `relay migrate-documents deletions`: what the source system has deleted here.
 * @param isRepeated to delete it at the upstream, too
 * @throws `UserError` if the repository does not exist, or has no upstream, or if the upstream does not answer
 */
export const showDeletions = async (
  db: Database,
  config: Config,
  { workspace: name, repoId, isRepeated }: { workspace: string; repoId: string; isRepeated: boolean },
): Promise<Repeated[]> => {
  const { userSlug, workspaceSlug } = await findWorkspace(db, name)
  const repository = await createReceivingRepositories(db).find(userSlug, workspaceSlug, repoId, { forStoring: false })
  if (!repository) throw new UserError(`Workspace ${name} has no repository ${repoId}.`)
  const deletions = await listDeletions(db, repository.id)
  if (!isRepeated) return deletions
  const { upstream } = repository
  if (!upstream) throw new UserError(`The repository ${repoId} has no upstream.`)
  const outbound = createOutboundGuard({
    allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS,
    proxyUrl: config.RELAY_OUTBOUND_PROXY,
    noProxy: config.RELAY_OUTBOUND_NO_PROXY,
  })
  try {
    const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
    const asked = await createUpstreams({ outbound, keyRing, installation: createInstallation(db) }).of({ ...repository, upstream })
    const repeated: Repeated[] = []
    for (const deletion of deletions) repeated.push({ ...deletion, ...(await repeat(asked, deletion)) })
    return repeated
  } finally {
    await outbound.close()
  }
}

/** @throws `UserError` if the upstream does not answer */
const repeat = async (asked: Asked, deletion: Deletion): Promise<Pick<Repeated, 'result' | 'reason'>> => {
  try {
    return { result: await deleteUpstream(asked, deletion) }
  } catch (thrown) {
    if (!(thrown instanceof UpstreamFailure)) throw thrown
    const { cause, message } = thrown
    if (cause instanceof ContentServerFailure && cause.code !== 'unreachable') return { result: 'failed', reason: message }
    throw new UserError(`${message}. What was deleted there so far stays deleted. Run the command again later.`, { cause: thrown })
  }
}

/** @throws `UpstreamFailure` */
const deleteUpstream = async ({ client, describe }: Asked, { docId, compId }: Deletion): Promise<'deleted' | 'not there'> => {
  const there = await describe(docId)
  const isThere = compId === null ? there : there?.components.some((component) => component.compId === compId)
  if (!isThere) return 'not there'
  const outcome = await client.delete(docId, compId === null ? {} : { compId })
  if (!outcome.ok) throw toUpstreamFailure(outcome.failure)
  return 'deleted'
}

export const presentDeletion = ({ docId, compId, deletedAt, ...upstream }: Repeated) => ({
  doc_id: docId,
  comp_id: compId,
  deleted_at: deletedAt.toISOString(),
  ...upstream,
})

/** Returns a table for people. */
export const describeDeletions = (deletions: Repeated[]): string[] => {
  if (deletions.length === 0) return ['The source system has deleted nothing here.']
  return tableOf(
    ['DOCUMENT', 'COMPONENT', 'DELETED HERE (UTC)', 'UPSTREAM'],
    deletions.map(({ docId, compId, deletedAt, result, reason }) => [
      docId,
      compId ?? 'all',
      cellOf(deletedAt),
      result === undefined ? 'not asked' : reason === undefined ? result : `${result}: ${reason}`,
    ]),
  )
}
