import type { CallDeps } from '../enrichment/calls.ts'
import { createReaderProcess } from '../http/reader-process.ts'
import { createThreads } from '../http/threads.ts'

/** Opens the threads and the process in which what enrichments find is read. Each kind of work has its own. */
export const openEnrichmentTasks = (onClose: (close: () => Promise<unknown>) => void): Pick<CallDeps, 'runOnThread' | 'runInProcess'> => {
  const threads = createThreads()
  onClose(threads.close)
  const reader = createReaderProcess()
  onClose(reader.close)
  return { runOnThread: threads.run, runInProcess: reader.run }
}
