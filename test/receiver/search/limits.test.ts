import { Readable } from 'node:stream'
import { createConcurrencyLimit } from '../../../src/base/concurrency-limit.ts'
import type { ContentStore } from '../../../src/content/store.ts'
import { createThreads } from '../../../src/http/threads.ts'
import { ClientGone } from '../../../src/receiver/body.ts'
import type { CommandContext, CommandDeps } from '../../../src/receiver/command-context.ts'
import { Refusal } from '../../../src/receiver/refusal.ts'
import { searchWithinLimits } from '../../../src/receiver/search/limits.ts'
import { searchContent, searchSectionTask } from '../../../src/receiver/search/search.ts'
import { disposable } from '../../support/disposable.ts'
import { share } from '../../support/share.ts'

const threads = share(disposable(createThreads(1), (each) => each.close()))

const sectionBytes = 64 * 1024 * 1024
const content = { id: 'x', sizeBytes: sectionBytes }
const store = { read: () => Readable.from([Buffer.alloc(sectionBytes, 'a')]) } as unknown as ContentStore
const searches = createConcurrencyLimit(() => ({ total: 2, perWorkspace: 2 }))

/** Searches 64 MiB as a whole on the only thread. Of the hostile pattern, it would take more than a minute. */
const search = (pattern: string, timeoutMs: number, onAbandoned: (listener: () => void) => void = () => {}) => {
  const context = { repository: { workspace: { id: 'W' } }, exchange: { request: { onAbandoned } } } as unknown as CommandContext
  const limits = { RELAY_SEARCH_TIMEOUT_MS: timeoutMs } as CommandDeps['limits']
  const query = { pattern: Buffer.from(pattern), from: 0, to: sectionBytes, isBackward: false, isCaseSensitive: true, maxResults: 1 }
  return searchWithinLimits(context, { searches, limits }, (signal) =>
    searchContent(store, content, query, {
      searchSection: (section) => threads.run(searchSectionTask, 'W', section, signal),
      signal,
      sectionBytes,
    }),
  )
}
const hostile = `${'a'.repeat(512)}b${'a'.repeat(511)}`
const longMs = 3_600_000

describe('a search with a hostile pattern', () => {
  test('is refused when it has taken too long, and its thread serves the next search', async () => {
    await expect(search(hostile, 200)).rejects.toThrow(
      new Refusal('unavailable', 'the search took longer than 200 ms; search a smaller range, or try again later'),
    )
    expect(await search('aa', longMs)).toEqual([0])
  })

  test('ends when its client is gone, and its thread serves the next search', async () => {
    await expect(search(hostile, longMs, (listener) => setTimeout(listener, 200))).rejects.toThrow(ClientGone)
    expect(await search('aa', longMs)).toEqual([0])
  })
})
