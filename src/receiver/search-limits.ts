import { ClientGone } from './body.ts'
import type { CommandContext, CommandDeps } from './command-context.ts'
import { Refusal } from './refusal.ts'

/**
 * Runs a search, which must call `beforeWindow` before it reads each window.
 * @throws `Refusal` if too many searches are running, or if this one takes too long, and `ClientGone` if nobody waits for its result
 */
export const searchWithinLimits = async <Result>(
  { repository, exchange }: CommandContext,
  { searches, limits }: Pick<CommandDeps, 'searches' | 'limits'>,
  search: (beforeWindow: () => void) => Promise<Result>,
): Promise<Result> => {
  const end = searches.begin(repository.workspace.id)
  if (!end) throw new Refusal('unavailable', 'too many searches are running, try again later')
  const deadline = performance.now() + limits.RELAY_SEARCH_TIMEOUT_MS
  const beforeWindow = () => {
    if (exchange.request.isAbandoned()) throw new ClientGone('the client closed the connection during a search')
    if (performance.now() < deadline) return
    throw new Refusal('unavailable', `the search took longer than ${limits.RELAY_SEARCH_TIMEOUT_MS} ms; search a smaller range`)
  }
  try {
    return await search(beforeWindow)
  } finally {
    end()
  }
}
