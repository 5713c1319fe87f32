import type { Check } from '../check.ts'
import { expectContent, expectStatus } from '../expect.ts'
import { expirationIn, put } from '../source.ts'

const hourMs = 3_600_000

/** Checks of signed URLs. */
export const signatureChecks: readonly Check[] = [
  {
    id: 'signature-missing',
    title: 'a request without a signature is refused with 401',
    profile: 'smoke',
    facts: ['signature-required'],
    needs: ['access', 'signature'],
    remedy: 'Require signatures for this repository: everybody who reaches the server can read and delete its documents.',
    run: async ({ call, queryOf, alphabet: document }) => {
      const query = queryOf('get', { docId: await document() })
      expectStatus(await call(query.replace(/&accessMode=.*/, '')), 401)
      expectStatus(await call(query.replace(/&secKey=.*/, '')), 401)
    },
  },
  {
    id: 'signature-doc-id',
    title: 'the signature of one document does not open another',
    profile: 'core',
    facts: ['signature-covers'],
    needs: ['access', 'signature'],
    remedy: 'Verify the signature over the values of the URL as they stand there: contRep, docId, accessMode, authId, expiration.',
    run: async ({ call, queryOf, alphabet: document, created }) => {
      const other = await created('secret')
      const query = queryOf('get', { docId: await document() })
      expectStatus(await call(query.replace(/docId=[0-9A-F]+/, `docId=${other}`)), 401)
    },
  },
  {
    id: 'signature-repository',
    title: 'the signature for one repository does not count for another',
    profile: 'wire',
    facts: ['signature-covers'],
    needs: ['access', 'signature'],
    remedy: 'Include contRep in the signed text, and look for the certificate in that repository.',
    run: async ({ call, queryOf, alphabet: document }) => {
      const query = queryOf('get', { docId: await document() })
      expectStatus(await call(query.replace(/contRep=[^&]*/, '$&X')), 401, 404, 400)
    },
  },
  {
    id: 'signature-comp-id',
    title: 'the signature of a change covers the component',
    profile: 'wire',
    facts: ['signature-covers'],
    needs: ['access', 'signature'],
    remedy: 'Include compId in the signed text of create and update by PUT, append and delete.',
    run: async ({ call, ask, queryOf, created }) => {
      const docId = await created('kept')
      const query = queryOf('update', { docId, compId: 'note' })
      expectStatus(await call(query.replace('compId=note', 'compId=data'), put('changed')), 401)
      expectContent('the component', await ask('get', { docId, compId: 'data' }), 'kept')
    },
  },
  {
    id: 'signature-doc-prot',
    title: 'the signature of a create covers docProt',
    profile: 'wire',
    facts: ['signature-covers', 'doc-prot'],
    needs: ['access', 'signature'],
    remedy: 'Include docProt in the signed text of create, where the URL has it.',
    run: async ({ call, queryOf, newDocId }) => {
      const query = queryOf('create', { docId: newDocId(), compId: 'data', more: { docProt: 'rud' } })
      expectStatus(await call(query.replace('docProt=rud', 'docProt='), put('unprotected')), 401)
    },
  },
  {
    id: 'signature-leaves',
    title: 'the signature of a read leaves compId and the command open',
    profile: 'wire',
    facts: ['signature-leaves'],
    needs: ['access', 'signature'],
    remedy: 'Leave compId and the command out of the signed text of a read: source systems do not sign them.',
    run: async ({ call, queryOf, alphabet: document }) => {
      const query = queryOf('get', { docId: await document() })
      expectStatus(await call(query.replace('&accessMode', '&compId=data&accessMode')), 200)
      expectStatus(await call(query.replace('get&', 'info&')), 200)
    },
  },
  {
    id: 'signature-access',
    title: 'accessMode must contain the letter of the command',
    profile: 'core',
    facts: ['signature-access'],
    needs: ['access', 'signature'],
    remedy: 'Refuse a command with 401 whose letter is not in accessMode: a link for reading must not delete.',
    run: async ({ ask, created }) => {
      const docId = await created('kept')
      expectStatus(await ask('delete', { docId }, { accessMode: 'r' }), 401)
      expectStatus(await ask('get', { docId }, { accessMode: 'd' }), 401)
      expectStatus(await ask('get', { docId }), 200)
    },
  },
  {
    id: 'signature-access-several',
    title: 'a URL for rd reads and deletes',
    profile: 'wire',
    facts: ['signature-access', 'signature-leaves'],
    needs: ['access', 'signature'],
    remedy: 'Accept an accessMode of several letters for each of their commands.',
    run: async ({ call, queryOf, created }) => {
      const query = queryOf('get', { docId: await created('short-lived') }, { accessMode: 'rd' })
      expectStatus(await call(query), 200)
      expectStatus(await call(query.replace('get&', 'delete&')), 200)
    },
  },
  {
    id: 'signature-expired',
    title: 'an expired URL is refused with 401',
    profile: 'core',
    facts: ['signature-expires'],
    needs: ['access', 'signature'],
    remedy: 'Compare expiration with the time in UTC: links are meant to end.',
    run: async ({ ask, alphabet: document }) =>
      expectStatus(await ask('get', { docId: await document() }, { expiration: expirationIn(-2 * hourMs) }), 401),
  },
  {
    id: 'signature-expiration-form',
    title: 'an expiration that is not a time is refused',
    profile: 'wire',
    facts: ['signature-expires'],
    needs: ['access', 'signature'],
    remedy: 'Refuse an expiration that is not YYYYMMDDHHMMSS with 401.',
    run: async ({ ask, alphabet: document }) =>
      expectStatus(await ask('get', { docId: await document() }, { expiration: '2099-12-31' }), 401, 400),
  },
  {
    id: 'signature-stranger',
    title: 'a signature with an unknown key is refused with 401',
    profile: 'core',
    facts: ['signature-signer'],
    needs: ['access', 'signature'],
    remedy: 'Verify the signature with the active certificates of the repository, and with no key that the request brings.',
    run: async ({ ask, alphabet: document, target }) => {
      const docId = await document()
      const stranger = await target.stranger()
      // The name of a known signer, and a name that the server does not know.
      const authId = target.signer!.authId
      expectStatus(await ask('get', { docId }, { signer: { authId, secKeyOf: (message, at) => stranger.secKeyOf(message, at) } }), 401)
      expectStatus(await ask('get', { docId }, { signer: stranger }), 401)
    },
  },
  {
    id: 'signature-readable',
    title: 'a secKey that was cut off or changed is refused',
    profile: 'wire',
    facts: ['signature-readable'],
    needs: ['access', 'signature'],
    remedy: 'Answer 401 to a secKey that cannot be read, and never 200 or 500.',
    run: async ({ call, queryOf, alphabet: document }) => {
      const query = queryOf('get', { docId: await document() })
      expectStatus(await call(query.slice(0, -100)), 401, 400)
      expectStatus(await call(query.replace(/secKey=.*/, 'secKey=bm90IGEgc2lnbmF0dXJl')), 401, 400)
    },
  },
  {
    id: 'signature-complete',
    title: 'a secKey without its other parameters is refused',
    profile: 'wire',
    facts: ['signature-complete'],
    needs: ['access', 'signature'],
    remedy: 'Refuse a secKey without accessMode, authId or expiration with 400 or 401.',
    run: async ({ call, queryOf, alphabet: document }) => {
      const query = queryOf('get', { docId: await document() })
      for (const name of ['accessMode', 'authId', 'expiration']) {
        expectStatus(await call(query.replace(new RegExp(`&${name}=[^&]*`), '')), 400, 401)
      }
    },
  },
]
