import { certificateMessageOf } from '../certificate-message.ts'
import type { Check } from '../check.ts'
import { expectContent, expectForm, expectStatus } from '../expect.ts'
import { alphabet, type Source } from '../source.ts'

const putCert = (source: Source, body: string | Buffer, authId: string) =>
  source.ask('putCert', { method: 'PUT', body, more: { authId: encodeURIComponent(authId).replaceAll('%2C', ',') } })

const ownAuthId = ({ target }: Source) => target.throwAway!.signer.authId

/** Checks of the certificate of the run, before it is active. */
export const certificateChecks: readonly Check[] = [
  {
    id: 'put-cert-garbage',
    title: 'putCert refuses a body that is not a certificate',
    profile: 'wire',
    facts: ['put-cert', 'error-description'],
    needs: [],
    remedy: 'Answer 406 with X-ErrorDescription to a putCert whose body is not a certificate, and store nothing.',
    run: async (source) => {
      const answer = await putCert(source, 'this is not a certificate', 'CN=relay check')
      expectStatus(answer, 406)
      expectForm('X-ErrorDescription', answer.headers['x-errordescription'], /^[\x20-\x7e]+$/, 'printable ASCII')
    },
  },
  {
    id: 'put-cert',
    title: 'putCert accepts the certificate of this run',
    profile: 'smoke',
    facts: ['put-cert', 'put-cert-forms'],
    needs: ['throw-away'],
    remedy: 'Accept an unsigned putCert with an X.509 certificate (DER) for an existing repository. Or sign with --certificate and --key.',
    run: async (source) => expectStatus(await putCert(source, source.target.throwAway!.certificate.der, ownAuthId(source)), 200),
  },
  {
    id: 'put-cert-forms',
    title: 'putCert accepts the same certificate as PEM and in a PKCS#7 message',
    profile: 'wire',
    facts: ['put-cert-forms'],
    needs: ['throw-away'],
    remedy: 'Read the certificate of a putCert as PKCS#7 (DER), X.509 (DER) and PEM, whatever its Content-Type is.',
    run: async (source) => {
      const { der, pem } = source.target.throwAway!.certificate
      expectStatus(await putCert(source, certificateMessageOf(der), ownAuthId(source)), 200)
      expectStatus(await putCert(source, pem, ownAuthId(source)), 200)
    },
  },
  {
    id: 'put-cert-inert',
    title: 'a certificate that nobody has activated gives no access',
    profile: 'smoke',
    facts: ['put-cert-inert', 'signature-signer'],
    needs: ['throw-away'],
    remedy:
      'Require signatures for the repository, and let a certificate take effect only when an administrator has activated it: anybody can send one.',
    run: async ({ ask, unusedDocId }) => expectStatus(await ask('info', { docId: unusedDocId() }), 401),
  },
]

/** Checks of a second certificate, which the administrator also activates. */
export const chainChecks: readonly Check[] = [
  {
    id: 'put-cert-chain',
    title: 'putCert takes the certificate of the signer out of a chain that begins with its authority',
    profile: 'wire',
    facts: ['put-cert-chain'],
    needs: ['access', 'throw-away'],
    remedy:
      'Of the certificates of a PKCS#7 message, take the one that has issued none of the others: they come in any order, and often that of the authority is first.',
    run: async (source) => {
      const { ask, target } = source
      const { signer, message, activated } = await target.throwAway!.chain()
      const docId = await source.alphabet()
      expectStatus(await putCert(source, message, signer.authId), 200)
      await activated(async () => (await ask('get', { docId }, { signer })).status !== 401)
      expectContent('the component', await ask('get', { docId }, { signer }), alphabet)
    },
  },
]
