import { createDocuments } from '../archive/document-list.ts'
import { AppError } from '../base/errors.ts'
import type { Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import type { RunOnThread } from '../http/threads.ts'
import { readEInvoiceTask } from './e-invoice.ts'

export interface ContentDeps {
  db: Database
  contents: Stores
  runOnThread: RunOnThread
  /** How long a document may be read, in milliseconds. */
  readMaxMs?: number
}

// A PDF is read as a whole. Scanned invoices of hundreds of pages have less.
const contentMaxBytes = 30_000_000
// Reading a PDF of this size takes two seconds on a slow machine.
const defaultReadMaxMs = 15_000
// A small stream of a PDF may expand to gigabytes, outside of the heap that a thread is limited to.
const memoryMaxBytes = 700_000_000
const watchMs = 50

/** Calls `end` once the process has grown by more than a limit. @returns a function that stops watching */
const watchMemory = (end: () => void): (() => void) => {
  const atFirst = process.memoryUsage.rss()
  const timer = setInterval(() => process.memoryUsage.rss() - atFirst > memoryMaxBytes && end(), watchMs)
  return () => clearInterval(timer)
}

/**
 * Creates the function that reads a document as an electronic invoice. The result is JSON, as the answer of a call is.
 * @throws `AppError` if the content is not kept
 */
export const createReadEInvoice =
  ({ db, contents, runOnThread, readMaxMs = defaultReadMaxMs }: ContentDeps) =>
  async (workspaceId: string, documentId: string, aborted: AbortSignal): Promise<string> => {
    const { content } = await createDocuments(db).findContent(workspaceId, documentId)
    if (content.sizeBytes > contentMaxBytes) {
      return JSON.stringify({ problem: `the document has more than ${contentMaxBytes} bytes` })
    }
    const store = contents[content.store]
    if (!store) throw new AppError('unavailable', 'this process has no access to the content store')
    const chunks: Uint8Array[] = []
    for await (const chunk of store.read(content)) {
      aborted.throwIfAborted()
      chunks.push(chunk as Uint8Array)
    }
    const data = new Uint8Array(Buffer.concat(chunks))
    const greedy = new AbortController()
    const unwatch = watchMemory(() => greedy.abort())
    const timeout = AbortSignal.timeout(readMaxMs)
    try {
      const signal = AbortSignal.any([aborted, greedy.signal, timeout])
      return JSON.stringify(await runOnThread(readEInvoiceTask, workspaceId, { data }, signal))
    } catch {
      aborted.throwIfAborted()
      // No later try would end otherwise.
      return JSON.stringify({
        problem: timeout.aborted ? 'the document takes too long to read' : 'the document takes too much memory to read',
      })
    } finally {
      unwatch()
    }
  }
