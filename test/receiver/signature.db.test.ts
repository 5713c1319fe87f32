import { createCertificates } from '../../src/access/certificates.ts'
import { readCertificate } from '../../src/security/certificate.ts'
import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { expirationIn, signedQuery, type RawParameter } from '../support/signed-query.ts'
import { createSigner, type KeyKind, type Signer } from '../support/signer.ts'
import { multipartBody, part, type CallOptions, type SourceAnswer } from '../support/source-system.ts'
import { expectRefusal } from './answers.ts'

const [scene, stranger] = await Promise.all([
  startScene({ variables: { RELAY_SIGNATURE_SKEW_MS: '60000' } }).then(share),
  createSigner('DSA 1024').then(share),
])

const authId = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE'
const decodedAuthId = decodeURIComponent(authId)

interface Changes {
  docId?: string
  compId?: string
  contRep?: string
  mode?: string
  expiration?: string
  authId?: string
}

const beginOf = ({ docId = 'D1', contRep = 'Z1' }: Changes): RawParameter[] => [
  ['pVersion', '0045'],
  ['contRep', contRep],
  ['docId', docId],
]
const endOf = (mode: string, changes: Changes): RawParameter[] => [
  ['accessMode', changes.mode ?? mode],
  ['authId', changes.authId ?? authId],
  ['expiration', changes.expiration ?? expirationIn(7_200)],
]
const base = ['contRep', 'docId', 'accessMode', 'authId', 'expiration']

const putOf = (body: string): CallOptions => ({ method: 'PUT', body, headers: { 'content-type': 'text/plain' } })
const outcome = ({ status, headers }: SourceAnswer) => [status, headers['x-errordescription']?.split(':')[0]]

/** Creates a repository that requires signatures, a source system with its own key, and the actions of an operator on certificates. */
const startSigned = async (signer: Signer, digest: string) => {
  const workspace: SceneWorkspace = await scene.workspace()
  await scene.db('repositories').where({ id: workspace.repositoryId }).update({ signature_verification: true })
  const certificates = createCertificates(scene.db)
  const { source, workspaceId, repositoryId } = workspace
  const sign = (command: string, parameters: RawParameter[], signed: string[], message?: string) =>
    signedQuery(signer, command, parameters, message === undefined ? { signed, digest } : { signed, digest, message })
  const createQuery = (changes: Changes = {}) =>
    sign(
      'create',
      [...beginOf(changes), ['compId', changes.compId ?? 'data'], ['docProt', 'rud'], ...endOf('c', changes)],
      [...base, 'compId', 'docProt'],
    )
  const getQuery = (changes: Changes = {}, message?: string) =>
    sign('get', [...beginOf(changes), ['compId', changes.compId ?? 'data'], ...endOf('r', changes)], base, message)
  return {
    ...workspace,
    sign,
    createQuery,
    getQuery,
    create: async (changes: Changes = {}) => source.call(await createQuery(changes), putOf('hello')),
    get: async (changes: Changes = {}, message?: string) => source.call(await getQuery(changes, message)),
    putCert: (body: string | Buffer, id = authId) => source.call(`putCert&pVersion=0046&authId=${id}&contRep=Z1`, { method: 'PUT', body }),
    setStatus: async (der: Buffer, status: 'active' | 'inactive') => {
      const { fingerprintSha256 } = readCertificate(der)!
      const all = await certificates.listAll(repositoryId)
      const { id } = all.find((certificate) => certificate.fingerprintSha256 === fingerprintSha256)!
      await certificates.setStatus({ workspaceId, repositoryId, actor: { type: 'system', userId: null } }, id, status)
    },
    list: () => certificates.listAll(repositoryId),
  }
}

/** Starts a source system whose certificate is active, and which has created the document D1. */
const startAccepted = async (signer: Signer, digest: string) => {
  const signed = await startSigned(signer, digest)
  await signed.putCert(signer.der)
  await signed.setStatus(signer.der, 'active')
  await signed.create()
  return signed
}

describe.each<[KeyKind, string]>([
  ['DSA 1024', 'sha1'],
  ['RSA 2048', 'sha256'],
])('a source system that signs with %s and %s', (kind, digest) => {
  let signer: Signer
  let signed: Awaited<ReturnType<typeof startSigned>>

  beforeAll(async () => {
    signer = await createSigner(kind)
    signed = await startAccepted(signer, digest)
  })
  afterAll(() => signer.remove())

  // As administrators do it: send, compare, activate.
  test('is accepted once the certificate that it has sent is activated', async () => {
    const fresh = await startSigned(signer, digest)
    const garbage = await fresh.putCert('garbage')
    expect(outcome(garbage)).toEqual([406, 'certificate_unreadable'])
    expect(outcome(await fresh.create())).toEqual([401, 'certificate_unknown'])

    for (const body of [signer.der, signer.pem, signer.pkcs7]) {
      const answer = await fresh.putCert(body)
      expect([answer.status, answer.headers['content-length'], String(answer.body)]).toEqual([200, '0', ''])
    }
    expect(await fresh.list()).toMatchObject([{ status: 'inactive', authId: decodedAuthId }])
    expect(outcome(await fresh.create())).toEqual([401, 'certificate_inactive'])
    expect(await fresh.countRows()).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })

    await fresh.setStatus(signer.der, 'active')
    expect(outcome(await fresh.create())).toEqual([201, undefined])
    const answer = await fresh.get()
    expect([answer.status, String(answer.body)]).toEqual([200, 'hello'])
    expect(outcome(await fresh.create())).toEqual([403, 'document_exists'])
    expect(await fresh.putCert(signer.der)).toMatchObject({ status: 200 })
    expect(await fresh.list()).toMatchObject([{ status: 'active' }])
  })

  // Step 29.
  test.each<[string, number, string | undefined, () => Promise<SourceAnswer>]>([
    ['no secKey', 401, 'signature_missing', () => signed.source.get('D1')],
    [
      'an empty secKey',
      401,
      'signature_missing',
      () => signed.source.get('D1', '&accessMode=r&authId=x&expiration=20301231235959&secKey='),
    ],
    ['another docId', 401, 'signature_invalid', async () => signed.source.call((await signed.getQuery()).replace('docId=D1', 'docId=D2'))],
    ['another contRep', 401, 'signature_invalid', async () => signed.get({}, `Z2D1r${authId}${expirationIn(60)}`)],
    [
      'a later expiration',
      401,
      'signature_invalid',
      async () => signed.source.call((await signed.getQuery()).replace('&expiration=2', '&expiration=3')),
    ],
    ['accessMode=c to get', 401, 'access_mode_denied', () => signed.get({ mode: 'c' })],
    ['accessMode=r to create', 401, 'access_mode_denied', () => signed.create({ docId: 'D3', mode: 'r' })],
    ['an accessMode with an unknown letter', 401, 'access_mode_denied', () => signed.get({ mode: 'rw' })],
    ['an accessMode that repeats a letter', 401, 'access_mode_denied', () => signed.get({ mode: 'rr' })],
    ['an accessMode in another order', 401, 'access_mode_denied', () => signed.get({ mode: 'dr' })],
    ['an empty accessMode', 401, 'access_mode_denied', () => signed.get({ mode: '' })],
    ['accessMode=crud to get', 200, undefined, () => signed.get({ mode: 'crud' })],
    ['accessMode=rcud to get', 200, undefined, () => signed.get({ mode: 'rcud' })],
    ['an expiration in the past', 401, 'url_expired', () => signed.get({ expiration: expirationIn(-120) })],
    ['an expiration within the allowed clock skew', 200, undefined, () => signed.get({ expiration: expirationIn(-30) })],
    ['an expiration of 13 digits', 401, 'url_expired', () => signed.get({ expiration: '2030123123595' })],
    ['an expiration that is not a valid date', 401, 'url_expired', () => signed.get({ expiration: '20301331235959' })],
    ['another authId', 401, 'certificate_unknown', () => signed.get({ authId: 'CN%3DABC' })],
    ['an authId with a NUL', 401, 'certificate_unknown', () => signed.get({ authId: 'CN%00' })],
    [
      'the key of another system',
      401,
      'signature_invalid',
      async () => signed.source.call(await signedQuery(stranger, 'get', [...beginOf({}), ...endOf('r', {})], { signed: base })),
    ],
    ['half a secKey', 401, 'signature_invalid', async () => signed.source.call((await signed.getQuery()).slice(0, -100))],
    [
      'a secKey that is not base64',
      401,
      'signature_invalid',
      async () => signed.source.call((await signed.getQuery()).replace('secKey=', 'secKey=%21')),
    ],
    ['no accessMode', 400, 'invalid_parameter', async () => signed.source.call((await signed.getQuery()).replace('&accessMode=r', ''))],
    ['no authId', 400, 'invalid_parameter', async () => signed.source.call((await signed.getQuery()).replace(`&authId=${authId}`, ''))],
    ['no expiration', 400, 'invalid_parameter', async () => signed.source.call((await signed.getQuery()).replace(/&expiration=\d+/, ''))],
  ])('with %s is answered with %d %s', async (_, status, code, ask) => {
    const answer = await ask()
    expect(outcome(answer)).toEqual([status, code])
    expect(answer.headers['www-authenticate']).toBeUndefined()
    if (code) expectRefusal(answer, code)
  })

  test('can use the URL of one command for another command that the accessMode allows', async () => {
    const query = await signed.getQuery({ mode: 'rd' })
    expect((await signed.source.call(query.replace('get&', 'info&'))).status).toBe(200)
    expect((await signed.source.call(query, { method: 'HEAD' })).status).toBe(200)
  })

  test('creates by POST with a signature that does not cover the parts', async () => {
    const query = await signed.sign('create', [...beginOf({ docId: 'P1' }), ...endOf('c', {})], base)
    const post = (text: string) =>
      signed.source.call(text, {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=B' },
        body: multipartBody('B', [part('data', 'hello'), part('note', 'a note')]),
      })
    expect(outcome(await post(query.replace('docId=P1', 'docId=P2')))).toEqual([401, 'signature_invalid'])
    expect(outcome(await post(query))).toEqual([201, undefined])
    const info = await signed.source.call(await signed.sign('info', [...beginOf({ docId: 'P1' }), ...endOf('r', {})], base))
    expect([info.status, info.headers['x-numbercomps']]).toEqual([200, '2'])
  })

  test('can change parameters that the protocol leaves unsigned', async () => {
    const query = await signed.getQuery()
    expect(String((await signed.source.call(query.replace('compId=data', 'compId=DATA&fromOffset=1'))).body)).toBe('ello')
  })

  // Step 30.
  test('must order the signed parameters as all measured clients do, unless the repository allows any order', async () => {
    const parameters = [...endOf('r', {}), ...beginOf({}).toReversed()]
    const inOtherOrder = await signed.sign('get', parameters, base)
    const refused = await signed.source.call(inOtherOrder)
    expect([refused.status, refused.headers['x-errordescription']]).toEqual([
      401,
      'signature_invalid: the signed parameters must stand in the order contRep, docId, accessMode, authId, expiration',
    ])
    // The order of the other parameters does not matter.
    const [pVersion, ...rest] = [...beginOf({}), ...endOf('r', {})]
    const unsignedLast = await signed.sign('get', [['compId', 'data'], ...rest, pVersion!], base)
    expect((await signed.source.call(unsignedLast)).status).toBe(200)

    const setOrder = (order: string) =>
      scene.db('repositories').where({ id: signed.repositoryId }).update({ signed_parameter_order: order })
    await setOrder('any')
    expect((await signed.source.call(inOtherOrder)).status).toBe(200)
    const message = parameters
      .filter(([name]) => base.includes(name))
      .toReversed()
      .map(([, raw]) => raw)
      .join('')
    expect(outcome(await signed.source.call(await signed.sign('get', parameters, base, message)))).toEqual([401, 'signature_invalid'])
    await setOrder('fixed')
  })

  test('can also sign the decoded values', async () => {
    const expiration = expirationIn(600)
    expect((await signed.get({ expiration }, `Z1D1r${decodedAuthId}${expiration}`)).status).toBe(200)
    expect((await signed.create({ docId: 'D4', compId: 'a%20b%C3%A4.txt' })).status).toBe(201)
  })

  test('is accepted with a secKey that a proxy has decoded or stripped of its padding', async () => {
    const query = await signed.getQuery()
    const [begin, secKey = ''] = query.split('&secKey=')
    const plain = decodeURIComponent(secKey)
    expect((await signed.source.call(`${begin}&secKey=${plain}`)).status).toBe(200)
    expect((await signed.source.call(`${begin}&secKey=${plain.replace(/=+$/, '').replaceAll('+', '%20')}`)).status).toBe(200)
  })

  test('can use its old and its new certificate while it renews its key', async () => {
    const renewing = await startAccepted(signer, digest)
    const renewed = await createSigner(kind)
    const byNew = await signedQuery(renewed, 'get', [...beginOf({}), ...endOf('r', {})], { signed: base, digest })
    expect(outcome(await renewing.source.call(byNew))).toEqual([401, 'signature_invalid'])
    await renewing.putCert(renewed.der)
    expect(outcome(await renewing.source.call(byNew))).toEqual([401, 'certificate_inactive'])
    await renewing.setStatus(renewed.der, 'active')
    expect([(await renewing.source.call(byNew)).status, (await renewing.get()).status]).toEqual([200, 200])
    await renewing.setStatus(signer.der, 'inactive')
    expect((await renewing.source.call(byNew)).status).toBe(200)
    expect(outcome(await renewing.get())).toEqual([401, 'certificate_inactive'])
    await renewed.remove()
  })
})

describe('a repository that does not require signatures', () => {
  test('ignores any secKey', async () => {
    const { source } = await scene.workspace()
    expect((await source.create('D1', 'hello')).status).toBe(201)
    for (const more of ['', '&secKey=nonsense', '&accessMode=x&authId=%00&expiration=0&secKey=MIIB']) {
      expect(String((await source.get('D1', more)).body)).toBe('hello')
    }
  })
})

describe('putCert', () => {
  test('adds an inactive certificate and an entry in the audit log', async () => {
    const { source, workspaceId, repositoryId } = await scene.workspace()
    const answer = await source.call('putCert&pVersion=0045&contRep=Z1&authId=CN%3DTST&permissions=rcud', {
      method: 'PUT',
      body: stranger.pem,
    })
    expect(answer.status).toBe(200)
    const [certificate] = await createCertificates(scene.db).listAll(repositoryId)
    expect(certificate).toMatchObject({ authId: 'CN=TST', status: 'inactive', keyAlgorithm: 'dsa', keyBits: 1024 })
    expect(await scene.db('audit_logs').where({ workspace_id: workspaceId }).whereNot({ event: 'apikey.created' })).toMatchObject([
      {
        event: 'cert.received',
        subject_id: certificate?.id,
        actor_type: 'system',
        user_id: null,
        metadata: { fingerprint_sha256: certificate?.fingerprintSha256 },
      },
    ])
  })

  test('is refused for an unknown repository, an invalid authId or an unreadable certificate', async () => {
    const { source, path } = await scene.workspace()
    const put = (query: string, body: string | Buffer) => source.call(`putCert&pVersion=0045&${query}`, { method: 'PUT', body })
    expect(outcome(await put('contRep=Z9&authId=CN%3DTST', stranger.der))).toEqual([404, 'repository_not_found'])
    expect(outcome(await put('contRep=Z1', stranger.der))).toEqual([400, 'invalid_parameter'])
    expect(outcome(await put('contRep=Z1&authId=', stranger.der))).toEqual([400, 'invalid_parameter'])
    expect(outcome(await put('contRep=Z1&authId=%00', stranger.der))).toEqual([400, 'invalid_parameter'])
    expect(outcome(await put('contRep=Z1&authId=CN%3DTST', ''))).toEqual([406, 'certificate_unreadable'])
    expect(outcome(await put('contRep=Z1&authId=CN%3DTST', Buffer.alloc(256 * 1024 + 1)))).toEqual([400, 'too_large'])
    const response = await fetch(`${scene.api.baseUrl}${path}?putCert&pVersion=0045&contRep=Z1&authId=CN%3DTST`)
    expect(response.status).toBe(400)
  })

  test('is refused for a key that is too short', async () => {
    const { source, repositoryId } = await scene.workspace()
    const short = await createSigner('RSA 512')
    const answer = await source.call('putCert&pVersion=0045&contRep=Z1&authId=CN%3DTST', { method: 'PUT', body: short.der })
    expect(outcome(answer)).toEqual([406, 'certificate_too_weak'])
    expect(await createCertificates(scene.db).listAll(repositoryId)).toEqual([])
    await short.remove()
  })

  test('keeps room for the source system: beyond the limit, the oldest unreviewed certificate of an address gives way to the next one', async () => {
    const small = await startScene({ limits: { receiver: { maxUnreviewedCertificates: 2 } } })
    const { source, repositoryId } = await small.workspace()
    const put = (authName: string) =>
      source.call(`putCert&pVersion=0045&contRep=Z1&authId=${authName}`, { method: 'PUT', body: stranger.der })
    for (const name of ['A', 'B', 'C']) expect(outcome(await put(name))).toEqual([200, undefined])
    expect((await createCertificates(small.db).listAll(repositoryId)).map(({ authId: name }) => name)).toEqual(['B', 'C'])
    await small.stop()
  })

  test('is refused if the address sends too many certificates', async () => {
    const small = await startScene({ limits: { receiver: { certificatesPerMinute: 2 } } })
    const { source, repositoryId } = await small.workspace()
    const put = () => source.call('putCert&pVersion=0045&contRep=Z1&authId=A', { method: 'PUT', body: stranger.der })
    expect([outcome(await put()), outcome(await put())]).toEqual([
      [200, undefined],
      [200, undefined],
    ])
    const refused = await put()
    expect(outcome(refused)).toEqual([503, 'too_many_certificates'])
    expect(refused.headers['retry-after']).toMatch(/^\d+$/)
    expect(await createCertificates(small.db).listAll(repositoryId)).toHaveLength(1)
    await small.stop()
  })
})

describe('getCert', () => {
  test('returns whether signatures are required, and the active certificates', async () => {
    const signed = await startSigned(stranger, 'sha1')
    await signed.putCert(stranger.pkcs7)
    const ask = async () => String((await signed.source.call('getCert&pVersion=0046&contRep=Z1')).body)
    expect(await ask()).toBe('security="1";\r\n')
    await signed.setStatus(stranger.der, 'active')
    const facts = readCertificate(stranger.der)!
    const format = (time: Date) => time.toISOString().slice(0, 19).replace('T', ' ')
    expect(await ask()).toBe(
      'security="1";\r\n' +
        `subject="${facts.subject}";issuer="${facts.issuer}";serialNumber="${facts.serialNumber}";notBefore="${format(facts.validFrom)}";` +
        `notAfter="${format(facts.validTo)}";keyInfo="${facts.fingerprintSha1}";certificate="${stranger.pkcs7.toString('hex')}";\r\n`,
    )
    await scene.db('repositories').where({ id: signed.repositoryId }).update({ signature_verification: false })
    expect((await ask()).split('\r\n')[0]).toBe('security="0";')
  })
})

describe('an authId that something on the way has rewritten', () => {
  let signer: Signer
  let signed: Awaited<ReturnType<typeof startSigned>>
  const signedAuthId = 'CN%3DMy%20System,OU%3DI0099999999,O%3DA+B%20GmbH,C%3DDE'
  const messageOf = (expiration: string, spelling = signedAuthId) => `Z1D1r${spelling}${expiration}`

  beforeAll(async () => {
    signer = await createSigner('RSA 2048')
    signed = await startSigned(signer, 'sha256')
    await signed.putCert(signer.der, signedAuthId)
    await signed.setStatus(signer.der, 'active')
    await signed.create({ authId: signedAuthId })
  })
  afterAll(() => signer.remove())

  test.each([
    ['decoded, but for its blank', 'CN=My%20System,OU=I0099999999,O=A+B%20GmbH,C=DE'],
    ['with lower-case digits', 'CN%3dMy%20System,OU%3dI0099999999,O%3dA%2bB%20GmbH,C%3dDE'],
    ['with more characters encoded', 'CN%3DMy%20System%2COU%3DI0099999999%2CO%3DA%2BB%20GmbH%2CC%3DDE'],
    ['encoded twice', 'CN%253DMy%2520System,OU%253DI0099999999,O%253DA+B%2520GmbH,C%253DDE'],
    ['as a form', 'CN%3DMy+System%2COU%3DI0099999999%2CO%3DA%2BB+GmbH%2CC%3DDE'],
    ['with its plus taken for a blank', 'CN%3DMy%20System,OU%3DI0099999999,O%3DA%20B%20GmbH,C%3DDE'],
    ['in lower case', 'cn%3Dmy%20system,ou%3Di0099999999,o%3Da+b%20gmbh,c%3Dde'],
    ['in the other order', 'C%3DDE,O%3DA+B%20GmbH,OU%3DI0099999999,CN%3DMy%20System'],
    ['with blanks behind its commas', 'CN%3DMy%20System,%20OU%3DI0099999999,%20O%3DA+B%20GmbH,%20C%3DDE'],
    ['as OpenSSL writes it', '%2FC%3DDE%2FO%3DA+B%20GmbH%2FOU%3DI0099999999%2FCN%3DMy%20System'],
  ])('is accepted %s', async (_, rewritten) => {
    const expiration = expirationIn(7_200)
    const answer = await signed.get({ authId: rewritten, expiration }, messageOf(expiration))
    expect([outcome(answer), String(answer.body)]).toEqual([[200, undefined], 'hello'])
  })

  test.each([
    ['names somebody else', 'CN%3DMy%20System,OU%3DI0099999999,O%3DC,C%3DDE', 'certificate_unknown'],
    ['names a part only', 'CN%3DMy%20System', 'certificate_unknown'],
  ])('is refused if it %s', async (_, other, code) => {
    const expiration = expirationIn(7_200)
    expect(outcome(await signed.get({ authId: other, expiration }, messageOf(expiration)))).toEqual([401, code])
  })

  test('opens no other document, and nothing for another key', async () => {
    const expiration = expirationIn(7_200)
    const rewritten = { authId: 'cn=my%20system,OU=I0099999999,O=A+B%20GmbH,C=DE', expiration }
    expect(outcome(await signed.get({ ...rewritten, docId: 'D2' }, messageOf(expiration)))).toEqual([401, 'signature_invalid'])
    const query = await signedQuery(stranger, 'get', [...beginOf({}), ...endOf('r', rewritten)], {
      signed: base,
      digest: 'sha256',
      message: messageOf(expiration),
    })
    expect(outcome(await signed.source.call(query))).toEqual([401, 'signature_invalid'])
  })

  test('is accepted although somebody has sent a certificate under the rewritten name', async () => {
    const rewritten = 'CN=MY SYSTEM,OU=I0099999999,O=A B GMBH,C=DE'.replaceAll(' ', '%20')
    expect((await signed.putCert(stranger.der, rewritten)).status).toBe(200)
    const expiration = expirationIn(7_200)
    expect(outcome(await signed.get({ authId: rewritten, expiration }, messageOf(expiration)))).toEqual([200, undefined])
  })
})
