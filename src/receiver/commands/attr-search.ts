import { readLines } from '../../content/lines.ts'
import { createIndexSearch, lineMaxCharacters, parseConditions, type Condition, type Piece } from '../../domain/print-list.ts'
import { plainText, type Answer } from '../answer.ts'
import { findComponent, findDocument } from '../archived.ts'
import { ClientGone } from '../body.ts'
import { decodeBytes } from '../bytes.ts'
import type { Call, CommandHandler } from '../call.ts'
import { Refusal } from '../refusal.ts'
import { patternMaxBytes, searchRangeOf } from '../search-range.ts'
import { findStored } from '../stored.ts'

/** Which pieces of a print list have these values in its index: how many, then offset and length of each. */
export const attrSearch: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, request } = call
  const conditions = conditionsOf(call)
  const { from, to, isBackward, isCaseSensitive, maxResults } = searchRangeOf(command, deps.limits.RELAY_SEARCH_MAX_RESULTS)
  const { content, store } = findStored(findComponent(await findDocument(call, deps), 'descr'), deps.contents)
  const index = createIndexSearch(conditions, { isCaseSensitive })

  const found: Piece[] = []
  for await (const line of readLines(store.read(content), lineMaxCharacters)) {
    if (request.isGone()) throw new ClientGone('the client left during a search')
    const piece = index.read(line)
    if (!piece || piece.offset < from || piece.offset > to) continue
    // the whole index is read in any case: only its end tells whether the fields are defined
    if (found.length < maxResults || isBackward) found.push(piece)
    if (found.length > maxResults) found.shift()
  }
  if (!index.isDefined()) throw new Refusal('invalid_parameter', 'pattern names a field that the index does not define')

  const pieces = isBackward ? found.toReversed() : found
  const numbers = [pieces.length, ...pieces.flatMap(({ offset, length }) => [offset, length])]
  return { status: 200, headers: { 'Content-Type': plainText }, body: numbers.map((number) => `${number};`).join('') }
}

// clients and proxies may encode the # between two conditions: one that another condition follows is no part of a value
const separator = /#|%23(?=\d{1,3}(?:\+|%2b)\d{1,3}(?:\+|%2b))/i

const conditionsOf = ({ command }: Call): Condition[] => {
  const raw = command.getRaw('pattern')
  const conditions = parseConditions(raw.split(separator).map((text) => decodeBytes(text).toString('latin1')))
  if (!conditions || decodeBytes(raw).length > patternMaxBytes) {
    throw new Refusal('invalid_parameter', `pattern must be offset+length+value, several joined by #, of ${patternMaxBytes} bytes at most`)
  }
  return conditions
}
