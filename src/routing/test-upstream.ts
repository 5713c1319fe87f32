import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { CodePage } from '../domain/code-pages.ts'
import { UpstreamFailure } from '../migration/failure.ts'
import type { DocumentMigrations } from '../migration/migrations.ts'
import type { Asked, Upstreams } from '../migration/upstreams.ts'
import { storedUpstream, type SealedUpstream } from './repository-upstream.ts'

/** Reads a document as the repository will: what it consists of, and the first bytes. @throws `UpstreamFailure` unless it can be read */
const readOne = async ({ describe, measure, delivers }: Asked, docId: string, signal: AbortSignal): Promise<string> => {
  const told = await describe(docId, signal)
  if (!told) throw new UpstreamFailure(`upstream: the content server does not have the document ${docId}`)
  const { components } = await measure(told, signal)
  const sizeBytes = components.reduce((sum, component) => sum + component.sizeBytes, 0)
  if (sizeBytes > 0 && !(await delivers(docId, signal))) throw new UpstreamFailure(`upstream: the document ${docId} has no bytes`)
  const parts = components.length === 1 ? '1 component' : `${components.length} components`
  return `The document ${docId} can be read: ${parts}, ${sizeBytes} bytes.`
}

/**
 * Asks the upstream of a repository for the repository there, for a document that does not exist, and for one that does: its description and
 * its bytes, as the repository will read them. Without a docId, it is one that a list of the repository names.
 */
export const createTestUpstream =
  (upstreams: Upstreams, firstListed: DocumentMigrations['firstListed']) =>
  /** @throws AppError 409 if the repository has no upstream */
  async (
    workspaceId: string,
    { id, codePage, upstream: settings, upstreamSecretsSealed }: SealedUpstream & { id: string; codePage: CodePage },
    wantedDocId: string | undefined,
    signal: AbortSignal,
  ): Promise<{ status: 'success' | 'failed'; message: string }> => {
    const upstream = storedUpstream(settings)
    if (!upstream) throw new AppError('conflict', 'The repository has no upstream.')
    try {
      const asked = await upstreams.of({ id, codePage, workspace: { id: workspaceId }, upstream, upstreamSecretsSealed })
      // Its 404 is believed only if the content server serves the repository.
      await asked.describe(`TEST-${newId()}`, signal)
      const outcome = await asked.client.serverInfo({ signal })
      const version = outcome.ok ? (outcome.value.server?.['serverVendorId'] ?? '') : ''
      const how = upstream.certificate === null ? 'unsigned' : 'signed'
      const serves = `The content server${version && ` (${version})`} serves the repository ${upstream.cont_rep} and answers ${how} requests.`
      const docId = wantedDocId ?? (await firstListed(id))
      if (docId === undefined) {
        return {
          status: 'success',
          message: `${serves} No document was read: test with the doc_id of one that it has, to see if it can be.`,
        }
      }
      return { status: 'success', message: `${serves} ${await readOne(asked, docId, signal)}` }
    } catch (thrown) {
      if (!(thrown instanceof UpstreamFailure)) throw thrown
      return { status: 'failed', message: thrown.message }
    }
  }
