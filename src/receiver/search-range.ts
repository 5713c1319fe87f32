import type { Command } from './command.ts'

// a longer one is no word that anybody looks for, and would make a window of bytes expensive
export const patternMaxBytes = 1_024

/** Where to look and how, as search and attrSearch say it: from behind where fromOffset is greater than toOffset. */
export const searchRangeOf = (command: Command, maxResults: number) => {
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
