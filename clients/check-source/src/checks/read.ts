import type { Check } from '../check.ts'
import { expectBytes, expectContent, expectContentType, expectEqual, expectForm, expectStatus, offered } from '../expect.ts'
import type { Answer } from '../http.ts'
import { expectLineEnds, formOf, onlyPartOf, partOf, partsOf } from '../multipart.ts'
import { alphabet, alphabetType, compoundParts, put } from '../source.ts'

const [date, time] = [/^\d{4}-\d\d-\d\d$/, /^\d\d:\d\d:\d\d$/]

const expectTimes = ({ asked }: Answer, headers: Record<string, string>, prefix: string) => {
  for (const letter of ['C', 'M']) {
    const [dateName, timeName] = [`${prefix}ate${letter}`, `${prefix.replace(/D$/i, (d) => (d === 'D' ? 'T' : 't'))}ime${letter}`]
    expectForm(`${dateName} of ${asked}`, headers[dateName.toLowerCase()], date, 'a date YYYY-MM-DD')
    expectForm(`${timeName} of ${asked}`, headers[timeName.toLowerCase()], time, 'a time HH:MM:SS')
  }
}

const expectDocumentHeaders = (answer: Answer, docId: string, contRep: string, components: number) => {
  const { asked, headers } = answer
  expectTimes(answer, headers, 'X-d')
  expectEqual(`X-numberComps of ${asked}`, headers['x-numbercomps'] ?? headers['x-numcomps'], String(components))
  const name = headers['x-contentrep'] ?? headers['x-contrep']
  expectEqual(`X-contentRep of ${asked}`, name && Buffer.from(name, 'latin1').toString(), contRep)
  expectEqual(`X-docId of ${asked}`, headers['x-docid'], docId)
  expectEqual(`X-docStatus of ${asked}`, headers['x-docstatus'], 'online')
}

const sizes = compoundParts.map(({ body }) => String(Buffer.byteLength(body)))

/** Checks that read documents. */
export const readChecks: readonly Check[] = [
  {
    id: 'info',
    title: 'info tells the components and their sizes, without the bytes',
    profile: 'smoke',
    facts: ['info'],
    remedy: 'Answer info with a part per component: Content-Length 0, no bytes, and the size in X-Content-Length.',
    run: async ({ ask, alphabet: document }) => {
      const answer = await ask('info', { docId: await document() })
      expectStatus(answer, 200)
      const { headers } = onlyPartOf(answer)
      expectEqual('X-compId of info', headers['x-compid'], 'data')
      expectEqual('X-Content-Length of info', headers['x-content-length'], String(alphabet.length))
      expectEqual('Content-Length of the part of info', headers['content-length'], '0')
    },
  },
  {
    id: 'info-comp-id',
    title: 'info with compId describes this component only',
    profile: 'core',
    facts: ['info-comp-id', 'not-found'],
    remedy: 'Answer info with compId with one part, and with 404 if the document has no such component.',
    run: async ({ ask, compound }) => {
      const docId = await compound()
      const parts = partsOf(await ask('info', { docId, compId: 'note' }))
      expectEqual(
        'the components of info with compId',
        parts.map(({ headers }) => headers['x-compid']),
        ['note'],
      )
      expectStatus(await ask('info', { docId, compId: 'nosuch' }), 404)
    },
  },
  {
    id: 'info-html',
    title: 'info answers a page for resultAs=html',
    profile: 'wire',
    facts: ['server-info-html'],
    remedy: 'Answer resultAs=html of info with status 200.',
    run: async ({ ask, alphabet: document }) =>
      expectStatus(offered(await ask('info', { docId: await document(), more: { resultAs: 'html' } })), 200),
  },
  {
    id: 'line-ends',
    title: 'the lines of info end with CR LF',
    profile: 'wire',
    facts: ['line-ends'],
    remedy: 'End each line of a multipart answer with CR LF, and put a line end between the body of a part and the next boundary.',
    run: async ({ ask, compound }) => {
      const answer = await ask('info', { docId: await compound() })
      expectStatus(answer, 200)
      expectLineEnds(answer)
    },
  },
  {
    id: 'document-headers',
    title: 'info and docGet have the headers of the document',
    profile: 'wire',
    facts: ['document-headers', 'dates'],
    remedy: 'Send X-dateC, X-timeC, X-dateM, X-timeM, X-numberComps, X-contentRep, X-docId and X-docStatus with info and docGet.',
    run: async ({ ask, compound, contRep }) => {
      const docId = await compound()
      for (const command of ['info', 'docGet']) expectDocumentHeaders(await ask(command, { docId }), docId, contRep, 3)
    },
  },
  {
    id: 'component-headers',
    title: 'info and docGet have the headers of each component',
    profile: 'wire',
    facts: ['component-headers', 'dates'],
    remedy: 'Send X-compId, X-Content-Length, X-compDateC, X-compTimeC, X-compDateM, X-compTimeM and X-compStatus with each part.',
    run: async ({ ask, compound }) => {
      const docId = await compound()
      for (const command of ['info', 'docGet']) {
        const answer = await ask(command, { docId })
        const parts = partsOf(answer)
        expectEqual(
          `X-Content-Length of the parts of ${command}`,
          parts.map(({ headers }) => headers['x-content-length']),
          sizes,
        )
        for (const { headers } of parts) {
          expectTimes(answer, headers, 'X-compD')
          expectEqual(`X-compStatus of ${command}`, headers['x-compstatus'], 'online')
        }
      }
    },
  },
  {
    id: 'dates',
    title: 'an update moves the modification date, and keeps the creation date',
    profile: 'wire',
    facts: ['dates'],
    remedy: 'Set X-dateC and X-timeC by create only, X-dateM and X-timeM by each change, both in UTC.',
    run: async ({ ask, created, wait }) => {
      const docId = await created('first')
      const datesOf = async () => {
        const { headers } = await ask('info', { docId })
        return [`${headers['x-datec']} ${headers['x-timec']}`, `${headers['x-datem']} ${headers['x-timem']}`] as const
      }
      const [createdAt] = await datesOf()
      // Times have no fractions of a second.
      await wait(1_100)
      expectStatus(await ask('update', { docId, compId: 'data', ...put('second') }), 200)
      const [stillCreatedAt, modifiedAt] = await datesOf()
      expectEqual('the creation date after an update', stillCreatedAt, createdAt)
      expectEqual('that the modification date is later than the creation date', modifiedAt > createdAt, true)
    },
  },
  {
    id: 'get',
    title: 'get returns bytes, length and content type',
    profile: 'core',
    facts: ['get'],
    remedy: 'Answer get with status 200, the bytes of the component, their number as Content-Length, and the content type that was sent.',
    run: async ({ ask, alphabet: document }) => {
      const answer = await ask('get', { docId: await document(), compId: 'data' })
      expectStatus(answer, 200)
      expectContent('the body of get', answer, alphabet)
      expectEqual('Content-Length of get', answer.headers['content-length'], String(alphabet.length))
      expectContentType('Content-Type of get', answer.headers['content-type'], alphabetType)
    },
  },
  {
    id: 'get-default',
    title: 'get without compId reads data, else data1',
    profile: 'core',
    facts: ['get-default'],
    remedy: 'If get has no compId, return the component data, or data1 if there is none.',
    run: async ({ ask, newDocId, compound }) => {
      expectContent('the component that get chooses', await ask('get', { docId: await compound() }), compoundParts[0]!.body)
      const docId = newDocId()
      expectStatus(await ask('create', { docId, ...formOf([partOf('data2', 'two'), partOf('data1', 'one')]) }), 201)
      expectContent('the component that get chooses without data', await ask('get', { docId }), 'one')
    },
  },
  {
    id: 'get-range',
    title: 'get of a range returns exactly its bytes, with status 200',
    profile: 'core',
    facts: ['get-range'],
    remedy: 'Read fromOffset and toOffset of get, both inclusive, and answer 200: the protocol has no 206.',
    run: async ({ ask, alphabet: document }) => {
      const answer = await ask('get', { docId: await document(), more: { fromOffset: '10', toOffset: '19' } })
      expectStatus(answer, 200)
      expectContent('the range of offsets 10 to 19', answer, alphabet.slice(10, 20))
      expectEqual('Content-Length of a range', answer.headers['content-length'], '10')
    },
  },
  {
    id: 'get-range-open',
    title: 'get of a range may leave out one end, or lie behind the end',
    profile: 'wire',
    facts: ['get-range'],
    remedy: 'Take 0 for a missing fromOffset, and the last byte for a missing toOffset, for -1 and for an offset behind the end.',
    run: async ({ ask, alphabet: document }) => {
      const docId = await document()
      const range = (more: Record<string, string>) => ask('get', { docId, more })
      expectContent('the range from offset 20', await range({ fromOffset: '20' }), alphabet.slice(20))
      expectContent('the range to offset 4', await range({ toOffset: '4' }), alphabet.slice(0, 5))
      expectContent('the range from 20 to -1', await range({ fromOffset: '20', toOffset: '-1' }), alphabet.slice(20))
      expectContent('the range from 20 to 1000', await range({ fromOffset: '20', toOffset: '1000' }), alphabet.slice(20))
      const behind = await range({ fromOffset: '1000' })
      expectStatus(behind, 200, 400)
      if (behind.status === 200) expectBytes('the range from 1000', behind.body, '')
    },
  },
  {
    id: 'get-head',
    title: 'get by HEAD answers the headers only',
    profile: 'wire',
    facts: ['get-head'],
    remedy: 'Answer HEAD as get without a body.',
    run: async ({ ask, alphabet: document }) => {
      const answer = offered(await ask('get', { docId: await document(), method: 'HEAD' }))
      expectStatus(answer, 200)
      expectEqual('Content-Length of get by HEAD', answer.headers['content-length'], String(alphabet.length))
    },
  },
  {
    id: 'get-not-encoded',
    title: 'get is not compressed, whatever the client accepts',
    profile: 'wire',
    facts: ['no-encoding'],
    remedy: 'Switch off compression for the content server, also in proxies.',
    run: async ({ ask, created }) => {
      const text = 'compressible '.repeat(1_000)
      const answer = await ask('get', { docId: await created(text), headers: { 'accept-encoding': 'gzip, deflate, br' } })
      expectEqual('Content-Encoding of get', answer.headers['content-encoding'] ?? 'identity', 'identity')
      expectEqual('Content-Length of get', answer.headers['content-length'], String(text.length))
      expectContent('the body of get', answer, text)
    },
  },
  {
    id: 'doc-get',
    title: 'docGet returns every component with its bytes',
    profile: 'core',
    facts: ['doc-get'],
    remedy: 'Answer docGet with a part per component: its bytes, and their number as Content-Length and X-Content-Length.',
    run: async ({ ask, compound }) => {
      const answer = await ask('docGet', { docId: await compound() })
      expectStatus(answer, 200)
      const parts = partsOf(answer)
      expectEqual('the number of components of docGet', parts.length, compoundParts.length)
      for (const [index, { headers, body }] of parts.entries()) {
        expectBytes(`the component ${headers['x-compid']} of docGet`, body, compoundParts[index]!.body)
        expectEqual(`Content-Length of ${headers['x-compid']}`, headers['content-length'], sizes[index])
        expectContentType(
          `Content-Type of ${headers['x-compid']}`,
          headers['content-type'],
          String(compoundParts[index]!.headers['Content-Type']),
        )
      }
    },
  },
  {
    id: 'not-found',
    title: 'a read of an unknown document or component is refused with 404',
    profile: 'smoke',
    facts: ['not-found'],
    remedy:
      'Answer 404 to info, get and docGet of an unknown document or component: the source system takes anything else for the document.',
    run: async ({ ask, unusedDocId, alphabet: document }) => {
      const docId = unusedDocId()
      for (const command of ['get', 'info', 'docGet']) expectStatus(await ask(command, { docId }), 404)
      expectStatus(await ask('get', { docId: await document(), compId: 'nosuch' }), 404)
    },
  },
]
