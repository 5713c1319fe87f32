import type { Profile } from '../../clients/check-source/src/check.ts'
import type { Report } from '../../clients/check-source/src/run.ts'
import { createCertificates } from '../access/certificates.ts'
import { isDocIdOnHold, OnLegalHold } from '../archive/legal-holds.ts'
import { AppError } from '../base/errors.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createEndCheck, type EndCheck } from '../delivery/end-check.ts'
import type { Repository } from '../routing/repositories.ts'
import type { Workspace } from '../workspace/workspaces.ts'
import { checkOwnRepository } from './own-repository.ts'

/** Profiles that do not hold a request for long: the others wait for a second, and send 64 MiB. */
export const quickProfiles = ['smoke', 'core'] as const satisfies readonly Profile[]

// A run takes a second. A run whose requests have to wait for others is stopped before the client times out.
const runMaxMs = 45_000
const requestTimeoutMs = 10_000

type Checkable = Pick<Repository, 'status' | 'warnings'>

/** @throws `AppError` 409 if a check of the repository would be refused, or its documents discarded */
export const requireCheckable = ({ status, warnings }: Checkable): void => {
  if (status !== 'active') throw new AppError('conflict', 'The repository is inactive: it refuses requests.')
  if (warnings.some(({ code }) => code === 'not_connected')) {
    throw new AppError(
      'conflict',
      'No connection leads from the repository to a destination: the documents of the check would be discarded.',
    )
  }
}

interface CheckRepositoryDeps {
  db: Database
  /** Returns the address of the receivers of this process. */
  receiverOrigin(): string
  endCheck?: EndCheck
}

interface Asked {
  profile: Profile
  actor: AuditActor
  /** Stops the run. Its documents are deleted all the same. */
  signal: AbortSignal
}

/**
 * Checks a repository as its source system would use it, over HTTP at the receiver of this process. A workspace has one check at a time in
 * each process. The documents of the check are delivered like any others, as far as they arrive until its end.
 * @throws `AppError` 409 if the repository cannot be checked, because it is on legal hold for example, or a check of the workspace is running
 */
export const createCheckRepository = ({ db, receiverOrigin, endCheck = createEndCheck(db) }: CheckRepositoryDeps) => {
  const running = new Set<string>()

  return async (
    { id: workspaceId, userSlug, workspaceSlug }: Workspace,
    repository: Checkable & Pick<Repository, 'id' | 'repoId' | 'signatureVerification'>,
    { profile, actor, signal }: Asked,
  ): Promise<Report> => {
    const { id: repositoryId, repoId, signatureVerification } = repository
    requireCheckable(repository)
    // It deletes its documents.
    if (await isDocIdOnHold(db, repositoryId, '')) throw new OnLegalHold('repository')
    if (running.has(workspaceId)) throw new AppError('conflict', 'A check of a repository of this workspace is running.')
    running.add(workspaceId)
    try {
      // Recorded before it begins: a run that is broken off has had effects.
      await db.transaction((trx) =>
        record(trx, {
          workspaceId,
          event: 'repository.checked',
          subjectId: repositoryId,
          description: `Repository ${repoId} was checked as its source system would use it.`,
          metadata: { repo_id: repoId, profile },
          actor,
        }),
      )
      return await checkOwnRepository(
        {
          workspaceId,
          repositoryId,
          repoId,
          signatureVerification,
          url: new URL(`/receiver/${userSlug}/${workspaceSlug}`, receiverOrigin()),
        },
        { certificates: createCertificates(db), actor, endCheck },
        { profile, timeoutMs: requestTimeoutMs, signal: AbortSignal.any([signal, AbortSignal.timeout(runMaxMs)]) },
      )
    } finally {
      running.delete(workspaceId)
    }
  }
}

export type CheckRepository = ReturnType<typeof createCheckRepository>
