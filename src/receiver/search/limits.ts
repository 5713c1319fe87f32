import { ClientGone } from '../body.ts'
import type { CommandContext, CommandDeps } from '../command-context.ts'
import { Refusal } from '../refusal.ts'

/** Maximum number of hits in one answer, which then has at most 200 KB. */
export const maxResults = 10_000

/** Maximum number of searches that one process runs at a time, in all and of one workspace. Each one holds 2 MiB. */
export const concurrentSearches = { total: 16, perWorkspace: 8 }

/**
 * Runs a search until it ends, takes too long, or its client is gone. The signal then ends what the search has on a thread. Its time includes
 * the waiting for a store or a thread, because the client waits for all of it; the refusal is no verdict on the document.
 * @throws `Refusal` if too many searches are running, or if this one takes too long, and `ClientGone`
 */
export const searchWithinLimits = async <Result>(
  { repository, exchange }: CommandContext,
  { searches, limits }: Pick<CommandDeps, 'searches' | 'limits'>,
  search: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const end = searches.begin(repository.workspace.id)
  if (!end) throw new Refusal('unavailable', 'too many searches are running, try again later')
  const stop = new AbortController()
  const stopped = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason as Error))
  })
  const timeoutMs = limits.RELAY_SEARCH_TIMEOUT_MS
  const timer = setTimeout(
    () => stop.abort(new Refusal('unavailable', `the search took longer than ${timeoutMs} ms; search a smaller range, or try again later`)),
    timeoutMs,
  )
  exchange.request.onAbandoned(() => stop.abort(new ClientGone('the client closed the connection during a search')))
  try {
    // A search that waits for its store, or for its turn on a thread, counts until it has noticed that it is to stop.
    return await Promise.race([stopped, search(stop.signal).finally(end)])
  } finally {
    clearTimeout(timer)
  }
}
