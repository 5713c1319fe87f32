import { expirationIn } from '../support/signed-query.ts'
import { multipartBody, part, partOf, type PartToSend } from '../support/source-system.ts'
import { hostileAsn1 } from './hostile-asn1.ts'
import { hostileJson } from './hostile.ts'
import type { HostileRequest } from './measured-relay.ts'

const MiB = 1024 * 1024
const pVersion = 'pVersion=0047'

/** A document whose search and reading are expensive: `data` is periodic, and `descr` has as many lines as possible. */
export const largeDocument = [
  part('data', Buffer.alloc(6 * MiB, 'a')),
  part('descr', `0 46 DKEY${' '.repeat(40)}  0  1\n${'0 0 DAIN0\n'.repeat(200_000)}`),
]
const manyComponents = Array.from({ length: 1_000 }, (_, index) => part(`c${index}`, 'x'))

const periodic = `${'a'.repeat(511)}b${'a'.repeat(512)}`

const multipart = (body: PartToSend[] | string, boundary = 'B'): Partial<HostileRequest> => ({
  method: 'POST',
  headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  body: typeof body === 'string' ? body : multipartBody(boundary, body),
})

const hostileQueries = [
  '&'.repeat(60_000),
  Array.from({ length: 9_000 }, (_, index) => `&a${index}=`).join(''),
  '&docId=a'.repeat(7_500),
  `&docId=${'%41'.repeat(20_000)}`,
  `&compId=${'%fc'.repeat(20_000)}`,
]

/** Multipart bodies of a create. */
const hostileBodies: Record<string, Partial<HostileRequest>> = {
  'as many parts as possible': multipart(manyComponents),
  'too many parts': multipart('--B\r\nX-compId: a\r\n\r\n\r\n'.repeat(40_000)),
  'parts without a header': multipart('--B\r\n\r\n\r\n'.repeat(90_000)),
  'almost boundaries': multipart(`--B\r\nX-compId: a\r\n\r\n${'\r\n--A'.repeat(400_000)}`),
  'almost long boundaries': multipart(`\r\n--${'-'.repeat(190)}x`.repeat(10_000), `${'-'.repeat(199)}y`),
  'a long header': multipart(`--B\r\nX-compId: ${'a'.repeat(4 * MiB)}`),
  'many headers': multipart(`--B\r\n${'a: b\r\n'.repeat(500_000)}`),
}

/** The requests to the repository Z1, which holds LARGE and JSON, and to Z2, which requires signatures. The first create makes MANY. */
export const receiverRequests = (path: string): HostileRequest[] => {
  let documents = 0
  const request = (covers: string, name: string, query: string, more: Partial<HostileRequest> = {}, repoId = 'Z1'): HostileRequest => ({
    covers,
    name: `${covers}: ${name}`,
    path: () => {
      if (query.includes('{new}')) documents += 1
      return `${path}?${covers}&${pVersion}&contRep=${repoId}&${query.replace('{new}', documents === 1 ? 'MANY' : `N${documents}`)}`
    },
    ...more,
  })

  const searches = [
    request('search', 'a periodic pattern', `docId=LARGE&compId=data&pattern=${periodic}`),
    request('search', 'a periodic pattern, backward', `docId=LARGE&compId=data&fromOffset=99999999&toOffset=0&pattern=${periodic}`),
    request('search', 'as many hits as possible', 'docId=LARGE&compId=data&pattern=a&numResults=99999'),
    request('search', 'a long pattern', `docId=LARGE&compId=data&pattern=${'%61'.repeat(20_000)}`),
    request(
      'attrSearch',
      'as many conditions and hits as possible',
      `docId=LARGE&numResults=99999&pattern=${Array(16).fill('0+1+0').join('%23')}`,
    ),
    request('attrSearch', 'too many conditions', `docId=LARGE&pattern=${'%230+1+x'.repeat(7_000)}`),
    request('attrSearch', 'many separators', `docId=LARGE&pattern=${'%23'.repeat(20_000)}`),
  ]
  const reads = [
    ...['get', 'docGet', 'info'].map((command) => request(command, 'a large document', 'docId=LARGE')),
    ...['docGet', 'info'].map((command) => request(command, 'many components', 'docId=MANY')),
    request('info', 'many components as HTML', 'docId=MANY&resultAs=html'),
    ...['serverInfo', 'get'].flatMap((command) => hostileQueries.map((query) => request(command, `query ${query.slice(0, 12)}`, query))),
    { covers: 'serverInfo', name: 'serverInfo: many repositories', path: () => `${path}?serverInfo&${pVersion}` },
    { covers: 'serverInfo', name: 'serverInfo: many repositories as HTML', path: () => `${path}?serverInfo&${pVersion}&resultAs=html` },
    request('getCert', 'many parameters', hostileQueries[1]!),
    request('get', 'many headers', 'docId=LARGE', {
      headers: Object.fromEntries(Array.from({ length: 1_900 }, (_, index) => [`x-token-${index}`, 'aaaaaaaa'])),
    }),
  ]
  const writes = [
    ...Object.entries(hostileBodies).map(([name, more]) => request('create', name, 'docId={new}', more)),
    ...Object.entries(hostileJson).map(([name, body]) =>
      request('create', name, 'docId={new}&compId=data', { method: 'PUT', headers: { 'content-type': 'application/json' }, body }),
    ),
    request('update', 'many parts', 'docId=MANY', multipart(manyComponents.slice(0, 200))),
    request('append', 'JSON', 'docId=JSON&compId=data', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: hostileJson['many keys']!,
    }),
    request(
      'mCreate',
      'as many documents as possible',
      'docId=M0',
      multipart(Array.from({ length: 200 }, (_, index) => partOf(`M${index}`, 'data', 'x'))),
    ),
    request('delete', 'a document', 'docId=JSON', { method: 'DELETE' }),
  ]
  // From as many addresses, because one may send few of them.
  const certificates = Object.entries(hostileAsn1(15_000)).map(([name, body], index) =>
    request('putCert', name, 'authId=a', { method: 'PUT', headers: { 'x-forwarded-for': `10.0.0.${index}` }, body }),
  )
  const signature = `accessMode=r&authId=CN%3DTST&expiration=${expirationIn(3_600)}`
  const secKeys = Object.entries(hostileAsn1(14_900)).map(([name, bytes]) =>
    request('get', `secKey of ${name}`, `docId=D1&${signature}&secKey=${encodeURIComponent(bytes.toString('base64'))}`, {}, 'Z2'),
  )
  return [...writes, ...searches, ...reads, ...certificates, ...secKeys]
}
