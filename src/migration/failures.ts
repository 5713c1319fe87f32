import type { UpstreamDocuments } from '../archive/upstream-documents.ts'
import { messageOf } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { plainText } from '../base/text.ts'
import type { Database } from '../db/database.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { columnsAs } from '../domain/casing.ts'
import type { CodePage } from '../domain/code-pages.ts'
import type { StoredUpstream } from '../domain/upstream.ts'
import { UpstreamFailure } from './failure.ts'
import type { Asked, Upstreams } from './upstreams.ts'

// Restarting a server takes less.
const failingMinutes = 5

/**
 * SQL in a query on the table repositories: since when the upstream fails, and its latest error, as failing_since and last_error. No row if it
 * answers, or has not failed for long.
 */
export const failingUpstream = `
  select failing_since, last_error
  from upstream_failures
  where repository_id = repositories.id
    and repositories.upstream is not null
    and failing_since < now() - interval '${failingMinutes} minutes'
`

interface FailedUpstream {
  repositoryId: string
  workspaceId: string
  repoId: string
  /** Null if the upstream was removed. */
  upstream: StoredUpstream | null
  upstreamSecretsSealed: Buffer | null
  codePage: CodePage
}

/** The repositories whose upstream has failed, from the first failure on, for all processes. */
export const createUpstreamFailures = (db: Database) => ({
  record: async (repositoryId: string, message: string): Promise<void> => {
    await db('upstream_failures')
      .insert({ repository_id: repositoryId, last_error: message })
      .onConflict('repository_id')
      .merge({ last_error: message, asked_at: db.fn.now() })
  },

  end: async (repositoryId: string): Promise<void> => {
    await db('upstream_failures').where({ repository_id: repositoryId }).delete()
  },

  /** Lists some, those first that were not asked for the longest time. */
  list: async (limit: number): Promise<FailedUpstream[]> =>
    db('upstream_failures')
      .join('repositories', 'repositories.id', 'repository_id')
      .select<FailedUpstream[]>(columnsAs('repository_id, workspace_id, repo_id, code_page, upstream, upstream_secrets_sealed'))
      .orderBy('asked_at')
      .limit(limit),
})

export type UpstreamFailures = ReturnType<typeof createUpstreamFailures>

// They are asked at the same time, and each may take a minute to fail.
const askedPerCheck = 50

/** Asks for a document. @returns true if the upstream delivers it damaged, which says nothing about others */
const isDamaged = async (asked: Asked, docId: string, signal: AbortSignal): Promise<boolean> => {
  try {
    await asked.delivers(docId, signal)
    return false
  } catch (thrown) {
    if (!(thrown instanceof UpstreamFailure) || thrown.about !== 'document') throw thrown
    return true
  }
}

/**
 * Creates a function that asks the upstreams that have failed whether they answer again, so that a failure ends without a read of the source
 * system: for the document that was fetched last, and if there is none or it is damaged there, for one that does not exist.
 */
export const createCheckUpstreams =
  (
    failures: UpstreamFailures,
    upstreams: Upstreams,
    documents: Pick<UpstreamDocuments, 'findLastFetched'>,
    onItsOwn = createOnItsOwn().onItsOwn,
  ) =>
  async (signal: AbortSignal): Promise<{ asked: number; answering: number }> => {
    const isAnswering = async (failed: FailedUpstream): Promise<boolean> => {
      const { repositoryId, workspaceId, repoId, upstream, upstreamSecretsSealed, codePage } = failed
      try {
        if (upstream) {
          const asked = await upstreams.of({ id: repositoryId, codePage, workspace: { id: workspaceId }, upstream, upstreamSecretsSealed })
          const fetched = await documents.findLastFetched(workspaceId, repoId)
          if (fetched === undefined || (await isDamaged(asked, fetched, signal))) await asked.describe(`TEST-${newId()}`, signal)
        }
        await failures.end(repositoryId)
        return true
      } catch (thrown) {
        signal.throwIfAborted()
        // Also an error of the relay, as that of secrets which cannot be opened: those that were asked longer ago come first next time.
        await failures.record(repositoryId, plainText(messageOf(thrown)))
        if (!(thrown instanceof UpstreamFailure)) throw thrown
        return false
      }
    }
    const answers = await Promise.all(
      (await failures.list(askedPerCheck)).map((failed) =>
        onItsOwn('upstreams', { repository_id: failed.repositoryId }, () => isAnswering(failed), signal),
      ),
    )
    return { asked: answers.length, answering: answers.filter(Boolean).length }
  }

export type CheckUpstreams = ReturnType<typeof createCheckUpstreams>
