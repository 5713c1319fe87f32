import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { ArchiveComponent, ArchiveDocument } from '../archive/documents.ts'
import { quotaOf } from '../archive/quota.ts'
import type { MeasuredDocument } from '../content-server/answers.ts'
import { timesOf, type Fetched, type Reading, type Wanted } from '../migration/fetch.ts'
import type { UpstreamRepository } from '../migration/upstreams.ts'
import type { CommandContext, CommandDeps } from './command-context.ts'
import { Refusal } from './refusal.ts'

// Documents that the relay does not have, and that the upstream of their repository may have.

type Deps = Pick<CommandDeps, 'archiveDocuments' | 'readThrough' | 'receivingRepositories' | 'limits'>

/** A document as info describes it, wherever it is. */
export type DescribedDocument = Omit<ArchiveDocument, 'components'> & { components: DescribedComponent[] }
/** `content` is null if the bytes are no longer kept. */
export type DescribedComponent = Omit<ArchiveComponent, 'content'> & { content: object | null }

export const documentNotFound = () => new Refusal('document_not_found', 'the document does not exist')

const hasUpstream = <R extends { upstream: UpstreamRepository['upstream'] | null }>(repository: R): repository is R & UpstreamRepository =>
  repository.upstream !== null

const defaultContentType = 'application/octet-stream'

/** Returns a document of the upstream as the relay would describe it after it has been fetched. */
const described = (facts: MeasuredDocument, now: Date): DescribedDocument => {
  const times = timesOf(facts, now)
  return {
    docId: facts.docId,
    ...times,
    components: facts.components.map(({ compId, contentType, sizeBytes, status, createdAt, modifiedAt }) => ({
      compId,
      contentType: contentType ?? defaultContentType,
      sizeBytes,
      ...timesOf({ createdAt: createdAt ?? times.createdAt, modifiedAt: modifiedAt ?? times.modifiedAt }, now),
      content: status === 'offline' ? null : facts,
    })),
  }
}

/** Describes a document without fetching it. @throws `Refusal` if it does not exist */
export const describeDocument = async (context: CommandContext, deps: Deps): Promise<DescribedDocument> => {
  const { repository, command, exchange } = context
  const found = await deps.archiveDocuments.find(repository.id, command.get('docId'))
  if (found) return found
  const facts = hasUpstream(repository) ? await deps.readThrough.describe(repository, command.get('docId')) : undefined
  if (!facts) throw documentNotFound()
  return described(facts, exchange.request.receivedAt)
}

const wantedOf = ({ repository, exchange }: CommandContext, deps: Deps, docId: string): Wanted | undefined => {
  if (!hasUpstream(repository)) return undefined
  const { id: requestId, receivedAt } = exchange.request
  const findKeeper: Wanted['findKeeper'] = async () => {
    const { userSlug, workspaceSlug } = repository.workspace
    // The look-up for a read leaves out what is needed to keep a document.
    const found = await deps.receivingRepositories.find(userSlug, workspaceSlug, repository.repoId)
    if (!found) return undefined
    const { maxBytes, storedBytes } = quotaOf(found, deps.limits)
    return { repository: found, maxBytes: Math.min(deps.limits.RELAY_DOCUMENT_MAX_BYTES, maxBytes - storedBytes) }
  }
  return { repository, docId, requestId, receivedAt, findKeeper }
}

/** Finds a document, or begins to fetch it. @throws `Refusal` if it does not exist */
export const findOrFetch = async (
  context: CommandContext,
  deps: Deps,
  reading: Reading,
): Promise<{ document: ArchiveDocument } | { document: DescribedDocument; fetched: Fetched }> => {
  const { repository, command, exchange } = context
  const docId = command.get('docId')
  for (;;) {
    const document = await deps.archiveDocuments.find(repository.id, docId)
    if (document) return { document }
    const wanted = wantedOf(context, deps, docId)
    const fetched = wanted && (await deps.readThrough.open(wanted, reading))
    if (!fetched) throw documentNotFound()
    if (fetched !== 'here') return { document: described(fetched.facts, exchange.request.receivedAt), fetched }
  }
}

/** Fetches a document and waits until it is kept. @returns false if the upstream does not have it either */
export const fetchWhole = async (context: CommandContext, deps: Deps): Promise<boolean> => {
  const wanted = wantedOf(context, deps, context.command.get('docId'))
  const kept = wanted && (await deps.readThrough.keep(wanted))
  if (kept === 'not kept') {
    throw new Refusal('quota_exceeded', 'the document is still in the upstream, and the workspace may not store as many bytes')
  }
  return kept !== undefined
}

/** Returns true if the upstream has a document. The relay itself is not asked. */
export const existsUpstream = async ({ repository }: CommandContext, { readThrough }: Pick<Deps, 'readThrough'>, docId: string) =>
  hasUpstream(repository) && readThrough.exists(repository, docId)

const noBytes = { start: 0, end: -1 }

/**
 * Reads the bytes of a component that is being fetched. They end when all bytes of the component are verified, or the upstream has announced
 * the length that it has told before: until then, they may be those of an error page.
 * @param range both ends inclusive; undefined for one that is empty
 */
export const readFetched = (
  { copy, isAnnounced }: ReturnType<Fetched['bodyOf']>,
  { start, end }: { start: number; end: number } = noBytes,
): Readable => {
  async function* cut(): AsyncGenerator<Buffer, void, undefined> {
    let at = 0
    let last: Buffer | undefined
    for await (const chunk of copy as AsyncIterable<Buffer>) {
      const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end + 1 - at))
      at += chunk.length
      if (part.length > 0) {
        if (last) yield last
        last = part
      }
      if (at > end && isAnnounced()) break
    }
    if (last) yield last
  }
  // A generator that has not begun does not close the copy.
  return Readable.from(cut(), { objectMode: false }).once('close', () => copy.destroy())
}

/** Waits for the first bytes, or for the end if there are none, so that a failure results in an error status and not in a broken answer. */
export const withFirstBytes = async (body: Readable): Promise<Readable> => {
  await once(body, 'readable')
  return body
}
