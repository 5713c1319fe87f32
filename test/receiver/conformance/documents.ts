import { longAgo } from '../../support/scene.ts'
import { part } from '../../support/source-system.ts'
import { compIdsOf, partsOf, post } from '../answers.ts'
import { alphabet, alphabetType } from './administration.ts'
import { outcomeOf, put, type Step } from './story.ts'

// An index with two entries: the offset and length of a line in the component data, and the customer it is about.
const index = [
  `0 46 DKEY${'Customer'.padEnd(40)}${'0'.padStart(3)}${'10'.padStart(3)}`,
  '73 138 DAINLH        ',
  '211 120 DAINLH-400    ',
  '',
].join('\n')

export const documents: Step[] = [
  [
    '7: info describes the document and its component, without the bytes',
    async ({ ask }) => {
      const answer = await ask('info')
      const [date, time] = [expect.stringMatching(/^\d{4}-\d\d-\d\d$/), expect.stringMatching(/^\d\d:\d\d:\d\d$/)]
      expect(answer).toMatchObject({
        status: 200,
        headers: { 'x-numbercomps': '1', 'x-contentrep': 'Z1', 'x-docid': 'D1', 'x-datec': date, 'x-timec': time },
      })
      expect(answer.headers).toMatchObject({ 'x-datem': date, 'x-timem': time, 'x-docstatus': 'online', 'x-pversion': '0045' })
      expect(partsOf(answer)).toMatchObject([
        {
          headers: {
            'content-type': alphabetType,
            'content-length': '0',
            'x-content-length': String(alphabet.length),
            'x-compid': 'data',
            'x-compdatec': date,
            'x-comptimec': time,
            'x-compdatem': date,
            'x-comptimem': time,
            'x-compstatus': 'online',
          },
          body: '',
        },
      ])
    },
  ],
  [
    '8: get returns the same bytes with the same content type',
    async ({ ask }) => {
      const headers = { 'content-type': alphabetType, 'content-length': String(alphabet.length) }
      expect(await ask('get')).toMatchObject({ status: 200, headers, body: Buffer.from(alphabet) })
      expect(await ask('get', { compId: 'data' })).toMatchObject({ status: 200, headers, body: Buffer.from(alphabet) })
      expect(await ask('get', { method: 'HEAD' })).toMatchObject({ status: 200, headers, body: Buffer.alloc(0) })
    },
  ],
  [
    '9: get of a range returns exactly these bytes',
    async ({ ask }) => {
      const answer = await ask('get', { more: { fromOffset: '10', toOffset: '19' } })
      expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '10' }, body: Buffer.from('klmnopqrst') })
    },
  ],
  [
    '10: get of a range beyond the end returns the bytes that exist',
    async ({ ask }) => {
      const beyond = await ask('get', { more: { fromOffset: '20', toOffset: '1000' } })
      expect(beyond).toMatchObject({ status: 200, headers: { 'content-length': '6' }, body: Buffer.from('uvwxyz') })
      const afterEnd = await ask('get', { more: { fromOffset: '1000' } })
      expect(afterEnd).toMatchObject({ status: 200, headers: { 'content-length': '0' }, body: Buffer.alloc(0) })
    },
  ],
  [
    '11: docGet returns the component as a part with its size',
    async ({ ask }) => {
      const answer = await ask('docGet')
      const size = String(alphabet.length)
      expect([answer.status, answer.headers['x-numbercomps']]).toEqual([200, '1'])
      expect(partsOf(answer)).toMatchObject([{ headers: { 'content-length': size, 'x-content-length': size }, body: alphabet }])
    },
  ],
  [
    '12: create by POST keeps the order of its components',
    async ({ ask }) => {
      const bytes = Buffer.from([0, 13, 10, 45, 45, 255])
      const parts = [part('data', bytes), part('descr', index, 'application/x-alf-descr'), part('note', 'n', 'application/x-note')]
      expect(await outcomeOf(ask('create', { docId: 'D2', ...post(parts) }))).toEqual([201])
      const info = await ask('info', { docId: 'D2' })
      expect(info.headers['x-numbercomps']).toBe('3')
      expect(compIdsOf(info)).toEqual(['data', 'descr', 'note'])
      expect(partsOf(await ask('docGet', { docId: 'D2' }))).toMatchObject([
        { headers: { 'x-compid': 'data', 'content-length': '6' }, body: bytes.toString('latin1') },
        { headers: { 'x-compid': 'descr', 'content-type': 'application/x-alf-descr' }, body: index },
        { headers: { 'x-compid': 'note', 'content-type': 'application/x-note' }, body: 'n' },
      ])
    },
  ],
  [
    '13: create by POST without parts creates an empty document',
    async ({ ask }) => {
      expect(await outcomeOf(ask('create', { docId: 'D3', ...post([]) }))).toEqual([201])
      for (const answer of [await ask('info', { docId: 'D3' }), await ask('docGet', { docId: 'D3' })]) {
        expect([answer.status, answer.headers['x-numbercomps'], partsOf(answer)]).toEqual([200, '0', []])
      }
    },
  ],
  [
    '14: create by POST with a malformed part stores nothing',
    async ({ ask }) => {
      const parts = [part('data', 'good'), { headers: { 'X-compId': 'note', 'Content-Length': 9 }, body: 'shorter' }]
      expect(await outcomeOf(ask('create', { docId: 'D4', ...post(parts) }))).toEqual([400, 'invalid_parameter'])
      expect(await outcomeOf(ask('info', { docId: 'D4' }))).toEqual([404, 'document_not_found'])
    },
  ],
  [
    '15: get without compId returns data1 if there is no data',
    async ({ ask }) => {
      expect(await outcomeOf(ask('create', { docId: 'D5', ...post([part('data2', 'two'), part('data1', 'one')]) }))).toEqual([201])
      expect(await ask('get', { docId: 'D5' })).toMatchObject({ status: 200, headers: { 'x-compid': 'data1' }, body: Buffer.from('one') })
    },
  ],
  [
    '16: update by PUT adds a component, and changes only the modification date',
    async (story) => {
      await story.age('D1')
      expect(await outcomeOf(story.ask('update', { compId: 'note', ...put('a hit, ', 'application/x-note') }))).toEqual([200])
      expect(await story.ask('get', { compId: 'note' })).toMatchObject({ status: 200, body: Buffer.from('a hit, ') })
      const { headers } = await story.ask('info')
      expect(headers).toMatchObject({ 'x-datec': '2026-03-02', 'x-timec': '10:15:30', 'x-numbercomps': '2' })
      expect(Date.parse(`${headers['x-datem']}T${headers['x-timem']}Z`)).toBeGreaterThan(Date.parse(longAgo))
    },
  ],
  [
    '17: update by PUT replaces a component, and keeps the others',
    async ({ ask }) => {
      expect(await outcomeOf(ask('update', { compId: 'data', ...put('replaced', 'text/csv') }))).toEqual([200])
      expect(await ask('get')).toMatchObject({ headers: { 'content-type': 'text/csv' }, body: Buffer.from('replaced') })
      expect(compIdsOf(await ask('info'))).toEqual(['data', 'note'])
    },
  ],
  [
    '18: update by PUT of an unknown document is refused',
    async ({ ask }) => {
      expect(await outcomeOf(ask('update', { docId: 'NOWHERE', compId: 'data', ...put('x') }))).toEqual([404, 'document_not_found'])
    },
  ],
  [
    '19: append adds bytes to a component, and changes only its modification date',
    async (story) => {
      await story.age('D1')
      for (const body of ['a Hit, ', 'a miss']) {
        expect(await outcomeOf(story.ask('append', { compId: 'note', ...put(body) }))).toEqual([200])
      }
      const { body, headers } = await story.ask('get', { compId: 'note' })
      expect(String(body)).toBe('a hit, a Hit, a miss')
      expect(headers).toMatchObject({ 'content-type': 'application/x-note', 'x-compdatec': '2026-03-02', 'x-comptimec': '10:15:30' })
      expect(Date.parse(`${headers['x-compdatem']}T${headers['x-comptimem']}Z`)).toBeGreaterThan(Date.parse(longAgo))
    },
  ],
  [
    '20: append to an unknown component or document is refused',
    async ({ ask }) => {
      expect(await outcomeOf(ask('append', { compId: 'other', ...put('x') }))).toEqual([404, 'component_not_found'])
      expect(await outcomeOf(ask('append', { docId: 'NOWHERE', compId: 'note', ...put('x') }))).toEqual([404, 'document_not_found'])
    },
  ],
]
