import { part, partOf } from '../../support/source-system.ts'
import { compIdsOf, post } from '../answers.ts'
import { outcomeOf, put, type Step } from './story.ts'

/** Searches, changes of whole documents, mCreate, deletes and malformed requests. */
export const searchesAndDeletes: Step[] = [
  [
    '21: search returns the number of hits and their offsets',
    async ({ ask }) => {
      const search = async (more: Record<string, string>) => {
        const answer = await ask('search', { compId: 'note', more: { numResults: '5', ...more } })
        return [answer.status, String(answer.body)]
      }
      expect(await search({ pattern: 'hit' })).toEqual([200, '2;2;9;'])
      expect(await search({ pattern: 'hit', caseSensitive: 'n' })).toEqual([200, '2;2;9;'])
      expect(await search({ pattern: 'hit', caseSensitive: 'y' })).toEqual([200, '1;2;'])
      expect(await search({ pattern: 'hit', fromOffset: '19', toOffset: '0' })).toEqual([200, '2;9;2;'])
      expect(await search({ pattern: 'hit', numResults: '1' })).toEqual([200, '1;2;'])
      expect(await search({ pattern: 'nothing' })).toEqual([200, '0;'])
    },
  ],
  [
    '22: attrSearch searches the index of a print list',
    async ({ ask }) => {
      const search = (pattern: string) => ask('attrSearch', { docId: 'D2', more: { pattern, numResults: '5' } })
      const answer = await search('0+10+LH')
      expect([answer.status, String(answer.body)]).toEqual([200, '2;73;138;211;120;'])
      expect(await outcomeOf(search('5+10+LH'))).toEqual([400, 'invalid_parameter'])
    },
  ],
  [
    '23: update by POST removes the components that it does not contain',
    async ({ ask }) => {
      expect(await outcomeOf(ask('update', { docId: 'D2', ...post([part('data', 'alone')]) }))).toEqual([200])
      const info = await ask('info', { docId: 'D2' })
      expect([info.headers['x-numbercomps'], compIdsOf(info)]).toEqual(['1', ['data']])
      expect(String((await ask('get', { docId: 'D2' })).body)).toBe('alone')
    },
  ],
  [
    '24: mCreate creates the missing documents, and reports on each document',
    async ({ ask }) => {
      expect(await outcomeOf(ask('create', { docId: 'M2', compId: 'data', ...put('old') }))).toEqual([201])
      const parts = [partOf('M1', 'data', 'one'), partOf('M1', 'note', 'n'), partOf('M2', 'data', 'two'), partOf('M3', 'data', 'three')]
      const answer = await ask('mCreate', { docId: 'M1', ...post(parts) })
      expect(answer).toMatchObject({ status: 250, reason: 'missing documents created' })
      expect(String(answer.body).split('\r\n')).toEqual([
        'docId="M1";retCode="201";',
        'docId="M2";retCode="403";errorDescription="document already exists";',
        'docId="M3";retCode="201";',
        '',
      ])
      const bodies = await Promise.all(['M1', 'M2', 'M3'].map(async (docId) => String((await ask('get', { docId })).body)))
      expect(bodies).toEqual(['one', 'old', 'three'])
    },
  ],
  [
    '25: mCreate of new documents only is answered with 201',
    async ({ ask }) => {
      const answer = await ask('mCreate', { docId: 'M4', ...post([partOf('M4', 'data', 'four'), partOf('M5', 'data', 'five')]) })
      expect([answer.status, String(answer.body)]).toEqual([201, 'docId="M4";retCode="201";\r\ndocId="M5";retCode="201";\r\n'])
    },
  ],
  [
    '26: delete removes a component, then the document',
    async ({ ask }) => {
      const answer = await ask('delete', { compId: 'note' })
      expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '0' } })
      const info = await ask('info')
      expect([info.status, compIdsOf(info)]).toEqual([200, ['data']])
      expect(await outcomeOf(ask('delete'))).toEqual([200])
      expect(await outcomeOf(ask('info'))).toEqual([404, 'document_not_found'])
    },
  ],
  [
    '27: delete of an unknown document or component is refused',
    async ({ ask }) => {
      expect(await outcomeOf(ask('delete'))).toEqual([404, 'document_not_found'])
      expect(await outcomeOf(ask('delete', { docId: 'D2', compId: 'note' }))).toEqual([404, 'component_not_found'])
      expect(await outcomeOf(ask('get', { docId: 'D2' }))).toEqual([200])
    },
  ],
  [
    '28: a malformed request is refused, even with a valid signature',
    async ({ source, url }) => {
      const info = await url('info', { docId: 'D2' })
      expect(await outcomeOf(source.call(info))).toEqual([200])
      const wrong = [info.replace('info&', 'destroy&'), info.replace('&pVersion=0045', ''), info.replace('&docId=D2', '')]
      for (const query of wrong) expect(await outcomeOf(source.call(query))).toEqual([400, 'invalid_parameter'])
      expect(await outcomeOf(source.call(info, put('x')))).toEqual([400, 'invalid_parameter'])
    },
  ],
]
