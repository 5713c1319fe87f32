import type { Config } from '../config/config.ts'
import type { CallDeps } from '../enrichment/calls.ts'
import { createReaderProcess } from '../http/reader-process.ts'
import { createThreads } from '../http/threads.ts'

/** Opens the threads and the process in which what enrichments find is read. Each kind of work has its own. */
export const openEnrichmentTasks = (
  config: Pick<Config, 'RELAY_THREADS'>,
  onClose: (close: () => Promise<unknown>) => void,
): Pick<CallDeps, 'runOnThread' | 'runInProcess'> => {
  const threads = createThreads(config)
  onClose(threads.close)
  const reader = createReaderProcess()
  onClose(reader.close)
  return { runOnThread: threads.run, runInProcess: reader.run }
}
