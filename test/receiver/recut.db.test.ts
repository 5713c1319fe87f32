import { createCertificates } from '../../src/access/certificates.ts'
import { newId } from '../../src/base/ids.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { expirationIn, signedQuery, type RawParameter } from '../support/signed-query.ts'
import { createSigner } from '../support/signer.ts'
import { multipartBody, part, partOf, type CallOptions, type SourceAnswer } from '../support/source-system.ts'

// A signature covers the values of the signed parameters without separators. Each test signs a URL as a source system does, and uses its
// secKey in a URL for something else that consists of the same text.

const authId = 'CN%3DSAP'
const expiration = expirationIn(7_200)
const guid = '005056B5A3F21EEFA9C1D04F7B6E8C11'

const [scene, signer] = await Promise.all([startScene().then(share), createSigner('RSA 2048').then(share)])
const workspace = await scene.workspace()
const { workspaceId, repositoryId } = workspace
const repositories = { Z1: repositoryId, Z: newId() }
await scene.db('repositories').insert({ id: repositories['Z'], workspace_id: workspaceId, repo_id: 'Z', name: 'Other' })
await scene.db('connection_repositories').insert({
  connection_id: Object.values(workspace.connections)[0],
  repository_id: repositories['Z'],
  position: 1,
})
await scene.db('repositories').where({ workspace_id: workspaceId }).update({ signature_verification: true })
for (const id of Object.values(repositories)) {
  const actor = { type: 'system', userId: null } as const
  const text = signer.der.toString('base64')
  await createCertificates(scene.db).add({ workspaceId, repositoryId: id, authId: 'CN=SAP', text, actor, status: 'active' })
}

type Values = Record<string, string>

const parametersOf = ({ contRep = 'Z1', accessMode = 'r', ...rest }: Values): RawParameter[] => [
  ['pVersion', '0047'],
  ['contRep', contRep],
  ...Object.entries(rest),
  ['accessMode', accessMode],
  ['authId', authId],
  ['expiration', expiration],
]

/** Returns the secKey for a command with these values, in this order. Leave out what the command does not sign. */
const secKeyOf = async (values: Values): Promise<string> => {
  const parameters = parametersOf(values)
  const signed = parameters.map(([name]) => name).filter((name) => name !== 'pVersion')
  return (await signedQuery(signer, '', parameters, { signed })).split('&secKey=')[1]!
}

const call = (method: 'GET' | 'PUT' | 'POST', command: string, values: Values, secKey: string, body = 'FORGED'): Promise<SourceAnswer> => {
  const query = [command, ...parametersOf(values).map(([name, raw]) => `${name}=${raw}`), `secKey=${secKey}`].join('&')
  if (method === 'GET') return workspace.source.call(query)
  return workspace.source.call(query, method === 'POST' ? inParts(body) : { method, body, headers: { 'content-type': 'text/plain' } })
}

const inParts = (body: string): CallOptions => ({
  method: 'POST',
  headers: { 'content-type': 'multipart/form-data; boundary=B' },
  body: multipartBody('B', [part('data', body)]),
})

/** Sends an mCreate of these documents. */
const callMcreate = async (docIds: string[], secKey: string): Promise<SourceAnswer> => {
  const query = ['mCreate', ...parametersOf({ docId: docIds[0]!, accessMode: 'c' }).map(([name, raw]) => `${name}=${raw}`)]
  return workspace.source.call([...query, `secKey=${secKey}`].join('&'), {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=B' },
    body: multipartBody(
      'B',
      docIds.map((docId) => partOf(docId, 'data', 'FORGED')),
    ),
  })
}

const outcome = ({ status, headers }: SourceAnswer) => [status, headers['x-errordescription']?.split(':')[0]]
const create = async ({ contRep = 'Z1', docId = '', ...more }: Values, body = 'original') => {
  const signedValues = { contRep, docId, compId: 'data', ...more, accessMode: 'c' }
  const secKey = await secKeyOf(signedValues)
  expect(outcome(await call('PUT', 'create', signedValues, secKey, body))).toEqual([201, undefined])
  return secKey
}
const read = async (docId: string, contRep = 'Z1') => {
  const values = { contRep, docId, accessMode: 'r' }
  const answer = await call('GET', 'get', values, await secKeyOf(values))
  return [answer.status, String(answer.body)]
}

// The cases of the security review of November 2026.
describe('a signed URL cannot be used as another one:', () => {
  test('1. the create of a document, to update and delete it', async () => {
    const secKey = await create({ docId: guid, docProt: 'rud' })
    const forged = { docId: guid, compId: 'data', accessMode: 'rudc' }
    expect(outcome(await call('PUT', 'update', forged, secKey))).toEqual([401, 'access_mode_denied'])
    expect(outcome(await call('GET', 'delete', forged, secKey))).toEqual([401, 'access_mode_denied'])
    expect(await read(guid)).toEqual([200, 'original'])
  })

  test('2. the create of a document by POST, to read and delete it', async () => {
    for (const docProt of ['rud', 'r', 'crud']) {
      const docId = `POSTED-${docProt.toUpperCase()}`
      const secKey = await secKeyOf({ docId, docProt, accessMode: 'c' })
      expect(outcome(await call('POST', 'create', { docId, docProt, accessMode: 'c' }, secKey, 'original'))).toEqual([201, undefined])
      const refusal = [401, docProt === 'r' ? 'signature_invalid' : 'access_mode_denied']
      const forged = { docId, accessMode: `${docProt}c` }
      expect(outcome(await call('GET', 'get', forged, secKey))).toEqual(refusal)
      expect(outcome(await call('GET', 'delete', forged, secKey))).toEqual([401, 'access_mode_denied'])
      expect((await read(docId))[0]).toBe(200)
    }
  })

  test('3. the read of a document, to overwrite another one', async () => {
    await create({ docId: 'inv-a' })
    const secKey = await secKeyOf({ docId: 'inv-aug-2026', accessMode: 'r' })
    const query = 'update&pVersion=0047&contRep=Z1&docId=inv-a&accessMode=u&scanPerformed=g-2026r'
    for (const order of ['fixed', 'any']) {
      await scene.db('repositories').where({ id: repositories['Z1'] }).update({ signed_parameter_order: order })
      const forged = `${query}&authId=${authId}&expiration=${expiration}&secKey=${secKey}`
      expect(outcome(await workspace.source.call(forged, inParts('FORGED')))).toEqual([401, 'signature_invalid'])
    }
    await scene.db('repositories').where({ id: repositories['Z1'] }).update({ signed_parameter_order: 'fixed' })
    expect(await read('inv-a')).toEqual([200, 'original'])
  })

  test('4. the read of a document, to delete another one', async () => {
    await create({ docId: 'DOC1' })
    const secKey = await secKeyOf({ docId: 'DOC1d', accessMode: 'r' })
    expect(outcome(await call('GET', 'delete', { docId: 'DOC1', accessMode: 'dr' }, secKey))).toEqual([401, 'access_mode_denied'])
    expect(await read('DOC1')).toEqual([200, 'original'])
  })

  test('5. the read of a document, to create another one', async () => {
    const secKey = await secKeyOf({ docId: 'ab12c', accessMode: 'r' })
    const forged = { docId: 'a', compId: 'b12', accessMode: 'cr' }
    expect(outcome(await call('PUT', 'create', forged, secKey))).toEqual([401, 'access_mode_denied'])
    expect((await read('a'))[0]).toBe(404)
  })

  test('6. the update of a document, to update one of another repository', async () => {
    await create({ docId: 'UPD1' })
    await create({ contRep: 'Z', docId: 'UPD1' })
    const secKey = await secKeyOf({ docId: 'UPD1', compId: 'data', accessMode: 'u' })
    const query = `update&pVersion=0047&contRep=Z&scanPerformed=1&docId=UPD1&compId=data&accessMode=u&authId=${authId}&expiration=${expiration}`
    const answer = await workspace.source.call(`${query}&secKey=${secKey}`, { method: 'PUT', body: 'FORGED' })
    expect(outcome(answer)).toEqual([401, 'signature_invalid'])
    const direct = { contRep: 'Z', docId: '1UPD1', compId: 'data', accessMode: 'u' }
    expect(outcome(await call('PUT', 'update', direct, secKey))).toEqual([401, 'signature_invalid'])
    expect(await read('UPD1', 'Z')).toEqual([200, 'original'])
  })

  test('7. the create of a document, to create one in another repository', async () => {
    const short = await secKeyOf({ docId: 'XX', compId: 'data', accessMode: 'c' })
    const forged = { contRep: 'Z', docId: '1XX', compId: 'data', accessMode: 'c' }
    expect(outcome(await call('PUT', 'create', forged, short))).toEqual([401, 'signature_invalid'])

    const docId = guid.replace('0', '1')
    await create({ contRep: 'Z', docId })
    const generated = await secKeyOf({ contRep: 'Z', docId, compId: 'note', accessMode: 'c' })
    const shortened = { contRep: 'Z1', docId: docId.slice(1), compId: 'note', accessMode: 'c' }
    expect(outcome(await call('PUT', 'create', shortened, generated))).toEqual([401, 'signature_invalid'])
    expect(await scene.db('archive_documents').whereIn('doc_id', ['1XX', docId.slice(1)])).toEqual([])
    // The URLs themselves work, also where the docId begins with the rest of the other name.
    expect(outcome(await call('PUT', 'create', { docId: 'XX', compId: 'data', accessMode: 'c' }, short))).toEqual([201, undefined])
    expect(await read(docId, 'Z')).toEqual([200, 'original'])
  })
})

describe('beyond the cases of the review, a signed URL cannot be used', () => {
  test('for a document whose docId lacks the letters that the accessMode gains', async () => {
    await create({ docId: 'inv-' })
    await create({ docId: 'inv-c' })
    const secKey = await secKeyOf({ docId: 'inv-c', compId: 'data', accessMode: 'u' })
    expect(outcome(await call('PUT', 'update', { docId: 'inv-c', compId: 'data', accessMode: 'u' }, secKey))).toEqual([200, undefined])

    const post = await secKeyOf({ docId: 'inv-c', accessMode: 'u' })
    expect(outcome(await call('POST', 'update', { docId: 'inv-', accessMode: 'cu' }, post))).toEqual([401, 'signature_invalid'])
    expect(await read('inv-')).toEqual([200, 'original'])
    expect(outcome(await call('POST', 'update', { docId: 'inv-c', accessMode: 'u' }, post))).toEqual([200, undefined])
  })

  test('for a document whose docId lacks the flag of the scanner', async () => {
    await create({ docId: 'A' })
    await create({ docId: 'AX' })
    const secKey = await secKeyOf({ docId: 'AX', accessMode: 'u' })
    const query = `update&pVersion=0047&contRep=Z1&docId=A&scanPerformed=X&accessMode=u&authId=${authId}&expiration=${expiration}`
    expect(outcome(await workspace.source.call(`${query}&secKey=${secKey}`, inParts('FORGED')))).toEqual([401, 'signature_invalid'])
    expect(await read('A')).toEqual([200, 'original'])
  })
})

describe('mCreate', () => {
  const stored = (docIds: string[]) =>
    scene.db('archive_documents').where({ repository_id: repositoryId }).whereIn('doc_id', docIds).pluck('doc_id')

  // A file name as KPro stores it, and one that begins like a hexadecimal digit.
  test.each(['data', 'descr', 'Angebot.pdf', 'A'])('cannot use the URL of a create of the component %s', async (compId) => {
    const docId = guid.replace('0', '2')
    const secKey = await secKeyOf({ docId, compId, accessMode: 'c' })
    const docIds = [docId + compId, 'FOREIGN1', 'FOREIGN2']
    expect(outcome(await callMcreate(docIds, secKey))).toEqual([401, 'signature_invalid'])
    expect(await stored(docIds)).toEqual([])
  })

  test.each([
    ['generated', guid.replace('0', '3')],
    ['of 65 characters, with a second generated one', `${guid.replace('0', '4')}_${guid}`],
    ['of 40 hexadecimal digits', `${guid.replace('0', '5')}0123ABCD`],
    ['of another form', 'kpro-object-17.pdf'],
  ])('is accepted under an id that is %s', async (_, docId) => {
    const secKey = await secKeyOf({ docId, accessMode: 'c' })
    expect(outcome(await callMcreate([docId, `OTHER-${docId.slice(0, 40)}`], secKey))).toEqual([201, undefined])
  })

  test('is refused if the repository does not accept it, signed or not, and a create is not', async () => {
    const change = (values: object) => scene.db('repositories').where({ id: repositoryId }).update(values)
    const docId = guid.replace('0', '6')
    const secKey = await secKeyOf({ docId, accessMode: 'c' })
    await change({ accepts_mcreate: false })
    expect(outcome(await callMcreate([docId], secKey))).toEqual([403, 'command_not_allowed'])
    await change({ signature_verification: false })
    expect(outcome(await callMcreate([docId], secKey))).toEqual([403, 'command_not_allowed'])
    await change({ signature_verification: true })
    expect(outcome(await call('POST', 'create', { docId, accessMode: 'c' }, secKey))).toEqual([201, undefined])
    await change({ accepts_mcreate: true })
    expect(await stored([docId])).toEqual([docId])
  })
})

test('a signed scanPerformed, and an accessMode of several letters, are accepted', async () => {
  await create({ docId: 'SCANNED' })
  for (const scanPerformed of ['X', '']) {
    const values = { docId: 'SCANNED', compId: 'data', scanPerformed, accessMode: 'u' }
    expect(outcome(await call('PUT', 'append', values, await secKeyOf(values), '!'))).toEqual([200, undefined])
    // Other clients send the flag without signing it.
    const { scanPerformed: _, ...unsigned } = values
    expect(outcome(await call('PUT', 'append', values, await secKeyOf(unsigned), '?'))).toEqual([200, undefined])
  }
  expect(await read('SCANNED')).toEqual([200, 'original!?!?'])
  for (const accessMode of ['crud', 'rcud', 'rd', 'rc']) {
    const values = { docId: 'SCANNED', accessMode }
    expect(outcome(await call('GET', 'get', values, await secKeyOf(values)))).toEqual([200, undefined])
  }
})
