import { searchContent } from '../../content/search.ts'
import { plainText, type Answer } from '../answer.ts'
import { findComponent, findDocument } from '../archived.ts'
import { ClientGone } from '../body.ts'
import { decodeBytes } from '../bytes.ts'
import type { CommandHandler } from '../call.ts'
import { Refusal } from '../refusal.ts'
import { patternMaxBytes, searchRangeOf } from '../search-range.ts'
import { findStored } from '../stored.ts'

/** Where in a component the bytes of a pattern stand: how many hits, then the offset of each. */
export const search: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, request } = call
  const pattern = decodeBytes(command.getRaw('pattern'))
  if (pattern.length === 0 || pattern.length > patternMaxBytes) {
    throw new Refusal('invalid_parameter', `pattern must be 1 to ${patternMaxBytes} bytes`)
  }
  const component = findComponent(await findDocument(call, deps), command.get('compId'))
  const { content, store } = findStored(component, deps.contents)
  const range = searchRangeOf(command, deps.limits.RELAY_SEARCH_MAX_RESULTS)
  const goOn = () => {
    if (request.isGone()) throw new ClientGone('the client left during a search')
  }
  const offsets = await searchContent(store, content, { pattern, ...range }, { goOn })
  return { status: 200, headers: { 'Content-Type': plainText }, body: [offsets.length, ...offsets].map((number) => `${number};`).join('') }
}
