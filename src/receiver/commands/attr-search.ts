import { decodeBytes } from '../../content-server/encoding.ts'
import { plainText, type Answer } from '../answer.ts'
import type { CommandContext, CommandHandler } from '../command-context.ts'
import { findComponent, findContent, findDocument } from '../read-document.ts'
import { Refusal } from '../refusal.ts'
import { searchWithinLimits } from '../search/limits.ts'
import { parseConditions, type Condition } from '../search/print-list.ts'
import { searchIndex, searchIndexSectionTask } from '../search/search-index.ts'
import { patternMaxBytes, searchRangeOf } from './search.ts'

/** Searches the index of a print list for values. The answer is the number of matches, then the offset and length of each in `data`. */
export const attrSearch: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, repository } = context
  const conditions = conditionsOf(context)
  const search = { conditions, ...searchRangeOf(command) }
  const { content, store } = findContent(findComponent(await findDocument(context, deps), 'descr'), deps.contents)
  const ranges = await searchWithinLimits(context, deps, (signal) =>
    searchIndex(store, content, search, {
      searchIndexSection: (section) => deps.runOnThread(searchIndexSectionTask, repository.workspace.id, section, signal),
      signal,
    }),
  )
  if (!ranges) throw new Refusal('invalid_parameter', 'pattern contains a field that the index does not define')
  return {
    status: 200,
    headers: { 'Content-Type': plainText },
    body: [ranges.length, ...ranges.flat()].map((number) => `${number};`).join(''),
  }
}

// More than the fields of any index known. Each condition is compared with each line.
const maxConditions = 16

// Clients and proxies may encode the # between two conditions. A # followed by another condition is a separator, not part of a value.
const separator = /#|%23(?=\d{1,3}(?:\+|%2b)\d{1,3}(?:\+|%2b))/i

const conditionsOf = ({ command }: CommandContext): Condition[] => {
  const raw = command.getRaw('pattern')
  const texts = raw.split(separator)
  if (texts.length > maxConditions) throw new Refusal('invalid_parameter', `pattern may contain at most ${maxConditions} conditions`)
  const conditions = parseConditions(texts.map((text) => decodeBytes(text).toString('latin1')))
  if (!conditions || decodeBytes(raw).length > patternMaxBytes) {
    throw new Refusal(
      'invalid_parameter',
      `pattern must be offset+length+value, several of them joined by #, at most ${patternMaxBytes} bytes`,
    )
  }
  return conditions
}
