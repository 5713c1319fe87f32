import { newId } from '../../../src/base/ids.ts'
import { expirationIn } from '../../support/signed-query.ts'
import { authId, base, outcomeOf, put, type Step } from './story.ts'

/** A second repository of the workspace, to which the same certificate is sent. */
const otherRepository = 'Z2'

/** Steps about signatures. A repository that does not verify them answers each request as if it had no secKey. */
export const security: Step[] = [
  [
    '29: a signature is valid for its own URL, access mode and time only',
    async ({ scene, workspaceId, isSigned, source, ask, signedUrl, signer, stranger, putCert, activate }) => {
      const id = newId()
      const row = { id, workspace_id: workspaceId, repo_id: otherRepository, name: 'Other', signature_verification: isSigned }
      await scene.db('repositories').insert(row)
      for (const docId of ['S1', 'S2', 'S3']) {
        expect(await outcomeOf(ask('create', { docId, compId: 'data', ...put('secret') }))).toEqual([201])
      }
      const doc = { docId: 'S1' }
      const good = await signedUrl('get', doc)
      expect(await outcomeOf(source.call(good))).toEqual([200])

      const cases: [name: string, query: string, code: string, unsigned?: [number, string?]][] = [
        ['no secKey', good.replace(/&secKey=.*/, ''), 'signature_missing'],
        ['another docId', good.replace('docId=S1', 'docId=S0'), 'signature_invalid', [404, 'document_not_found']],
        ['another docId that exists', good.replace('docId=S1', 'docId=S2'), 'signature_invalid'],
        ['accessMode=r to delete', await signedUrl('delete', { docId: 'S2' }, { accessMode: 'r' }), 'access_mode_denied'],
        ['an expired URL', await signedUrl('get', doc, { expiration: expirationIn(-7_200) }), 'url_expired'],
        ['a malformed expiration', await signedUrl('get', doc, { expiration: '2030-12-31' }), 'url_expired'],
        ['the key of another system', await signedUrl('get', doc, { signer: stranger }), 'signature_invalid'],
        ['half a secKey', good.slice(0, -100), 'signature_invalid'],
      ]
      for (const [name, query, code, unsigned = [200]] of cases) {
        expect([name, ...(await outcomeOf(source.call(query)))]).toEqual([name, ...(isSigned ? [401, code] : unsigned)])
      }

      const elsewhere = good.replace('contRep=Z1', `contRep=${otherRepository}`)
      const absent = [404, 'document_not_found']
      expect(await outcomeOf(source.call(elsewhere))).toEqual(isSigned ? [401, 'certificate_unknown'] : absent)
      expect((await putCert(signer.der, otherRepository)).status).toBe(200)
      await activate(id)
      expect(await outcomeOf(source.call(elsewhere))).toEqual(isSigned ? [401, 'signature_invalid'] : absent)

      // As the protocol intends, a URL whose accessMode allows both commands works for both.
      const both = await signedUrl('get', { docId: 'S3' }, { accessMode: 'rd' })
      expect(await outcomeOf(source.call(both))).toEqual([200])
      expect(await outcomeOf(source.call(both.replace('get&', 'delete&')))).toEqual([200])
      expect(await outcomeOf(ask('get', { docId: 'S3' }))).toEqual(absent)
    },
  ],
  [
    '30: the signed parameters have the order of the measured clients, or any that the repository allows',
    async ({ isSigned, scene, repositoryId, source, sign, signedParameters }) => {
      const parameters = signedParameters('get', { docId: 'S1' })
      const reordered = parameters.toReversed()
      expect(await outcomeOf(source.call(await sign('get', reordered)))).toEqual(isSigned ? [401, 'signature_invalid'] : [200])
      await scene.db('repositories').where({ id: repositoryId }).update({ signed_parameter_order: 'any' })
      expect(await outcomeOf(source.call(await sign('get', reordered)))).toEqual([200])
      const covered = parameters.filter(([name]) => base.includes(name)).map(([, raw]) => raw)
      const inOtherOrder = await sign('get', reordered, { message: covered.join('') })
      expect(await outcomeOf(source.call(inOtherOrder))).toEqual(isSigned ? [401, 'signature_invalid'] : [200])
      await scene.db('repositories').where({ id: repositoryId }).update({ signed_parameter_order: 'fixed' })
    },
  ],
  [
    '31: the authId is signed as it stands in the URL or decoded, and in no other form',
    async ({ isSigned, source, signedUrl }) => {
      const expiration = expirationIn(600)
      const signedOver = (text: string) => signedUrl('get', { docId: 'S1' }, { expiration, message: `Z1S1r${text}${expiration}` })
      expect(await outcomeOf(source.call(await signedOver(authId)))).toEqual([200])
      expect(await outcomeOf(source.call(await signedOver(decodeURIComponent(authId))))).toEqual([200])
      const encoded = await signedOver(authId.replaceAll(',', '%2C'))
      expect(await outcomeOf(source.call(encoded))).toEqual(isSigned ? [401, 'signature_invalid'] : [200])
    },
  ],
]
