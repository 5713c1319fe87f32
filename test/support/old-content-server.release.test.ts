import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createIdentity, throwAwayOf } from '../../clients/check-source/src/throw-away.ts'
import { serverFaults, type ServerFault } from './old-content-server-faults.ts'
import { startOldContentServer } from './old-content-server.ts'
import { share } from './share.ts'
import { expirationIn, signedQuery, type RawParameter } from './signed-query.ts'
import { createSigner } from './signer.ts'
import { createSourceSystem, part, partOf } from './source-system.ts'

const start = async (faults: ServerFault[] = []) => {
  const server = await startOldContentServer({ faults })
  return { server, source: createSourceSystem(server.url) }
}

test('it imports nothing of the relay', async () => {
  for (const name of ['old-content-server', 'old-content-server-wire', 'old-content-server-faults']) {
    expect(await readFile(new URL(`${name}.ts`, import.meta.url), 'utf8')).not.toMatch(/from '[^']*src\//)
  }
})

test('a document is created, read, changed and deleted', async () => {
  const { server, source } = await start()
  await using _ = server
  expect(await source.create('D1', 'HELLO', { headers: { 'content-type': 'text/plain; charset=ISO-8859-1' } })).toMatchObject({
    status: 201,
    reason: 'created',
  })
  expect(await source.create('D1', 'again')).toMatchObject({
    status: 403,
    headers: { 'x-errordescription': 'document already exists' },
  })
  expect((await source.update('D1', 'abc', { compId: 'note' })).status).toBe(200)
  expect((await source.append('D1', 'def', 'note')).status).toBe(200)
  const info = await source.info('D1')
  expect(info.headers).toMatchObject({ 'x-numbercomps': '2', 'x-docid': 'D1', 'x-contentrep': 'Z1', 'x-docstatus': 'online' })
  expect(String(info.body)).toMatch(
    /^--OLDcs42\r\nContent-Type: text\/plain; charset=ISO-8859-1\r\nContent-Length: 0\r\nX-compId: data\r\nX-Content-Length: 5\r\n/,
  )
  expect(String(info.body)).toMatch(/X-compDateC: \d{4}-\d\d-\d\d\r\nX-compTimeC: \d\d:\d\d:\d\d\r\n/)
  expect(String((await source.docGet('D1')).body)).toMatch(/\r\n\r\nHELLO\r\n--OLDcs42\r\n[^]*\r\n\r\nabcdef\r\n--OLDcs42--\r\n$/)
  expect(String((await source.get('D1', '&fromOffset=1&toOffset=3')).body)).toBe('ELL')
  expect(String((await source.get('D1', '&compId=note')).body)).toBe('abcdef')
  expect(String((await source.search('D1', '&compId=data&pattern=l&numResults=5')).body)).toBe('2;2;3;')
  expect(String((await source.search('D1', '&compId=data&pattern=l&numResults=5&fromOffset=4&toOffset=0')).body)).toBe('2;3;2;')
  expect((await source.delete('D1', '&compId=note')).status).toBe(200)
  expect((await source.get('D1', '&compId=note')).status).toBe(404)
  expect((await source.delete('D1')).status).toBe(200)
  expect(await source.get('D1')).toMatchObject({ status: 404, headers: { 'x-errordescription': 'document not found' } })
  await source.close()
})

test('documents of several components are created whole, and several documents one by one', async () => {
  const { server, source } = await start()
  await using _ = server
  expect((await source.createParts('D2', [part('data', Buffer.from([0, 255, 13, 10])), part('descr', '0 3 DAINabc\n')])).status).toBe(201)
  expect([...(await source.get('D2')).body]).toEqual([0, 255, 13, 10])
  expect(String((await source.call('attrSearch&pVersion=0045&contRep=Z1&docId=D2&pattern=0+3+abc')).body)).toBe('1;0;3;')
  expect((await source.createParts('D3', [])).status).toBe(201)
  expect(await source.info('D3')).toMatchObject({ status: 200, headers: { 'x-numbercomps': '0' } })
  const broken = { headers: { 'X-compId': 'data', 'Content-Length': 9 }, body: 'short' }
  expect((await source.createParts('D4', [part('data', 'x'), broken])).status).toBe(400)
  expect((await source.info('D4')).status).toBe(404)
  const several = await source.mCreate('D5', [partOf('D5', 'data', 'a'), partOf('D2', 'data', 'b')])
  expect(several).toMatchObject({ status: 250, reason: 'missing documents created' })
  expect(String(several.body)).toBe('docId="D5";retCode="201";\r\ndocId="D2";retCode="403";errorDescription="document already exists";\r\n')
  await source.close()
})

test.each(['RSA 2048', 'DSA 1024'] as const)('only requests that are signed with an active certificate are served: %s', async (kind) => {
  await using own = await createSigner(kind)
  await using server = await startOldContentServer({ isSigned: true })
  server.put('D1', { data: 'x' })
  const source = createSourceSystem(server.url)
  const get = async (docId: string, seconds: number, accessMode = 'r') => {
    const parameters: RawParameter[] = [
      ['pVersion', '0045'],
      ['contRep', 'Z1'],
      ['docId', docId],
      ['compId', 'data'],
      ['accessMode', accessMode],
      ['authId', 'CN%3DTST'],
      ['expiration', expirationIn(seconds)],
    ]
    const signed = ['contRep', 'docId', 'accessMode', 'authId', 'expiration']
    return source.call(await signedQuery(own, 'get', parameters, { signed }))
  }
  const certificate = (body: Buffer) => source.call('putCert&pVersion=0045&contRep=Z1&authId=CN%3DTST', { method: 'PUT', body })
  expect((await certificate(Buffer.from('no certificate'))).status).toBe(406)
  expect((await certificate(own.pkcs7)).status).toBe(200)
  expect((await get('D1', 600)).status).toBe(401)
  expect((await certificate(own.der)).status).toBe(200)
  for (const one of server.certificates) one.isActive = true
  expect(server.certificates).toHaveLength(1)
  expect(await get('D1', 600)).toMatchObject({ status: 200, body: Buffer.from('x') })
  expect((await get('D1', -600)).status).toBe(401)
  expect((await get('D1', 600, 'd')).status).toBe(401)
  expect((await source.get('D1')).status).toBe(401)
  const valid = await signedQuery(own, 'get', [['contRep', 'Z1']], { signed: ['contRep'] })
  expect((await source.call(valid)).status).toBe(400)
  await source.close()
})

const signatureFaults = new Set<ServerFault>(['accepts_any_signature', 'accepts_expired', 'accepts_unsigned', 'ignores_access_mode'])
const waitingFaults = new Set<ServerFault>(['never_answers', 'slow', 'stops_midway'])

const signer = share(await createSigner('RSA 1024'))
const { message } = await throwAwayOf(await createIdentity('rsa'), async () => {}).chain()
const base = 'pVersion=0045&contRep=Z1'

/** Sends the same requests to a server with these faults. @returns the answers, without the date and time of today */
const observe = async (faults: ServerFault[], isSigned: boolean): Promise<string[]> => {
  await using server = await startOldContentServer({ isSigned, faults })
  server.timing.slowMs = 60_000
  server.trust(signer.pem, 'T')
  server.put('OLD', { data: 'a+b', descr: 'x' }, { date: new Date('2020-01-01T00:00:00Z') })
  const source = createSourceSystem(server.url)
  const seen: string[] = []
  const see = async (query: string, options: Parameters<typeof source.call>[1] = {}) => {
    const answer = source.call(query, options).then(
      ({ status, headers, body }) => JSON.stringify({ status, headers: { ...headers, date: '' }, body: body.toString('latin1') }),
      () => 'broken off',
    )
    const isWaiting = faults.some((fault) => waitingFaults.has(fault))
    const silence = new Promise<string>((resolve) => setTimeout(() => resolve('no answer'), isWaiting ? 200 : 60_000).unref())
    seen.push(await Promise.race([answer, silence]))
    return seen.at(-1) !== 'no answer'
  }
  const sign = async (expiration: string, options = {}) => {
    const parameters: RawParameter[] = [
      ['pVersion', '0045'],
      ['contRep', 'Z1'],
      ['docId', 'OLD'],
      ['accessMode', 'r'],
      ['authId', 'T'],
      ['expiration', expiration],
    ]
    return signedQuery(signer, 'get', parameters, { signed: ['contRep', 'docId', 'accessMode', 'authId', 'expiration'], ...options })
  }
  const seeSigned = async () => {
    await see(await sign('20200101000000'))
    await see(await sign('20991231235959', { message: 'another' }))
    await see(`get&${base}&docId=OLD`)
    await see((await sign('20991231235959')).replace('get', 'delete'))
  }
  const seeUnsigned = async () => {
    if (!(await see(`get&${base}&docId=OLD`))) return
    await source.update('OLD', 'n', { compId: 'note' })
    await see(`info&${base}&docId=OLD`)
    await see(`get&${base}&docId=OLD&fromOffset=0&toOffset=1`)
    await see(`docGet&${base}&docId=OLD`)
    await see(`get&${base}&docId=NONE`)
    await see(`search&${base}&docId=OLD&compId=data&pattern=a+b`)
    await see(`create&${base}&docId=OLD&compId=data`, { method: 'PUT', body: 'again' })
    await source.create('BIG', 'x'.repeat(65_537))
    await see(`search&${base}&docId=BIG&compId=data&pattern=x&fromOffset=65536`)
    await source.create('TYPE', 'x', { headers: { 'content-type': 'text/plain; charset=UTF-8' } })
    await source.append('TYPE', 'y')
    await see(`get&${base}&docId=TYPE`)
    await source.createParts('HALF', [part('data', 'x'), { headers: { 'X-compId': 'y', 'Content-Length': 5 }, body: '' }])
    await see(`get&${base}&docId=HALF`)
    await see(`putCert&${base}&authId=N`, { method: 'PUT', body: 'garbage' })
    await source.call(`putCert&${base}&authId=M`, { method: 'PUT', body: signer.der })
    await source.call(`putCert&${base}&authId=C`, { method: 'PUT', body: message })
    seen.push(
      JSON.stringify(
        server.certificates.map(({ authId, isActive, pem }) => ({ authId, isActive, of: pem && new X509Certificate(pem).subject })),
      ),
    )
    for (const [docId, compId] of Object.entries({ LONG: '%C3%BC'.repeat(200), WINDOWS: '%96.pdf', TWICE: '%25C3%25BC' })) {
      await see(`create&${base}&docId=${docId}&compId=${compId}`, { method: 'PUT', body: 'x' })
      await see(`info&${base}&docId=${docId}`)
    }
    await see(`create&${base}&docId=EMPTY&compId=data`, { method: 'PUT', body: 'x', headers: { 'content-type': 'text/plain; charset=' } })
    await source.createParts('BASE64', [{ headers: { 'X-compId': 'data', 'Content-Transfer-Encoding': 'base64' }, body: 'eA==' }])
    await see(`get&${base}&docId=BASE64`)
    await source.delete('OLD')
    await see(`get&${base}&docId=OLD`)
  }
  await (isSigned ? seeSigned() : seeUnsigned())
  void source.close()
  return seen.map((line) => line.replaceAll(/20(?!20)\d\d-\d\d-\d\d|\d\d:\d\d:\d\d/g, (found) => (found === '00:00:00' ? found : 'NOW')))
}
const sound = { signed: await observe([], true), unsigned: await observe([], false) }

test.each(Object.keys(serverFaults) as ServerFault[])('the fault %s changes an answer', async (fault) => {
  const isSigned = signatureFaults.has(fault)
  expect(await observe([fault], isSigned)).not.toEqual(isSigned ? sound.signed : sound.unsigned)
})

test('nothing but a fault changes an answer', async () => {
  expect(await observe([], true)).toEqual(sound.signed)
  expect(await observe([], false)).toEqual(sound.unsigned)
})
