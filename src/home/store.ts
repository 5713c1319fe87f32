import { Readable } from 'node:stream'
import type { Metric } from 'prom-client'
import { messageOf } from '../base/errors.ts'
import { logFailure } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import { counterOf } from '../base/metrics.ts'
import { DeliveryError } from '../connectors/connector.ts'
import { clampRange, type Content, type ContentStore } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import { askedSpan, blockOf, spanOf, verifiedBlocks } from './blocks.ts'
import { findHomeCopy, noteFound, type HomeCopy } from './copies.ts'
import { HomeFailure } from './failure.ts'
import { CopyMissing, readCopy, type ReadCopyDeps } from './read-copy.ts'
import { createTurns } from './turns.ts'

// Each reader holds a block of 4 MiB, and a connection to the home.
const concurrentReads = { total: 32, perWorkspace: 16, waitMs: 30_000 }

export interface HomeStoreDeps extends ReadCopyDeps {
  db: Database
  log: Log
  turns?: Partial<typeof concurrentReads>
}

const metric = () =>
  counterOf(
    'relay_home_reads_total',
    'Reads of contents at their home, by outcome: `read`, `altered` if the home has other bytes or none, or `failed` if the home was away or too many read',
    ['outcome'],
    ['read', 'altered', 'failed'].map((outcome) => ({ outcome })),
  )

/** What a read has found wrong with the bytes at the home. */
class Altered extends Error {}

/**
 * The contents that are at the home of their repository. Nothing is written here: `move.ts` makes such contents of others.
 * What is read is verified by block before it leaves. A read fails with `HomeFailure`.
 */
export const createHomeStore = (deps: HomeStoreDeps): ContentStore & { metrics: Metric[] } => {
  const { db, log } = deps
  const turns = createTurns({ ...concurrentReads, ...deps.turns })
  const reads = metric()

  const note = (contentId: string, error: string | undefined) =>
    noteFound(db, contentId, error).catch((thrown: unknown) => logFailure(log, thrown, 'what a home has was not noted'))

  /** @throws `Altered`, `CopyMissing`, or why the home did not answer */
  async function* verified(copy: HomeCopy, span: { start: number; end: number }, signal: AbortSignal) {
    const last = blockOf(span.end)
    let [isAgain, wasLost] = [false, false]
    for (let block = blockOf(span.start); block <= last;) {
      const asked = { first: block, last }
      const blocks = verifiedBlocks(readCopy(deps, copy, askedSpan(asked, copy.sizeBytes), signal), copy, asked)
      for (;;) {
        const { done, value } = await blocks.next().catch((thrown: unknown): IteratorReturnResult<string> => {
          if (wasLost || !(thrown instanceof DeliveryError) || thrown.code !== 'connection_lost') throw thrown
          wasLost = true
          return { done: true, value: '' }
        })
        if (!done) {
          const { start } = spanOf(block, copy.sizeBytes)
          yield value.subarray(Math.max(0, span.start - start), span.end + 1 - start)
          block += 1
          isAgain = false
          continue
        }
        if (value === undefined) return
        // A connection that was lost is opened once more.
        if (value === '') break
        // The document may have been delivered again, or the connection have broken without a sign.
        if (isAgain) throw new Altered(value)
        isAgain = true
        break
      }
    }
  }

  async function* read(
    content: Content,
    span: { start: number; end: number },
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void, undefined> {
    const copy = await findHomeCopy(db, content.id)
    if (!copy) throw new HomeFailure('gone', 'no document has this content any more')
    const name = copy.destination.name
    const leave = await turns.take(copy.workspaceId, signal)
    signal.throwIfAborted()
    if (!leave) {
      reads.inc({ outcome: 'failed' })
      throw new HomeFailure('busy', `too many contents are read from ${name}, try again later`)
    }
    try {
      yield* verified(copy, span, signal)
      reads.inc({ outcome: 'read' })
      if (copy.isAltered && span.start === 0 && span.end === copy.sizeBytes - 1) await note(copy.contentId, undefined)
    } catch (thrown) {
      signal.throwIfAborted()
      if (thrown instanceof Altered || thrown instanceof CopyMissing) {
        reads.inc({ outcome: 'altered' })
        const { documentId, docId, compId, location } = copy
        const found = `${location} at ${name} is not what was delivered: ${thrown.message}`
        await note(copy.contentId, found)
        log.error(
          { event: 'content.altered', document_id: documentId, doc_id: docId, comp_id: compId, reason: found },
          'a content was altered at its home',
        )
        throw new HomeFailure('altered', found, { cause: thrown })
      }
      reads.inc({ outcome: 'failed' })
      if (!(thrown instanceof DeliveryError)) throw thrown
      throw new HomeFailure('away', `${name} could not be read: ${messageOf(thrown)}`, { cause: thrown })
    } finally {
      leave()
    }
  }

  return {
    kind: 'home',
    metrics: [reads],
    write: () => Promise.reject(new Error('nothing is written to the store of homes')),
    read: (content, range) => {
      const span = clampRange(content, range)
      if (!span) return Readable.from([])
      const left = new AbortController()
      const chunks = read(content, span, left.signal)
      const close = () => {
        left.abort()
        chunks.return(undefined).catch(() => {})
      }
      // Not Readable.from: it closes only after the step under way, which may wait for the home.
      return new Readable({
        read() {
          chunks.next().then(
            ({ done, value }) => this.push(done ? null : value),
            (thrown: Error) => this.destroy(thrown),
          )
        },
        destroy: (error, done) => {
          close()
          done(error)
        },
      })
    },
    placeOf: async (contentId) => (await findHomeCopy(db, contentId))?.destination.id,
    // What is there is told by a read only.
    sizesOf: async (contentIds) => {
      const rows: { id: string; bytes: number }[] = await db('home_contents')
        .join('documents', 'documents.id', 'home_contents.document_id')
        .select('home_contents.content_id as id', 'documents.size_bytes as bytes')
        .whereIn('home_contents.content_id', contentIds)
      return new Map(rows.map(({ id, bytes }) => [id, bytes]))
    },
    // The copy at the destination is that of the delivery, which the relay never removes.
    remove: async (contentIds) => {
      await db('contents').whereIn('id', contentIds).where({ store: 'home' }).whereNull('owned_at').delete()
      return []
    },
  }
}
