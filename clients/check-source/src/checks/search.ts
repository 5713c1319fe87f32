import type { Check } from '../check.ts'
import { expectEqual, expectStatus, offered } from '../expect.ts'
import type { Answer } from '../http.ts'

const hitsOf = (answer: Answer): string => {
  expectStatus(answer, 200)
  return String(answer.body).trim()
}

/** Checks of the two searches. The note of the compound document is `a hit, a Hit, a miss`. */
export const searchChecks: readonly Check[] = [
  {
    id: 'search',
    title: 'search finds the offsets of a pattern',
    profile: 'wire',
    facts: ['search'],
    remedy: 'Answer search with the number of hits and their byte offsets from 0, each followed by a semicolon: 2;2;9; or 0;',
    run: async ({ ask, compound }) => {
      const docId = await compound()
      const search = (more: Record<string, string>) => ask('search', { docId, compId: 'note', more: { numResults: '5', ...more } })
      expectEqual('the answer to search', hitsOf(offered(await search({ pattern: 'hit' }))), '2;2;9;')
      expectEqual('the answer to search with numResults=1', hitsOf(await search({ pattern: 'hit', numResults: '1' })), '1;2;')
      expectEqual('the answer to search without a hit', hitsOf(await search({ pattern: 'nothing' })), '0;')
    },
  },
  {
    id: 'search-case',
    title: 'search regards case only if it is asked to',
    profile: 'wire',
    facts: ['search'],
    remedy: 'Match letters in either case, and exactly for caseSensitive=y.',
    run: async ({ ask, compound }) => {
      const docId = await compound()
      const search = (caseSensitive: string) =>
        ask('search', { docId, compId: 'note', more: { pattern: 'hit', caseSensitive, numResults: '5' } })
      expectEqual('the answer to search with caseSensitive=n', hitsOf(offered(await search('n'))), '2;2;9;')
      expectEqual('the answer to search with caseSensitive=y', hitsOf(await search('y')), '1;2;')
    },
  },
  {
    id: 'search-backwards',
    title: 'search runs backwards if fromOffset is behind toOffset',
    profile: 'wire',
    facts: ['search'],
    remedy: 'With fromOffset greater than toOffset, report the hits between them from the last to the first.',
    run: async ({ ask, compound }) => {
      const more = { pattern: 'hit', fromOffset: '19', toOffset: '0', numResults: '5' }
      const answer = await ask('search', { docId: await compound(), compId: 'note', more })
      expectEqual('the answer to search backwards', hitsOf(offered(answer)), '2;9;2;')
    },
  },
  {
    id: 'search-unknown',
    title: 'search in an unknown document is refused with 404',
    profile: 'wire',
    facts: ['not-found', 'search'],
    remedy: 'Answer 404 to a search in a document that does not exist.',
    run: async ({ ask, unusedDocId }) =>
      expectStatus(offered(await ask('search', { docId: unusedDocId(), compId: 'data', more: { pattern: 'x' } })), 404),
  },
  {
    id: 'attr-search',
    title: 'attrSearch finds entries of a print list by the values of fields',
    profile: 'wire',
    facts: ['attr-search'],
    remedy: 'Compare the values of the DAIN lines of descr at the offsets of the pattern, and answer offset and length of their entries.',
    run: async ({ ask, compound }) => {
      const search = async (pattern: string) => ask('attrSearch', { docId: await compound(), more: { pattern, numResults: '5' } })
      expectEqual('the answer to attrSearch', hitsOf(offered(await search('0+10+LH'))), '2;73;138;211;120;')
      expectEqual('the answer to attrSearch for one entry', hitsOf(await search('0+10+LH-400')), '1;211;120;')
    },
  },
]
