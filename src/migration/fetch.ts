import { Readable } from 'node:stream'
import type { InsertedDocument, ReceivedComponent } from '../archive/receive.ts'
import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import type { UpstreamDocuments } from '../archive/upstream-documents.ts'
import { reasonOf } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import { nameOf, type DocumentFacts, type MeasuredComponent, type MeasuredDocument } from '../content-server/answers.ts'
import type { ReceivedContent } from '../content-server/client.ts'
import { componentNamed } from '../content-server/component-name.ts'
import type { Outcome } from '../content-server/failure.ts'
import { agreedSize, isMeasured } from '../content-server/measure.ts'
import { formats } from '../content-server/parameters.ts'
import type { ContentStore } from '../content/store.ts'
import type { StartDocument } from '../db/starts.ts'
import { noMetadata, type BusinessMetadata } from '../domain/template.ts'
import { toUpstreamFailure, UpstreamFailure } from './failure.ts'
import { createTee, type Tee } from './tee.ts'
import type { UpstreamRepository, Asked } from './upstreams.ts'

/** A document that a request names, and that the relay does not have. */
export interface Wanted {
  repository: UpstreamRepository & Pick<ReceivingRepository, 'repoId'>
  docId: string
  requestId: string
  receivedAt: Date
  /** The business object of the document, if it is known. */
  metadata?: BusinessMetadata
  /** What the upstream has just told of the document: it is not asked again. */
  facts?: MeasuredDocument | undefined
  /** True to replace a document here that was fetched earlier, and that has changed upstream since. */
  replaces?: boolean
  /** Finds what is needed to keep the document, while the upstream is asked. @returns undefined if it must not be kept, and is only passed on */
  findKeeper(): Promise<Keeper | undefined>
}

interface Keeper {
  repository: ReceivingRepository
  /** Largest document that may be stored. A larger one is passed on and not kept. */
  maxBytes: number
}

/** A document that is being fetched. */
export interface Fetched {
  facts: MeasuredDocument
  /** Returns the bytes of a component that is read, while they arrive. What is not read is kept all the same. */
  bodyOf(compId: string): Pick<Tee, 'copy' | 'isAnnounced'>
  /** Settles when the document is kept, or is not. Never rejects. */
  settled: Promise<FetchEnd>
  /** Waits for the end. @returns the content as which a component is kept, undefined if it is not */
  contentOf(compId: string): Promise<{ id: string } | undefined>
  /** Returns why it has failed. */
  failure(): unknown
}

// A piece has at most 64 KiB. The client reads on while the content store begins, which takes longer than a small document.
const aheadPieces = 16

export type FetchEnd = 'kept' | 'exists' | 'not kept' | 'failed'

export interface FetchDeps {
  upstreamDocuments: Pick<UpstreamDocuments, 'keep' | 'replace'>
  writeTo: ContentStore
  launch(messages: StartDocument[]): void
  onKept(wanted: Wanted, documents: InsertedDocument[]): void
  log: Log
}

/** What the client reads while the document is fetched. */
export type Reading =
  /** One component, by default the document itself (`data`, `data1`). */
  { what: 'component'; compId: string | undefined } | { what: 'document' } | { what: 'nothing' }

/**
 * Fetches a document from the upstream and keeps it: all of its components, or nothing. Asks for the facts, unless they are known, and for the
 * first bytes at the same time. A component that is read comes first.
 * @param signal ends the fetch. A client that stops reading does not
 * @returns undefined if the upstream has no such document
 * @throws `UpstreamFailure`
 */
export const fetchDocument = async (
  wanted: Wanted,
  reading: Reading,
  asked: Asked,
  deps: FetchDeps,
  signal: AbortSignal,
): Promise<Fetched | undefined> => {
  const { client } = asked
  const first = reading.what === 'component' ? reading.compId : undefined
  const begun = client.get(wanted.docId, { ...(first !== undefined && { compId: first }), signal })
  const keeperFound = wanted.findKeeper()
  // They may fail before anybody awaits them.
  begun.catch(() => {})
  keeperFound.catch(() => {})
  const stopBegun = () => void begun.then((outcome) => outcome.ok && outcome.value.body.destroy()).catch(() => {})
  const describe = async (): Promise<MeasuredDocument | undefined> => {
    try {
      const told = await asked.describe(wanted.docId, signal)
      return !told || isMeasured(told) ? told : await asked.measure(told, signal)
    } catch (thrown) {
      stopBegun()
      throw thrown
    }
  }
  const facts = wanted.facts ?? (await describe())
  if (!facts) {
    stopBegun()
    return undefined
  }
  const firstComponent = componentNamed(facts.components, first)
  // It was asked for in UTF-8, which is another name there.
  const isBegun = firstComponent !== undefined && (first === undefined || firstComponent.sentName === undefined)
  if (!isBegun) stopBegun()
  const tees = new Map(facts.components.map(({ compId }) => [compId, createTee()]))
  for (const component of facts.components) {
    const isRead = reading.what === 'document' || (reading.what === 'component' && component === firstComponent)
    if (!isRead) tees.get(component.compId)!.copy.destroy()
  }
  const open = (component: MeasuredComponent) =>
    component === firstComponent && isBegun ? begun : client.get(wanted.docId, { ...nameOf(component), signal })
  const isAtFront = (component: MeasuredComponent) => reading.what === 'component' && component === firstComponent
  const components = facts.components.toSorted((one, other) => Number(isAtFront(other)) - Number(isAtFront(one)))
  // An unread body would hold its connection.
  let failure: unknown
  const onFailure = (reason: unknown) => {
    failure = reason
  }
  const stored = new Map<string, ReceivedComponent>()
  const settled = keep(wanted, facts, { components, tees, open, stored, keeperFound }, { ...deps, onFailure }).finally(stopBegun)
  return {
    facts,
    bodyOf: (compId) => tees.get(compId)!,
    settled,
    contentOf: async (compId) => ((await settled) === 'kept' ? (stored.get(compId)?.content ?? undefined) : undefined),
    failure: () => failure,
  }
}

interface Sources {
  /** The components, in the order in which they are fetched. */
  components: MeasuredComponent[]
  tees: Map<string, Tee>
  /** What has been stored of them. */
  stored: Map<string, ReceivedComponent>
  open(component: MeasuredComponent): Promise<Outcome<ReceivedContent>>
  keeperFound: Promise<Keeper | undefined>
}

const keep = async (
  wanted: Wanted,
  facts: MeasuredDocument,
  { components, tees, open, stored, keeperFound }: Sources,
  deps: FetchDeps & { onFailure(reason: unknown): void },
): Promise<FetchEnd> => {
  const opened: Readable[] = []
  const discard = () => Promise.all(Array.from(stored.values(), async ({ content }) => content?.discard()))
  try {
    const found = await keeperFound
    const isKept = found !== undefined && components.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) <= found.maxBytes
    const keeper = isKept ? found.repository : undefined
    let before: Tee | undefined
    for (const component of components) {
      const tee = tees.get(component.compId)!
      // A document may have thousands of components: the client has read one before the next one that it reads takes memory.
      if (before && !tee.copy.destroyed && !(await before.read())) for (const { copy } of tees.values()) copy.destroy()
      before = tee
      const received = contentOf(component, await open(component))
      opened.push(received.body)
      const { body, contentLength, digest } = received
      const bytes = tee.pass(body as AsyncIterable<Buffer>, { ...component, contentLength, digest })
      if (!keeper) {
        for await (const _ of bytes) continue
        continue
      }
      const ahead = Readable.from(bytes, { highWaterMark: aheadPieces })
      // The content store sees the error while it reads. A store that has stopped reading does not.
      opened.push(ahead.on('error', () => {}))
      const content = await deps.writeTo.write(wanted.repository.workspace.id, ahead)
      stored.set(component.compId, receivedComponent(component, facts, wanted.receivedAt, content))
    }
    if (!keeper) return 'not kept'
    const { kept, documents, messages, atOnce } = await deps.upstreamDocuments[wanted.replaces ? 'replace' : 'keep']({
      ...receivedDocument(wanted, keeper, facts),
      components: facts.components.map(({ compId }) => stored.get(compId)!),
    })
    if (!kept) {
      await discard()
      return 'exists'
    }
    deps.onKept(wanted, documents)
    if (atOnce) deps.launch(messages)
    return 'kept'
  } catch (thrown) {
    const failure = toUpstreamFailure(thrown)
    deps.onFailure(failure)
    for (const tee of tees.values()) tee.fail(failure as Error)
    await discard()
    const { repository, docId, requestId } = wanted
    const logged = { repo_id: repository.repoId, doc_id: docId, request_id: requestId, reason: reasonOf(failure) }
    deps.log.warn(failure instanceof UpstreamFailure ? logged : { ...logged, err: thrown }, 'a document of the upstream could not be kept')
    return 'failed'
  } finally {
    for (const body of opened) body.destroy()
  }
}

/** @throws `UpstreamFailure` if the answer is a failure, or is not about the component as it was described */
const contentOf = (component: MeasuredComponent, outcome: Outcome<ReceivedContent>): ReceivedContent => {
  if (!outcome.ok) throw toUpstreamFailure(outcome.failure)
  try {
    agreedSize(component, outcome.value)
    return outcome.value
  } catch (thrown) {
    outcome.value.body.destroy()
    throw toUpstreamFailure(thrown)
  }
}

const receivedComponent = (
  { compId, contentType, sizeBytes, ...times }: MeasuredComponent,
  document: DocumentFacts,
  now: Date,
  content: ReceivedComponent['content'],
): ReceivedComponent => ({ compId, contentType, sizeBytes, content, times: timesOf({ ...document, ...definedOf(times) }, now) })

const definedOf = ({ createdAt, modifiedAt }: Pick<MeasuredComponent, 'createdAt' | 'modifiedAt'>) => ({
  ...(createdAt && { createdAt }),
  ...(modifiedAt && { modifiedAt }),
})

/** Returns the times that an upstream tells, or those that follow from what it tells. */
export const timesOf = ({ createdAt, modifiedAt }: Pick<DocumentFacts, 'createdAt' | 'modifiedAt'>, now: Date) => ({
  createdAt: createdAt ?? modifiedAt ?? now,
  modifiedAt: modifiedAt ?? createdAt ?? now,
})

const receivedDocument = (
  { repository, docId, requestId, receivedAt, metadata }: Wanted,
  keeper: ReceivingRepository,
  facts: DocumentFacts,
) => ({
  // Without routes, no delivery is planned.
  repository: repository.upstream.delivers ? keeper : { ...keeper, routes: [], enrichments: [] },
  docId,
  docProt: facts.docProt !== undefined && formats.docProt.accepts(facts.docProt) ? facts.docProt : null,
  metadata: { ...noMetadata, ...metadata },
  receivedAt,
  requestId,
  capture: undefined,
  upstream: timesOf(facts, receivedAt),
})
