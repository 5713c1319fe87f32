import { createDocuments } from '../archive/document-list.ts'
import { AppError, messageOf } from '../base/errors.ts'
import { lazyThreadTask } from '../base/thread-task.ts'
import type { Content, ContentStore, Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import { NotBegunError, TaskLimitError, type RunTask } from '../http/task-limits.ts'

export interface ContentDeps {
  db: Database
  contents: Stores
  /** Runs a task in the process in which documents are read. */
  runInProcess: RunTask
  /** How long a document may be read, in milliseconds. */
  readMaxMs?: number
  /** How long it may wait for its turn, in milliseconds. */
  waitMaxMs?: number
}

// A PDF is read as a whole. Scanned invoices of hundreds of pages have less.
const contentMaxBytes = 30_000_000
// Reading a PDF of this size takes two seconds on a slow machine.
const defaultReadMaxMs = 15_000

// The library that reads PDF takes 10 MiB.
const readEInvoiceTask = lazyThreadTask(import.meta.url, './e-invoice', 'readEInvoice', () => import('./e-invoice.ts'))

export const tooLong = 'the document takes too long to read'

/** @throws `AppError` if the content cannot be read now */
const readContent = async (store: ContentStore, content: Content, ended: AbortSignal): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of store.read(content)) {
      ended.throwIfAborted()
      chunks.push(chunk as Uint8Array)
    }
  } catch (thrown) {
    ended.throwIfAborted()
    throw new AppError('unavailable', `the stored document could not be read: ${messageOf(thrown)}`, { cause: thrown })
  }
  return new Uint8Array(Buffer.concat(chunks))
}

/**
 * Creates the function that reads a document as an electronic invoice. The result is JSON, as the answer of a call is. A busy machine may
 * also make it take too long, so that is a verdict on the document only if `isFinal`; what needs too much memory does so at every try.
 * @throws `AppError` if the content is not kept, or was not read this time, and `NotBegunError` if the process did not become free
 */
export const createReadEInvoice =
  (deps: ContentDeps) =>
  async (workspaceId: string, documentId: string, aborted: AbortSignal, isFinal = false): Promise<string> => {
    const { runInProcess, readMaxMs: workMaxMs = defaultReadMaxMs, waitMaxMs } = deps
    const { content } = await createDocuments(deps.db).findContent(workspaceId, documentId)
    if (content.sizeBytes > contentMaxBytes) return JSON.stringify({ problem: `the document has more than ${contentMaxBytes} bytes` })
    const store = deps.contents[content.store]
    if (!store) throw new AppError('unavailable', 'this process has no access to the content store')
    const limits = { workMaxMs, ...(waitMaxMs !== undefined && { waitMaxMs }) }
    // In its turn: what waits is not in memory.
    const readInput = async (ended: AbortSignal) => ({ data: await readContent(store, content, ended) })
    try {
      return JSON.stringify(await runInProcess(readEInvoiceTask, workspaceId, readInput, aborted, limits))
    } catch (thrown) {
      aborted.throwIfAborted()
      if (thrown instanceof NotBegunError || thrown instanceof AppError) throw thrown
      if (!(thrown instanceof TaskLimitError)) {
        throw new AppError('unavailable', `the document was not read: ${messageOf(thrown)}`, { cause: thrown })
      }
      if (thrown.limit === 'memory') return JSON.stringify({ problem: 'the document takes too much memory to read' })
      if (isFinal) return JSON.stringify({ problem: tooLong })
      throw new AppError('unavailable', tooLong, { cause: thrown })
    }
  }
