import { setTimeout as delay } from 'node:timers/promises'
import type { Metric } from 'prom-client'
import type { UpstreamDocuments } from '../archive/upstream-documents.ts'
import { logFailure } from '../base/failure-log.ts'
import { counterOf } from '../base/metrics.ts'
import { createTtlCache } from '../base/ttl-cache.ts'
import type { DocumentFacts, MeasuredDocument } from '../content-server/answers.ts'
import { UpstreamFailure } from './failure.ts'
import type { UpstreamFailures } from './failures.ts'
import { fetchDocument, type Fetched, type FetchDeps, type FetchEnd, type Reading, type Wanted } from './fetch.ts'
import { createUpstreams, type UpstreamRepository, type UpstreamsDeps } from './upstreams.ts'

export interface ReadThroughDeps extends UpstreamsDeps, Omit<FetchDeps, 'onKept' | 'upstreamDocuments'> {
  upstreamDocuments: UpstreamDocuments
  upstreamFailures: Pick<UpstreamFailures, 'record'>
  waits?: Partial<typeof waitLimits>
}

const waitLimits = {
  /** How long a reader waits for another one that fetches the same document, before it streams the document itself. */
  streamAfterMs: 5_000,
  /** How long a command waits that needs the document here. */
  keptMaxMs: 60_000,
  /** How long the end of the process waits for running fetches. */
  closeMs: 5_000,
}

// A failing upstream causes no more writes, however many requests it fails.
const recordEveryMs = 60_000
const maxRecorded = 1_000

type Settled = FetchEnd | 'missing'

const notFetched = (cause?: unknown) =>
  new UpstreamFailure('upstream: the document could not be fetched whole; the log says why', { about: 'relay', cause })

const failureOf = (fetched: Fetched | undefined): UpstreamFailure => {
  const failure = fetched?.failure()
  return failure instanceof UpstreamFailure ? failure : notFetched(failure)
}

type Key = Pick<UpstreamRepository, 'id'>

/** Fetches documents from the upstream of a repository when they are first asked for, each once at a time in this process, and keeps them. */
export const createReadThrough = (deps: ReadThroughDeps) => {
  const waits = { ...waitLimits, ...deps.waits }
  const upstreams = createUpstreams(deps)
  const running = new Map<string, Promise<Settled>>()
  const closing = new AbortController()
  const requests = counterOf(
    'relay_upstream_requests_total',
    'Questions for a document to the upstream of a repository, by outcome: `found`, `missing`, or `failed`: the source system was answered 503',
    ['outcome'],
    ['found', 'missing', 'failed'].map((outcome) => ({ outcome })),
  )
  const documents = counterOf(
    'relay_upstream_documents_total',
    'Documents that were fetched from the upstream of a repository, by outcome: `kept`, `exists` if it had been kept meanwhile, `not_kept` if a quota forbids it, or `failed`',
    ['outcome'],
    ['kept', 'failed'].map((outcome) => ({ outcome })),
  )

  const keyOf = ({ id }: Key, docId: string) => `${id}/${docId}`

  // Repositories whose failure was recorded a short time ago.
  const recorded = createTtlCache<true>({ maxEntries: maxRecorded })

  /** Records a failure of an upstream, without waiting. */
  const recordFailure = ({ id }: Key, thrown: unknown): void => {
    if (!(thrown instanceof UpstreamFailure) || thrown.about === 'relay' || recorded.get(id)) return
    recorded.set(id, true, Date.now() + recordEveryMs)
    deps.upstreamFailures.record(id, thrown.message).catch((problem: unknown) => {
      logFailure(deps.log, problem, 'a failure of an upstream was not recorded')
    })
  }

  /** Counts what an upstream answers, and records that it fails. @param deleted aborts a question whose answer is no longer needed */
  const counted = async <T>(repository: Key, question: () => Promise<T | undefined>, deleted?: AbortSignal): Promise<T | undefined> => {
    try {
      const answer = await question()
      requests.inc({ outcome: answer === undefined ? 'missing' : 'found' })
      return answer
    } catch (thrown) {
      if (!deleted?.aborted) {
        requests.inc({ outcome: 'failed' })
        recordFailure(repository, thrown)
      }
      throw thrown
    }
  }

  /** Waits for a running fetch of another request. @returns undefined if it takes longer */
  const waitFor = async (other: Promise<Settled>, timeoutMs: number): Promise<Settled | undefined> => {
    const waited = new AbortController()
    const timer = delay(timeoutMs, undefined, { ref: false, signal: waited.signal }).catch(() => undefined)
    const settled = await Promise.race([other, timer])
    waited.abort()
    return settled
  }

  const describe = async (repository: UpstreamRepository, docId: string): Promise<DocumentFacts | undefined> =>
    (await upstreams.of(repository)).describe(docId, closing.signal)

  const isDeleted = (repository: UpstreamRepository, docId: string): Promise<boolean> =>
    deps.upstreamDocuments.isDeleted(repository.id, docId)

  const begin = (wanted: Wanted, reading: Reading, deleted?: AbortSignal): Promise<Fetched | undefined> => {
    const signal = deleted ? AbortSignal.any([closing.signal, deleted]) : closing.signal
    const fetch = async () => {
      const asked = await upstreams.of(wanted.repository)
      const onKept: FetchDeps['onKept'] = ({ repository, docId, requestId }, kept) => {
        const sizeBytes = kept.reduce((sum, document) => sum + document.sizeBytes, 0)
        const facts = { repo_id: repository.repoId, doc_id: docId, request_id: requestId, components: kept.length, size_bytes: sizeBytes }
        deps.log.info({ event: 'document.fetched', ...facts }, 'document fetched from the upstream and kept')
      }
      return fetchDocument(wanted, reading, asked, { ...deps, onKept }, signal)
    }
    return counted(wanted.repository, fetch, deleted)
  }

  /** Asks the upstream and the database at the same time: few documents that are asked for were deleted. */
  const beginUnlessDeleted = async (wanted: Wanted, reading: Reading): Promise<Fetched | undefined> => {
    const deleted = new AbortController()
    const fetching = begin(wanted, reading, deleted.signal)
    fetching.catch(() => {})
    if (!(await isDeleted(wanted.repository, wanted.docId))) return fetching
    deleted.abort(new UpstreamFailure('upstream: the document was deleted here', { about: 'relay' }))
    return undefined
  }

  /** Fetches a document that no other request fetches, and tells those who wait. Registers before it waits for anything. */
  const lead = async (key: string, wanted: Wanted, reading: Reading): Promise<Fetched | undefined> => {
    const ended = Promise.withResolvers<Settled>()
    running.set(key, ended.promise)
    const end = (how: Settled) => {
      running.delete(key)
      ended.resolve(how)
    }
    try {
      const fetched = await beginUnlessDeleted(wanted, reading)
      if (!fetched) end('missing')
      else
        void fetched.settled.then((how) => {
          documents.inc({ outcome: how.replace(' ', '_') })
          if (how === 'failed') recordFailure(wanted.repository, fetched.failure())
          end(how)
        })
      return fetched
    } catch (thrown) {
      end('failed')
      throw thrown
    }
  }

  return {
    /** Returns true if a document was deleted or erased here: it is never fetched again. */
    isDeleted,

    /**
     * Asks for a document without fetching it. Of one whose sizes the upstream does not tell, or tells as 0, it asks for the bytes as well.
     * @param evenIfDeleted to ask also for a document that was deleted here, and perhaps created again
     * @returns undefined if it does not exist
     * @throws `UpstreamFailure`
     */
    describe: async (repository: UpstreamRepository, docId: string, evenIfDeleted = false): Promise<MeasuredDocument | undefined> => {
      if (!evenIfDeleted && (await isDeleted(repository, docId))) return undefined
      return counted(repository, async () => {
        const facts = await describe(repository, docId)
        return facts && (await upstreams.of(repository)).measure(facts, closing.signal)
      })
    },

    /** Returns true if the upstream has a document, and it was not deleted here. @throws `UpstreamFailure` */
    exists: async (repository: UpstreamRepository, docId: string): Promise<boolean> =>
      !(await isDeleted(repository, docId)) && (await counted(repository, () => describe(repository, docId))) !== undefined,

    /**
     * Opens a document that the relay does not have. A second reader waits for the first one for a while, and otherwise streams the document
     * without keeping it.
     * @returns `here` if the relay may have the document by now, undefined if it does not exist
     * @throws `UpstreamFailure`
     */
    open: async (wanted: Wanted, reading: Reading): Promise<Fetched | 'here' | undefined> => {
      const key = keyOf(wanted.repository, wanted.docId)
      const other = running.get(key)
      if (!other) return lead(key, wanted, reading)
      const settled = await waitFor(other, waits.streamAfterMs)
      if (settled === undefined) return begin({ ...wanted, findKeeper: async () => undefined }, reading)
      if (settled === 'failed') throw notFetched()
      return settled === 'missing' ? undefined : 'here'
    },

    /**
     * Fetches a document that the relay does not have, and waits until it is kept.
     * @returns how it ended; `here` if another request has fetched it, or it has been received or changed here; undefined if the
     *   document does not exist
     * @throws `UpstreamFailure`, about the relay if the document could not be stored
     */
    keep: async (wanted: Wanted): Promise<'kept' | 'here' | 'not kept' | undefined> => {
      const key = keyOf(wanted.repository, wanted.docId)
      const other = running.get(key)
      const fetched = other ? undefined : await lead(key, wanted, { what: 'nothing' })
      const settled = other ? await waitFor(other, waits.keptMaxMs) : fetched ? await fetched.settled : 'missing'
      if (settled === undefined) throw new UpstreamFailure('upstream: the document is still being fetched', { about: 'relay' })
      if (settled === 'failed') throw failureOf(fetched)
      if (settled === 'missing') return undefined
      if (settled === 'not kept') return settled
      return other || settled === 'exists' ? 'here' : 'kept'
    },

    /**
     * Fetches a document to its end and keeps nothing: others that want to keep it do not wait for this.
     * @returns false if it does not exist
     * @throws `UpstreamFailure`
     */
    verify: async (wanted: Wanted): Promise<boolean> => {
      const fetched = await beginUnlessDeleted({ ...wanted, findKeeper: async () => undefined }, { what: 'nothing' })
      if (!fetched || (await fetched.settled) !== 'failed') return fetched !== undefined
      recordFailure(wanted.repository, fetched.failure())
      throw failureOf(fetched)
    },

    /** Returns true if the upstream has a document and delivers its first bytes. */
    delivers: async (repository: UpstreamRepository, docId: string): Promise<boolean> =>
      (await upstreams.of(repository)).delivers(docId, closing.signal),

    /** Waits for running fetches for a while, and ends the others. */
    close: async (): Promise<void> => {
      const ends = Promise.all(running.values())
      await Promise.race([ends, delay(waits.closeMs, undefined, { ref: false })])
      closing.abort(new UpstreamFailure('upstream: the relay is stopping', { about: 'relay' }))
      await ends
    },

    metrics: [requests, documents] as Metric[],
  }
}

export type ReadThrough = ReturnType<typeof createReadThrough>
