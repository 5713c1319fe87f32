import type { Check } from '../check.ts'
import { expectBytes, expectContent, expectContentType, expectEqual, expectRefused, expectStatus, offered } from '../expect.ts'
import { formOf, onlyPartOf, partOf, partOfDocument, partsOf, quotedForm } from '../multipart.ts'
import { allBytes, alphabet, compoundParts, put } from '../source.ts'
import { linesOf } from './server.ts'

const mebibyte = Buffer.alloc(1024 * 1024, 'One MiB whose pieces differ by their place: 0123456789, ')

const typed = 'text/plain; charset=ISO-8859-1; version=1.7'

const encodedParts = [
  ['base64', allBytes.toString('base64'), allBytes],
  ['quoted-printable', 'M=FCller', Buffer.from('M\u00fcller', 'latin1')],
] as const

/** Checks that create documents. */
export const createChecks: readonly Check[] = [
  {
    id: 'create-put',
    title: 'create by PUT stores a component, which get returns',
    profile: 'smoke',
    facts: ['create-put', 'get', 'bytes-kept'],
    remedy: 'Answer 201 without a body to a create by PUT, and return the same bytes from get.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      const answer = await ask('create', { docId, compId: 'data', ...put(alphabet) })
      expectStatus(answer, 201)
      expectBytes('the body of the answer to create', answer.body, '')
      expectContent('the body of get', await ask('get', { docId, compId: 'data' }), alphabet)
    },
  },
  {
    id: 'create-exists',
    title: 'create of an existing document is refused, and changes nothing',
    profile: 'smoke',
    facts: ['create-exists'],
    remedy:
      'Answer 403 to a create of a docId that exists, and keep the document: a source system repeats a create whose answer it has not seen.',
    run: async ({ ask, created }) => {
      const docId = await created('first')
      const answer = await ask('create', { docId, compId: 'data', ...put('second') })
      expectContent('the component after a second create', await ask('get', { docId }), 'first')
      expectStatus(answer, 403)
    },
  },
  {
    id: 'create-exists-component',
    title: 'create of a new component of an existing document is refused, or adds it',
    profile: 'wire',
    facts: ['create-exists'],
    remedy: 'Answer 403, or keep both components.',
    run: async ({ ask, created }) => {
      const docId = await created('first')
      const answer = await ask('create', { docId, compId: 'data1', ...put('second') })
      expectStatus(answer, 403, 201)
      expectContent('the first component', await ask('get', { docId, compId: 'data' }), 'first')
      const second = await ask('get', { docId, compId: 'data1' })
      expectStatus(second, answer.status === 201 ? 200 : 404)
    },
  },
  {
    id: 'create-post',
    title: 'create by POST stores every part, in order',
    profile: 'core',
    facts: ['create-post', 'bytes-kept'],
    remedy: 'Read the parts of multipart/form-data by their X-compId: they have no Content-Disposition. Handle their bodies as bytes.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      expectStatus(await ask('create', { docId, ...formOf(compoundParts) }), 201)
      const parts = partsOf(await ask('docGet', { docId }))
      expectEqual(
        'the order of the components',
        parts.map(({ headers }) => headers['x-compid']),
        ['data', 'descr', 'note'],
      )
      for (const [index, { body }] of compoundParts.entries()) expectBytes(`component ${index + 1}`, parts[index]!.body, body)
    },
  },
  {
    id: 'create-post-quoted',
    title: 'the boundary of a multipart body may be in quotation marks',
    profile: 'wire',
    facts: ['create-post'],
    remedy: 'Read the boundary of the Content-Type with and without quotation marks.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      expectStatus(await ask('create', { docId, ...formOf([partOf('data', 'quoted')], quotedForm) }), 201)
      expectContent('the component', await ask('get', { docId }), 'quoted')
    },
  },
  {
    id: 'create-empty-document',
    title: 'create by POST without parts creates an empty document',
    profile: 'wire',
    facts: ['create-empty-document', 'info', 'doc-get'],
    remedy: 'Accept a multipart body of two boundaries, and answer info and docGet of the document with one.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      expectStatus(await ask('create', { docId, ...formOf([]) }), 201)
      for (const command of ['info', 'docGet']) {
        const answer = await ask(command, { docId })
        expectStatus(answer, 200)
        expectEqual(`the number of parts of ${command}`, partsOf(answer).length, 0)
      }
    },
  },
  {
    id: 'create-whole',
    title: 'create by POST with a body that breaks off stores nothing',
    profile: 'wire',
    facts: ['create-whole'],
    remedy: 'Store the parts of a create only after the last boundary has been read. Refuse the request with 400.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      const form = formOf([partOf('data', 'good'), partOf('note', 'also good')])
      const body = (form.body as Buffer).subarray(0, -20)
      expectRefused(await ask('create', { docId, ...form, body }))
      expectStatus(await ask('info', { docId }), 404)
    },
  },
  {
    id: 'create-part-twice',
    title: 'create by POST with one component twice is refused, and stores nothing',
    profile: 'full',
    facts: ['create-whole'],
    remedy: 'Refuse a multipart body with two parts of one X-compId with 400.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      expectRefused(await ask('create', { docId, ...formOf([partOf('data', 'one'), partOf('data', 'two')]) }))
      expectStatus(await ask('info', { docId }), 404)
    },
  },
  {
    id: 'content-type-kept',
    title: 'get, info and docGet return the Content-Type with its parameters',
    profile: 'wire',
    facts: ['content-type-kept'],
    remedy:
      'Store the whole Content-Type of a component, with charset and version, and return it unchanged. Otherwise texts are shown with wrong characters.',
    run: async ({ ask, created }) => {
      const docId = await created(alphabet, typed)
      expectContentType('the Content-Type of get', (await ask('get', { docId })).headers['content-type'], typed)
      for (const command of ['info', 'docGet']) {
        const { headers } = onlyPartOf(await ask(command, { docId }))
        expectContentType(`the Content-Type of the part of ${command}`, headers['content-type'], typed)
      }
    },
  },
  {
    id: 'empty-parameters',
    title: 'a Content-Type may have empty parameters',
    profile: 'wire',
    facts: ['content-type-kept'],
    remedy: 'Read a Content-Type such as "application/pdf; charset=; version=" without an error, as a header and in a part.',
    run: async ({ ask, created, newDocId }) => {
      const docId = newDocId()
      expectStatus(await ask('create', { docId, ...formOf([partOf('data', 'x', 'text/plain; charset=')]) }), 201)
      expectContent('the component', await ask('get', { docId }), 'x')
      const answer = await ask('get', { docId: await created('%PDF', 'application/pdf; charset=; version=') })
      expectContent('the component by PUT', answer, '%PDF')
      const [mediaType] = (answer.headers['content-type'] ?? '').split(';')
      expectEqual('the media type of get', mediaType!.trim().toLowerCase(), 'application/pdf')
    },
  },
  {
    id: 'part-encodings',
    title: 'a part in base64 or quoted-printable is decoded, or refused',
    profile: 'wire',
    facts: ['part-encodings'],
    remedy:
      'Decode a part as its Content-Transfer-Encoding says, or refuse it with 400 and store nothing: the text would be returned instead of the document.',
    run: async ({ ask, newDocId }) => {
      for (const [encoding, text, bytes] of encodedParts) {
        const docId = newDocId()
        const { headers, body } = partOf('data', text)
        const part = { headers: { ...headers, 'Content-Transfer-Encoding': encoding }, body }
        const answer = await ask('create', { docId, ...formOf([part]) })
        expectStatus(answer, 201, 400, 415, 501)
        if (answer.status === 201) expectContent(`the part in ${encoding}`, await ask('get', { docId }), bytes)
        else expectStatus(await ask('info', { docId }), 404)
      }
    },
  },
  {
    id: 'bytes-kept',
    title: 'every byte value is kept',
    profile: 'core',
    facts: ['bytes-kept'],
    remedy: 'Store and send components as bytes, without converting characters or line ends.',
    run: async ({ ask, created }) => {
      const docId = await created(allBytes, 'application/octet-stream')
      expectContent('the body of get', await ask('get', { docId }), allBytes)
      expectBytes('the part of docGet', onlyPartOf(await ask('docGet', { docId })).body, allBytes)
    },
  },
  {
    id: 'no-bytes-kept',
    title: 'a component may be empty',
    profile: 'wire',
    facts: ['bytes-kept'],
    remedy: 'Accept a component of 0 bytes, and return it with Content-Length 0.',
    run: async ({ ask, created }) => {
      const answer = await ask('get', { docId: await created('') })
      expectStatus(answer, 200)
      expectContent('the body of get', answer, '')
    },
  },
  {
    id: 'mebibyte-kept',
    title: 'a component of 1 MiB is kept',
    profile: 'core',
    facts: ['bytes-kept', 'large-components'],
    remedy: 'Look for a limit of the size of bodies in the server and in the proxies in front of it.',
    run: async ({ ask, created }) => {
      const docId = await created(mebibyte, 'application/octet-stream')
      expectContent('the body of get', await ask('get', { docId }), mebibyte)
    },
  },
  {
    id: 'doc-prot',
    title: 'create accepts docProt',
    profile: 'wire',
    facts: ['doc-prot'],
    remedy: 'Accept the parameter docProt of create: letters of r, c, u and d.',
    run: async ({ ask, newDocId }) =>
      expectStatus(await ask('create', { docId: newDocId(), compId: 'data', more: { docProt: 'rud' }, ...put('protected') }), 201),
  },
  {
    id: 'm-create',
    title: 'mCreate creates several documents, and reports on each',
    profile: 'wire',
    facts: ['m-create'],
    remedy: 'Answer mCreate with 201 and a line docId="...";retCode="201"; per document, in the order of the parts.',
    run: async ({ ask, newDocId }) => {
      const [one, other] = [newDocId(), newDocId()]
      const parts = [partOfDocument(one, 'data', 'a'), partOfDocument(one, 'note', 'b'), partOfDocument(other, 'data', 'c')]
      const answer = offered(await ask('mCreate', { docId: one, ...formOf(parts) }), 403)
      expectStatus(answer, 201)
      expectEqual(
        'the lines of mCreate',
        linesOf(answer).map(({ docId, retCode }) => [docId, retCode]),
        [
          [one, '201'],
          [other, '201'],
        ],
      )
      expectContent('the component of the second document', await ask('get', { docId: other }), 'c')
    },
  },
  {
    id: 'm-create-exists',
    title: 'mCreate creates the missing documents, and keeps the one that exists',
    profile: 'wire',
    facts: ['m-create'],
    remedy: 'Answer mCreate with 250 if a document existed and the others were created; its line has retCode="403".',
    run: async ({ ask, newDocId, created }) => {
      const [fresh, existing] = [newDocId(), await created('old')]
      const parts = [partOfDocument(fresh, 'data', 'new'), partOfDocument(existing, 'data', 'newer')]
      const answer = offered(await ask('mCreate', { docId: fresh, ...formOf(parts) }), 403)
      expectStatus(answer, 250)
      expectEqual(
        'the lines of mCreate',
        linesOf(answer).map(({ docId, retCode }) => [docId, retCode]),
        [
          [fresh, '201'],
          [existing, '403'],
        ],
      )
      expectContent('the document that existed', await ask('get', { docId: existing }), 'old')
      expectContent('the new document', await ask('get', { docId: fresh }), 'new')
    },
  },
]
