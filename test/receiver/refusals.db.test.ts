import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { multipartBody, part, type CallOptions } from '../support/source-system.ts'
import { expectRefusal } from './answers.ts'

const scene = share(await startScene({ variables: { RELAY_DOCUMENT_MAX_BYTES: '100000' }, limits: { receiver: { maxParts: 5 } } }))
const workspace = await scene.workspace()
await workspace.source.create('D1', 'hello')

const onD1 = 'pVersion=0045&contRep=Z1&docId=D1'
const put: CallOptions = { method: 'PUT', body: 'x', headers: { 'content-type': 'text/plain' } }

describe('a malformed request', () => {
  test.each<[string, string, CallOptions?]>([
    ['an unknown command', `destroy&${onD1}`],
    ['no command', ''],
    ['a parameter in place of the command', `=&${onD1}`],
    ['an unknown command that is not ASCII', `%C3%A4%0D%0A&${onD1}`],
    ['info by PUT', `info&${onD1}`, put],
    ['get by DELETE', `get&${onD1}`, { method: 'DELETE' }],
    ['create by GET', `create&${onD1}&compId=data`],
    ['serverInfo by POST', 'serverInfo', { method: 'POST', body: 'x' }],
    ['no pVersion', 'get&contRep=Z1&docId=D1'],
    ['an unknown pVersion', 'get&pVersion=0031&contRep=Z1&docId=D1'],
    ['no contRep', 'get&pVersion=0045&docId=D1'],
    ['an empty contRep', 'get&pVersion=0045&contRep=&docId=D1'],
    ['a NUL in contRep', 'get&pVersion=0045&contRep=Z1%00&docId=D1'],
    ['no docId', 'get&pVersion=0045&contRep=Z1'],
    ['an empty docId', 'get&pVersion=0045&contRep=Z1&docId='],
    ['a docId with a slash', 'get&pVersion=0045&contRep=Z1&docId=..%2Fx'],
    ['a docId that is too long', `get&pVersion=0045&contRep=Z1&docId=${'x'.repeat(129)}`],
    ['a compId that is too long', `get&${onD1}&compId=${'%C3%A4'.repeat(256)}`],
    ['a control character in compId', `get&${onD1}&compId=a%0Ab`],
    ['an offset that is not a number', `get&${onD1}&fromOffset=abc`],
    ['a negative offset', `get&${onD1}&fromOffset=-1`],
    ['an offset that is too large', `get&${onD1}&toOffset=99999999999999999999`],
    ['an unknown resultAs', `info&${onD1}&resultAs=xml`],
    ['create by PUT without compId', 'create&pVersion=0045&contRep=Z1&docId=D2', put],
    ['an unknown docProt', 'create&pVersion=0045&contRep=Z1&docId=D2&compId=data&docProt=xyz', put],
    ['create by POST without parts', 'create&pVersion=0045&contRep=Z1&docId=D2', { method: 'POST', body: 'x' }],
    [
      'metadata that is too long',
      'create&pVersion=0045&contRep=Z1&docId=D2&compId=data',
      { ...put, headers: { 'x-relay-object-id': 'x'.repeat(256) } },
    ],
  ])('is answered with 400: %s', async (_, query, options = {}) => {
    const answer = await workspace.source.call(query, options)
    expect(answer.status).toBe(400)
    expect(answer.headers['x-relay-request-id']).toMatch(/^[0-9A-Z]{26}$/)
    expectRefusal(answer, 'invalid_parameter')
  })

  test('with one malformed part stores no part at all', async () => {
    const fresh = await scene.workspace()
    const good = part('data', 'x'.repeat(50_000))
    const malformed: [string, ReturnType<typeof part>[]][] = [
      ['the same component twice', [good, part('note', 'n'), part('data', 'again')]],
      ['a part that names no component', [good, { headers: { 'Content-Type': 'text/plain' }, body: 'x' }]],
      ['a part shorter than its Content-Length', [good, { headers: { 'X-compId': 'note', 'Content-Length': 9 }, body: 'x' }]],
      ['a part longer than its Content-Length', [good, { headers: { 'X-compId': 'note', 'Content-Length': 1 }, body: 'xyz' }]],
      ['a part whose Content-Length is not a number', [good, { headers: { 'X-compId': 'note', 'Content-Length': 'much' }, body: 'x' }]],
      ['a compId with a NUL', [good, { headers: { 'X-compId': 'a\0b' }, body: 'x' }]],
      ['a content type with a NUL', [good, { headers: { 'X-compId': 'note', 'Content-Type': 'text/\0' }, body: 'x' }]],
      ['a compId that is too long', [good, part('x'.repeat(256), 'x')]],
    ]
    for (const [name, parts] of malformed) {
      const answer = await fresh.source.createParts('BAD', parts)
      expect([name, answer.status, answer.headers['x-errordescription']]).toEqual([name, 400, expect.stringMatching(/^invalid_parameter/)])
    }
    const cut = multipartBody('KoZbnd01', [good]).subarray(0, -10)
    const headers = { 'content-type': 'multipart/form-data; boundary=KoZbnd01' }
    const answer = await fresh.source.call('create&pVersion=0045&contRep=Z1&docId=BAD', { method: 'POST', headers, body: cut })
    expect(answer.headers['x-errordescription']).toMatch(/^invalid_parameter: malformed multipart body/)
    expect((await fresh.source.info('BAD')).status).toBe(404)
    expect(await fresh.countRows()).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })
  })

  test.each([
    ['Content-Transfer-Encoding', 'base64'],
    ['content-transfer-encoding', 'BASE64'],
    ['Content-Transfer-Encoding', 'quoted-printable'],
    ['Content-Transfer-Encoding', 'x-uuencode'],
    ['Content-Transfer-Encoding', 'binary, base64'],
    ['Content-Encoding', 'gzip'],
  ])('is one whose bytes are encoded: %s: %s', async (name, value) => {
    const fresh = await scene.workspace()
    await fresh.source.create('HERE', 'hello')
    const encoded = { headers: { 'X-compId': 'data', [name]: value }, body: 'JVBERi0=' }
    const ofDocument = { ...encoded, headers: { 'X-docId': 'D1', ...encoded.headers } }
    const headers = { [name]: value }
    for (const answer of [
      await fresh.source.createParts('D1', [part('note', 'n'), encoded]),
      await fresh.source.mCreate('D1', [ofDocument]),
      await fresh.source.updateParts('HERE', [encoded]),
      await fresh.source.create('D1', 'JVBERi0=', { headers }),
      await fresh.source.update('HERE', 'JVBERi0=', { headers }),
      await fresh.source.call('append&pVersion=0045&contRep=Z1&docId=HERE&compId=data', { method: 'PUT', body: 'JVBERi0=', headers }),
    ]) {
      expectRefusal(answer, 'invalid_parameter')
      expect(answer.headers['x-errordescription']).toContain(`is encoded (`)
    }
    expect(String((await fresh.source.get('HERE')).body)).toBe('hello')
    expect((await fresh.source.info('D1')).status).toBe(404)
  })

  test.each(['Content-Transfer-Encoding ', 'CONTENT-TRANSFER-ENCODING\t', 'Content-Encoding  '])(
    'is one whose bytes are encoded, with spaces before a colon: "%s:"',
    async (name) => {
      const fresh = await scene.workspace()
      const answer = await fresh.source.createParts('D1', [{ headers: { 'X-compId ': 'data', [name]: 'base64' }, body: 'JVBERi0=' }])
      expectRefusal(answer, 'invalid_parameter')
      expect(answer.headers['x-errordescription']).toContain('a part is encoded (')
      expect((await fresh.source.info('D1')).status).toBe(404)
    },
  )

  test.each(['7bit', '8BIT', 'Binary', ' binary ;', ''])('is not one with the Content-Transfer-Encoding "%s"', async (value) => {
    const fresh = await scene.workspace()
    const headers = { 'X-compId': 'data', 'Content-Transfer-Encoding': value }
    expect((await fresh.source.createParts('D1', [{ headers, body: 'a=3D' }])).status).toBe(201)
    expect(String((await fresh.source.get('D1')).body)).toBe('a=3D')
  })

  test('is not one with an empty part without a name, or with the name in Content-Disposition', async () => {
    const created = await workspace.source.createParts('LENIENT', [
      { headers: { 'Content-Type': 'text/plain' }, body: '' },
      { headers: { 'Content-Disposition': 'form-data; filename="f.pdf"; name="data"' }, body: 'x' },
    ])
    expect(created.status).toBe(201)
    expect(String((await workspace.source.get('LENIENT')).body)).toBe('x')
  })
})

describe('a limit', () => {
  test('on the size of the body is checked against the Content-Length', async () => {
    const answer = await workspace.source.create('BIG', Buffer.alloc(100_001))
    expect(answer.status).toBe(400)
    expect(answer.headers['x-errordescription']).toMatch(/^too_large/)
    expect((await workspace.source.create('FITS', Buffer.alloc(100_000))).status).toBe(201)
  })

  test('on the number of components is 400 too_large', async () => {
    const parts = (count: number) => Array.from({ length: count }, (_, index) => part(`c${index}`, 'x'))
    const answer = await workspace.source.createParts('MANY', parts(6))
    expect([answer.status, answer.headers['x-errordescription']]).toEqual([400, expect.stringMatching(/^too_large/)])
    expect((await workspace.source.info('MANY')).status).toBe(404)
    expect((await workspace.source.createParts('MANY', parts(5))).status).toBe(201)
  })
})

describe('a repository', () => {
  test('that does not exist is answered with 404', async () => {
    for (const [query, options] of [
      ['get&pVersion=0045&contRep=Z9&docId=D1'],
      ['get&pVersion=0045&contRep=z1&docId=D1'],
      ['create&pVersion=0045&contRep=Z9&docId=D1&compId=data', put],
    ] as [string, CallOptions?][]) {
      const answer = await workspace.source.call(query, options)
      expect([answer.status, answer.headers['x-errordescription']]).toEqual([404, expect.stringMatching(/^repository_not_found/)])
    }
  })

  test('that is inactive is answered with 403 by every command except serverInfo', async () => {
    const inactive = await scene.workspace()
    await scene.db('repositories').where({ id: inactive.repositoryId }).update({ status: 'inactive' })
    for (const answer of [await inactive.source.create('D1', 'x'), await inactive.source.get('D1'), await inactive.source.info('D1')]) {
      expect([answer.status, answer.headers['x-errordescription']]).toEqual([403, expect.stringMatching(/^repository_inactive/)])
    }
    expect(String((await inactive.source.serverInfo('&contRep=Z1')).body)).toContain('contRepStatus="stopped"')
  })

  test('that requires signatures reports it in serverInfo, and refuses unsigned requests', async () => {
    const signed = await scene.workspace()
    await scene.db('repositories').where({ id: signed.repositoryId }).update({ signature_verification: true })
    for (const answer of [await signed.source.create('D1', 'x'), await signed.source.get('D1'), await signed.source.info('D1')]) {
      expect([answer.status, answer.headers['x-errordescription']]).toEqual([401, expect.stringMatching(/^signature_missing/)])
      expect(answer.headers['www-authenticate']).toBeUndefined()
    }
    expect(await signed.countRows()).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })
    const answer = await signed.source.serverInfo('&contRep=Z1')
    expect(String(answer.body)).toContain('contRepStatusDescription="signatures are required"')
  })

  test('of a workspace with receiver_allowed_cidrs refuses requests from other addresses', async () => {
    const elsewhere = await scene.workspace(undefined, { workspaceSettings: { receiver_allowed_cidrs: ['192.0.2.0/24', '2001:db8::/32'] } })
    for (const answer of [
      await elsewhere.source.create('D1', 'x'),
      await elsewhere.source.serverInfo(),
      await elsewhere.source.serverInfo('&contRep=Z1'),
    ]) {
      expect([answer.status, answer.headers['x-errordescription']]).toEqual([403, expect.stringMatching(/^address_not_allowed/)])
    }
    const here = await scene.workspace(undefined, { workspaceSettings: { receiver_allowed_cidrs: ['127.0.0.0/8'] } })
    expect((await here.source.create('D1', 'x')).status).toBe(201)
    expect((await here.source.serverInfo()).status).toBe(200)
  })
})

describe('a path', () => {
  test('outside of /receiver/{userSlug}/{workspaceSlug} is passed on', async () => {
    for (const path of ['/', '/receiver', '/receiver/acme', '/receivers/acme/main']) {
      const answer = await fetch(scene.api.baseUrl + path)
      // A receiver answers without JSON.
      expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'not_found' } }])
    }
    expect((await fetch(`${scene.api.baseUrl}/api/acme/main/documents`)).status).toBe(401)
  })

  test('can continue after the workspace', async () => {
    const answer = await fetch(`${scene.api.baseUrl}${workspace.path}/100/some%20file.pdf?get&${onD1}`)
    expect(await answer.text()).toBe('hello')
  })

  test('of an unknown workspace is answered with 404', async () => {
    for (const slug of ['nowhere', '%00', '%ff', "'"]) {
      const answer = await fetch(`${scene.api.baseUrl}/receiver/acme/${slug}?get&${onD1}`)
      expect(answer.status).toBe(404)
    }
  })
})
