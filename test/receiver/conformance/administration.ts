import { outcomeOf, put, type Step } from './story.ts'

export const alphabet = 'abcdefghijklmnopqrstuvwxyz'
export const alphabetType = 'text/plain; charset=ISO-8859-1'
const creation = { docId: 'D1', compId: 'data', more: { docProt: 'rud' }, ...put(alphabet, alphabetType) }

/** The setup by the administrators of both systems, and the first document. */
export const administration: Step[] = [
  [
    '1: serverInfo reports the server and the repository as running',
    async ({ source }) => {
      for (const more of ['', '&contRep=Z1']) {
        const answer = await source.serverInfo(more)
        expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain; charset=us-ascii'])
        const [server, repository, ...rest] = String(answer.body).split('\r\n')
        expect(server).toMatch(/^serverStatus="running";(\w+="[^"]*";)+$/)
        expect(repository).toMatch(/^contRep="Z1";.*contRepStatus="running";(\w+="[^"]*";)+$/)
        expect(rest).toEqual([''])
      }
      expect(await outcomeOf(source.serverInfo('&contRep=Z1&resultAs=html'))).toEqual([200])
    },
  ],
  [
    '2: putCert refuses a body that is not a certificate',
    async ({ putCert, certificates, repositoryId }) => {
      expect(await outcomeOf(putCert('garbage'))).toEqual([406, 'certificate_unreadable'])
      expect(await certificates.listAll(repositoryId)).toEqual([])
    },
  ],
  [
    '3: putCert stores one inactive certificate, from DER, PEM and PKCS #7',
    async ({ putCert, signer, certificates, repositoryId }) => {
      for (const body of [signer.der, signer.pem, signer.pkcs7]) {
        expect(await putCert(body)).toMatchObject({ status: 200, headers: { 'content-length': '0' } })
      }
      expect(await certificates.listAll(repositoryId)).toMatchObject([{ status: 'inactive' }])
    },
  ],
  [
    '4: a signed create before the activation is refused if the repository verifies signatures',
    async ({ isSigned, source, ask, signedUrl }) => {
      const created = await outcomeOf(source.call(await signedUrl('create', creation), creation))
      expect(created).toEqual(isSigned ? [401, 'certificate_inactive'] : [201])
      // Without verification the document now exists. Delete it, because the next step creates it.
      if (!isSigned) expect(await outcomeOf(ask('delete'))).toEqual([200])
    },
  ],
  [
    '5: the same create after the activation succeeds',
    async ({ activate, source, signedUrl, certificates, repositoryId }) => {
      await activate()
      expect(await certificates.listAll(repositoryId)).toMatchObject([{ status: 'active' }])
      const answer = await source.call(await signedUrl('create', creation), creation)
      expect(answer).toMatchObject({ status: 201, reason: 'created', headers: { 'content-length': '0' } })
    },
  ],
  [
    '6: repeating the create is refused',
    async ({ ask }) => {
      expect(await outcomeOf(ask('create', creation))).toEqual([403, 'document_exists'])
    },
  ],
]
