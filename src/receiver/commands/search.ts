import { decodeBytes } from '../../content-server/encoding.ts'
import { plainText, type Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import type { Command } from '../command.ts'
import { findComponent, findContent, findDocument } from '../read-document.ts'
import { Refusal } from '../refusal.ts'
import { maxResults, searchWithinLimits } from '../search/limits.ts'
import { searchContent, searchSectionTask } from '../search/search.ts'

// Long enough for every text that people search for.
export const patternMaxBytes = 1_024

/** Searches a component for the bytes of a pattern. The answer is the number of matches, then the offset of each. */
export const search: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, repository } = context
  const pattern = decodeBytes(command.getRaw('pattern'))
  if (pattern.length === 0 || pattern.length > patternMaxBytes) {
    throw new Refusal('invalid_parameter', `pattern must be 1 to ${patternMaxBytes} bytes`)
  }
  const component = findComponent(await findDocument(context, deps), command.get('compId'))
  const { content, store } = findContent(component, deps.contents)
  const range = searchRangeOf(command)
  const offsets = await searchWithinLimits(context, deps, (signal) =>
    searchContent(
      store,
      content,
      { pattern, ...range },
      { searchSection: (section) => deps.runOnThread(searchSectionTask, repository.workspace.id, section, signal), signal },
    ),
  )
  return { status: 200, headers: { 'Content-Type': plainText }, body: [offsets.length, ...offsets].map((number) => `${number};`).join('') }
}

/** Reads the range and the options of search and attrSearch. The search runs backward if fromOffset is greater than toOffset. */
export const searchRangeOf = (command: Command) => {
  const fromOffset = Number(command.find('fromOffset') ?? 0)
  const toOffset = Number(command.find('toOffset') ?? -1)
  const isBackward = toOffset >= 0 && fromOffset > toOffset
  return {
    from: isBackward ? toOffset : fromOffset,
    to: isBackward ? fromOffset : toOffset < 0 ? Number.MAX_SAFE_INTEGER : toOffset,
    isBackward,
    isCaseSensitive: command.find('caseSensitive') === 'y',
    maxResults: Math.min(Number(command.find('numResults') ?? 1), maxResults),
  }
}
