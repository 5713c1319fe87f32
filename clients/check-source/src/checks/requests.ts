import type { Check } from '../check.ts'
import { expectContent, expectEqual, expectForm, expectStatus, offered } from '../expect.ts'
import { alphabet, put } from '../source.ts'

/** Checks of the form of requests, and of errors. */
export const requestChecks: readonly Check[] = [
  {
    id: 'error-description',
    title: 'an error has X-ErrorDescription',
    profile: 'core',
    facts: ['error-description'],
    remedy: 'Send X-ErrorDescription with every error: printable ASCII on one line. It is what administrators see in the source system.',
    run: async ({ ask, unusedDocId }) => {
      const answer = await ask('info', { docId: unusedDocId() })
      expectForm('X-ErrorDescription', answer.headers['x-errordescription'], /^[\x20-\x7e]+$/, 'printable ASCII')
    },
  },
  {
    id: 'mandatory-parameters',
    title: 'a request without pVersion or docId is refused with 400',
    profile: 'core',
    facts: ['mandatory-parameters'],
    remedy: 'Answer 400 if a mandatory parameter is missing.',
    run: async ({ call, queryOf, alphabet: document, target, isSigned }) => {
      const docId = await document()
      const query = queryOf('info', { docId })
      // A server that verifies the signature first finds that it does not fit.
      expectStatus(await call(query.replace(`&docId=${docId}`, '')), 400, ...(isSigned ? [401] : []))
      expectStatus(await call(query.replace(`&pVersion=${target.pVersion}`, '')), 400)
    },
  },
  {
    id: 'unknown-commands',
    title: 'an unknown command, and a wrong method, are refused with 400',
    profile: 'core',
    facts: ['unknown-commands'],
    remedy: 'Answer 400 to commands that the server does not have: source systems know no 405 and no 501.',
    run: async ({ call, queryOf, alphabet: document }) => {
      const query = queryOf('info', { docId: await document() })
      expectStatus(await call(query.replace('info&', 'nosuch&')), 400)
      expectStatus(await call(query, put('x')), 400)
    },
  },
  {
    id: 'unknown-repository',
    title: 'a request to an unknown repository is refused',
    profile: 'core',
    facts: ['unknown-repository'],
    remedy: 'Answer 404 to a contRep that does not exist.',
    run: async ({ ask, unusedDocId, isSigned }) =>
      expectStatus(await ask('info', { docId: unusedDocId(), contRep: 'NOSUCHREP' }), 404, 400, ...(isSigned ? [401] : [])),
  },
  {
    id: 'parameter-order',
    title: 'parameters that are not signed may stand anywhere',
    profile: 'wire',
    facts: ['url-form'],
    remedy: 'Read the parameters by their names, not by their places.',
    run: async ({ call, queryOf, alphabet: document, target }) => {
      const query = queryOf('get', { docId: await document(), compId: 'data' })
      const moved = ['&compId=data', `&pVersion=${target.pVersion}`].reduce((text, token) => text.replace(token, '') + token, query)
      const answer = await call(moved)
      expectStatus(answer, 200)
      expectContent('the body of get', answer, alphabet)
    },
  },
  {
    id: 'unknown-parameters',
    title: 'unknown parameters are ignored',
    profile: 'wire',
    facts: ['unknown-parameters'],
    remedy: 'Ignore parameters that the server does not know: source systems add some.',
    run: async ({ ask, alphabet: document }) =>
      expectStatus(offered(await ask('get', { docId: await document(), more: { ixUser: 'TESTER', sp: '1' } })), 200),
  },
  {
    id: 'protocol-versions',
    title: 'the versions 0045, 0046 and 0047 of the protocol are accepted',
    profile: 'wire',
    facts: ['protocol-versions'],
    remedy: 'Accept pVersion 0045, 0046 and 0047, and repeat it in X-pVersion.',
    run: async ({ ask, alphabet: document }) => {
      for (const pVersion of ['0045', '0046', '0047']) {
        const answer = await ask('info', { docId: await document(), pVersion })
        expectStatus(answer, 200)
        expectEqual('X-pVersion of info', answer.headers['x-pversion'], pVersion)
      }
    },
  },
  {
    id: 'doc-ids',
    title: 'a docId may have 40 characters',
    profile: 'wire',
    facts: ['doc-ids'],
    remedy: 'Store docIds of at least 40 characters as they are.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId('01234567')
      expectStatus(await ask('create', { docId, compId: 'data', ...put('long name') }), 201)
      expectContent('the body of get', await ask('get', { docId }), 'long name')
      expectEqual('X-docId of info', (await ask('info', { docId })).headers['x-docid'], docId)
    },
  },
]
