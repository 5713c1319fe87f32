import type { Check } from '../check.ts'
import { expectContent, expectContentType, expectEqual, expectStatus, offered } from '../expect.ts'
import { formOf, partOf, partsOf } from '../multipart.ts'
import { put, type Source } from '../source.ts'

const compIdsOf = async ({ ask }: Source, docId: string) => partsOf(await ask('info', { docId })).map(({ headers }) => headers['x-compid'])

const twoComponents = async ({ ask, newDocId }: Source): Promise<string> => {
  const docId = newDocId()
  const parts = [partOf('data', 'the document', 'text/plain'), partOf('note', 'a note', 'application/x-note')]
  expectStatus(await ask('create', { docId, ...formOf(parts) }), 201)
  return docId
}

/** Checks that change and delete documents. */
export const changeChecks: readonly Check[] = [
  {
    id: 'update-put',
    title: 'update by PUT replaces or adds a component, and keeps the others',
    profile: 'core',
    facts: ['update-put'],
    remedy: 'Let update by PUT replace the component of this compId, or add it, and leave all others. Answer 200.',
    run: async (source) => {
      const { ask, created } = source
      const docId = await created('first')
      expectStatus(await ask('update', { docId, compId: 'note', ...put('added', 'application/x-note') }), 200)
      expectStatus(await ask('update', { docId, compId: 'data', ...put('replaced', 'text/csv') }), 200)
      expectEqual('the components after two updates', await compIdsOf(source, docId), ['data', 'note'])
      const replaced = await ask('get', { docId, compId: 'data' })
      expectContent('the component that was replaced', replaced, 'replaced')
      expectContentType('its Content-Type', replaced.headers['content-type'], 'text/csv')
      expectContent('the component that was added', await ask('get', { docId, compId: 'note' }), 'added')
    },
  },
  {
    id: 'update-post',
    title: 'update by POST replaces the whole document',
    profile: 'core',
    facts: ['update-post'],
    remedy: 'Let update by POST remove the components that it does not contain.',
    run: async (source) => {
      const docId = await twoComponents(source)
      expectStatus(await source.ask('update', { docId, ...formOf([partOf('data', 'alone')]) }), 200)
      expectEqual('the components after update by POST', await compIdsOf(source, docId), ['data'])
      expectContent('the component', await source.ask('get', { docId }), 'alone')
    },
  },
  {
    id: 'update-unknown',
    title: 'update of an unknown document is refused with 404, and creates none',
    profile: 'core',
    facts: ['not-found', 'update-put'],
    remedy: 'Answer 404 to an update of a document that does not exist.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      expectStatus(await ask('update', { docId, compId: 'data', ...put('x') }), 404)
      expectStatus(await ask('info', { docId }), 404)
    },
  },
  {
    id: 'append',
    title: 'append adds bytes at the end of a component',
    profile: 'core',
    facts: ['append'],
    remedy: 'Add the body of append at the end of the component, and keep its content type. Answer 200.',
    run: async ({ ask, created }) => {
      const docId = await created('abc', 'application/x-note', 'note')
      for (const body of [' def', ' ghi']) expectStatus(await ask('append', { docId, compId: 'note', ...put(body) }), 200)
      const answer = await ask('get', { docId, compId: 'note' })
      expectContent('the component after two appends', answer, 'abc def ghi')
      expectContentType('its Content-Type', answer.headers['content-type'], 'application/x-note')
    },
  },
  {
    id: 'append-unknown',
    title: 'append to an unknown document or component is refused with 404',
    profile: 'core',
    facts: ['not-found', 'append'],
    remedy: 'Answer 404 to an append to a document or component that does not exist.',
    run: async ({ ask, newDocId, created }) => {
      expectStatus(await ask('append', { docId: newDocId(), compId: 'data', ...put('x') }), 404)
      expectStatus(await ask('append', { docId: await created('abc'), compId: 'nosuch', ...put('x') }), 404)
    },
  },
  {
    id: 'delete-document',
    title: 'delete removes a document',
    profile: 'smoke',
    facts: ['delete-document'],
    remedy: 'Answer delete (a GET) with 200, and 404 to everything that is asked about the document after it.',
    run: async ({ ask, created }) => {
      const docId = await created('to be deleted')
      expectStatus(await ask('delete', { docId }), 200)
      for (const command of ['info', 'get']) expectStatus(await ask(command, { docId }), 404)
    },
  },
  {
    id: 'delete-component',
    title: 'delete with compId removes this component only',
    profile: 'core',
    facts: ['delete-component'],
    remedy: 'Let delete with compId remove one component. A document without components still exists.',
    run: async (source) => {
      const docId = await twoComponents(source)
      expectStatus(await source.ask('delete', { docId, compId: 'note' }), 200)
      expectEqual('the components after the delete', await compIdsOf(source, docId), ['data'])
      expectStatus(await source.ask('delete', { docId, compId: 'data' }), 200)
      expectEqual('the components after the delete of the last one', await compIdsOf(source, docId), [])
    },
  },
  {
    id: 'delete-unknown',
    title: 'delete of an unknown document or component is refused with 404',
    profile: 'core',
    facts: ['not-found', 'delete-document'],
    remedy: 'Answer 404 to a delete of something that does not exist, and change nothing.',
    run: async ({ ask, newDocId, created }) => {
      expectStatus(await ask('delete', { docId: newDocId() }), 404)
      const docId = await created('kept')
      expectStatus(await ask('delete', { docId, compId: 'nosuch' }), 404)
      expectStatus(await ask('get', { docId }), 200)
    },
  },
  {
    id: 'delete-method',
    title: 'delete may be sent with the method DELETE',
    profile: 'wire',
    facts: ['delete-method'],
    remedy: 'Treat DELETE as the GET of the protocol.',
    run: async ({ ask, created }) => {
      const docId = await created('to be deleted')
      expectStatus(offered(await ask('delete', { docId, method: 'DELETE' })), 200)
      expectStatus(await ask('info', { docId }), 404)
    },
  },
]
