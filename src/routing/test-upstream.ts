import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { UpstreamFailure } from '../migration/failure.ts'
import type { Upstreams } from '../migration/upstreams.ts'
import { storedUpstream, type SealedUpstream } from './repository-upstream.ts'

/** Asks the upstream of a repository for the repository there, and for a document that does not exist. */
export const createTestUpstream =
  (upstreams: Upstreams) =>
  /** @throws AppError 409 if the repository has no upstream */
  async (
    workspaceId: string,
    { id, upstream: settings, upstreamSecretsSealed }: SealedUpstream & { id: string },
    signal: AbortSignal,
  ): Promise<{ status: 'success' | 'failed'; message: string }> => {
    const upstream = storedUpstream(settings)
    if (!upstream) throw new AppError('conflict', 'The repository has no upstream.')
    try {
      const { client, describe } = await upstreams.of({ id, workspace: { id: workspaceId }, upstream, upstreamSecretsSealed })
      // Its 404 is believed only if the content server serves the repository.
      await describe(`TEST-${newId()}`, signal)
      const outcome = await client.serverInfo({ signal })
      const version = outcome.ok ? (outcome.value.server?.['serverVendorId'] ?? '') : ''
      const how = upstream.certificate === null ? 'unsigned' : 'signed'
      return {
        status: 'success',
        message: `The content server${version && ` (${version})`} serves the repository ${upstream.cont_rep} and answers ${how} requests.`,
      }
    } catch (thrown) {
      if (!(thrown instanceof UpstreamFailure)) throw thrown
      return { status: 'failed', message: thrown.message }
    }
  }
