import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { findUnreadableCredentials, rotateKeys } from '../../src/access/sealing-keys.ts'
import { newId } from '../../src/base/ids.ts'
import { applyFile, withApplyDeps } from '../../src/cli/apply/apply.ts'
import { exportWorkspaces } from '../../src/cli/apply/export.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'
import { testConfig } from '../support/factories.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const sealingKey = `one:${Buffer.alloc(32, 1).toString('base64')}`
const nextKey = `two:${Buffer.alloc(32, 2).toString('base64')}`
const [scene, old, key, otherKey] = await Promise.all([
  startScene({ keyRing: createKeyRing([sealingKey]) }).then(share),
  startOldContentServer({ isSigned: true }).then(share),
  createThrowAwayKey('rsa', 'relay', 1),
  createThrowAwayKey('rsa', 'other', 1),
])
const authId = 'CN=RELAY,OU=test'
old.trust(key.certificate, authId)
old.put('D1', { data: 'hello' })

const unsigned = { url: old.url, cont_rep: 'Z1' }
const signed = { ...unsigned, auth_id: authId, certificate: key.certificate }
const defaults = { auth_id: null, certificate: null, ca_certificate: null, proxy_url: null, allowed_cidrs: null, delivers: false }

const open = async () => {
  const workspace = await scene.workspace()
  const path = `/repositories/${workspace.repositoryId}`
  const { call, keys } = await scene.api.openTenant({ id: workspace.workspaceId, name: workspace.name })
  return {
    ...workspace,
    set: (upstream: object | null) => call('PATCH', path, { upstream }),
    patch: async (level: 'member' | 'admin', body: object) => {
      const { status, json } = await call('PATCH', path, body, { key: keys[level] })
      return [status, json.error?.code]
    },
    test: async (query = '') => (await call('POST', `${path}/test-upstream${query}`)).json,
    lastAudit: async () => (await call('GET', '/audit-logs?event=repository.updated')).json.data[0]?.attributes,
  }
}

describe('the upstream of a repository', () => {
  test('is set, returned without its key, used, and removed', async () => {
    const { set, test: check, source, lastAudit, repositoryId } = await open()
    expect((await check()).error).toMatchObject({ code: 'conflict', message: 'The repository has no upstream.' })
    const { status, json } = await set({ ...signed, private_key: key.privateKey })
    expect([status, json.data.attributes.upstream]).toEqual([200, { ...defaults, ...signed }])
    expect(await lastAudit()).toMatchObject({
      description: 'Repository Z1 was changed: upstream, upstream.private_key.',
      metadata: { before: { upstream: null }, after: { upstream: { ...defaults, ...signed } } },
    })
    expect(JSON.stringify(await scene.db('repositories').where({ id: repositoryId }))).not.toContain(key.privateKey.slice(40, 80))
    const asked = old.requests.length
    expect(await check()).toEqual({
      data: {
        status: 'success',
        message: expect.stringMatching(
          /^The content server \(old content server\) serves the repository Z1 and answers signed requests\. No document was read:/,
        ),
      },
    })
    expect(old.requests.slice(asked)).toEqual([expect.stringMatching(/^info TEST-/), 'serverInfo', 'serverInfo'])
    expect(String((await source.get('D1')).body)).toBe('hello')
    expect((await set(null)).json.data.attributes.upstream).toBeNull()
    expect((await source.get('D2')).status).toBe(404)
    const [row] = await scene.db('repositories').where({ id: repositoryId }).select('upstream', 'upstream_secrets_sealed')
    expect(row).toEqual({ upstream: null, upstream_secrets_sealed: null })
  })

  test('is tested with a document that it has', async () => {
    const { set, test: check, repositoryId, workspaceId } = await open()
    await set({ ...signed, private_key: key.privateKey })
    old.put('D7', { data: 'hello', note: 'a note' })
    const read = { status: 'success', message: expect.stringMatching(/The document D7 can be read: 2 components, 11 bytes\.$/) }
    expect((await check('?doc_id=D7')).data).toEqual(read)
    expect((await check('?doc_id=NONE')).data).toEqual({
      status: 'failed',
      message: expect.stringMatching(/does not have the document NONE/),
    })
    expect((await check(`?doc_id=${'x'.repeat(300)}`)).error).toMatchObject({ code: 'invalid_request' })
    for (const fault of ['bare_line_feeds', 'closes_midway'] as const) {
      old.faults.add(fault)
      expect((await check('?doc_id=D7')).data.status).toBe(fault === 'bare_line_feeds' ? 'success' : 'failed')
      old.faults.delete(fault)
    }
    const migration = { id: newId(), workspace_id: workspaceId, repository_id: repositoryId }
    await scene.db('document_migrations').insert({
      ...migration,
      repo_id: 'Z1',
      upstream_url: old.url,
      upstream_cont_rep: 'Z1',
      mode: 'check',
      lists: '[]',
      rows: 1,
    })
    await scene.db('document_migration_rows').insert({ document_migration_id: migration.id, position: 1, list: 0, line: 2, doc_id: 'D7' })
    expect((await check()).data).toEqual(read)
  })

  test('keeps its key as long as it signs for the same repository of the same address with the same certificate', async () => {
    const { set, test: check, lastAudit } = await open()
    await set({ ...signed, private_key: key.privateKey })
    expect((await set({ ...signed, delivers: true })).status).toBe(200)
    expect((await set({ ...signed, delivers: true, private_key: key.privateKey })).status).toBe(200)
    expect((await lastAudit()).description).toBe('Repository Z1 was changed: upstream.')
    expect((await check()).data.status).toBe('success')
    for (const change of [
      { url: 'https://other.example/archive' },
      { cont_rep: 'Z2' },
      { auth_id: 'CN=OTHER' },
      { certificate: otherKey.certificate },
      { ca_certificate: key.certificate },
      // It would see the signed addresses of requests without TLS.
      { proxy_url: 'http://127.0.0.1:3128' },
    ]) {
      const { status, json } = await set({ ...signed, ...change })
      expect([status, json.error.details]).toEqual([
        422,
        [{ path: 'upstream.private_key', message: 'required with a new certificate, auth_id, cont_rep, url, ca_certificate or proxy_url' }],
      ])
    }
  })

  test('is changed by an admin only, once the repository verifies signatures', async () => {
    const { set, patch } = await open()
    expect(await patch('member', { upstream: { ...signed, private_key: key.privateKey } })).toEqual([200, undefined])
    expect(await patch('member', { signature_verification: true, upstream: signed })).toEqual([200, undefined])
    for (const upstream of [
      { ...unsigned, url: 'https://attacker.example/archive', delivers: true },
      { ...signed, delivers: true },
      { ...signed, allowed_cidrs: ['10.0.0.0/8'] },
      { ...signed, private_key: key.privateKey },
      null,
    ]) {
      expect(await patch('member', { upstream })).toEqual([403, 'forbidden'])
      expect(await patch('member', { name: 'Other', upstream })).toEqual([403, 'forbidden'])
    }
    expect(await patch('member', { name: 'Other', upstream: signed })).toEqual([200, undefined])
    expect(await patch('admin', { upstream: { ...signed, delivers: true } })).toEqual([200, undefined])
    expect((await set(null)).status).toBe(200)
    expect(await patch('member', { upstream: unsigned })).toEqual([403, 'forbidden'])
    expect(await patch('admin', { upstream: unsigned })).toEqual([200, undefined])
  })

  test.each([
    ['a key of another certificate', { ...signed, private_key: otherKey.privateKey }, 422, 'upstream.private_key'],
    ['a key that is none', { ...signed, private_key: 'x' }, 422, 'upstream.private_key'],
    ['a certificate that is none', { ...signed, certificate: 'x', private_key: key.privateKey }, 422, 'upstream.certificate'],
    ['a certificate without authId', { ...signed, auth_id: null, private_key: key.privateKey }, 422, 'upstream.auth_id'],
    ['a key without certificate', { ...unsigned, private_key: key.privateKey }, 422, 'upstream.certificate'],
    ['an authId without certificate', { ...unsigned, auth_id: 'CN=A' }, 422, 'upstream.certificate'],
    ['an address with a query', { ...unsigned, url: `${old.url}?get` }, 422, 'upstream.url'],
    ['an address with a password', { ...unsigned, url: 'https://user:secret@archive.example/' }, 422, 'upstream.url'],
    ['an address of another kind', { ...unsigned, url: 'ftp://archive.example/' }, 422, 'upstream.url'],
    ['a proxy of another kind', { ...unsigned, proxy_url: 'socks5://127.0.0.1:1080' }, 422, 'upstream.proxy_url'],
    ['a proxy with a path', { ...unsigned, proxy_url: 'http://127.0.0.1:3128/pac' }, 422, 'upstream.proxy_url'],
    ['a password that cannot be decoded', { ...unsigned, proxy_url: 'http://relay:100%@127.0.0.1:3128' }, 422, 'upstream.proxy_url'],
    [
      'a user and a password that can be decoded together only',
      { ...unsigned, proxy_url: 'http://%C3:%A9@127.0.0.1:1' },
      422,
      'upstream.proxy_url',
    ],
    ['a stored password that is not there', { ...unsigned, proxy_url: 'http://***@127.0.0.1:3128' }, 422, 'upstream.proxy_url'],
    ['a range that is none', { ...unsigned, allowed_cidrs: ['10.0.0.0/8', '10.0.0.0/33'] }, 422, 'upstream.allowed_cidrs.1'],
    ['no range', { ...unsigned, allowed_cidrs: [] }, 422, 'upstream.allowed_cidrs'],
  ])('is refused with %s', async (_, upstream, status, path) => {
    const { set } = await open()
    const answer = await set(upstream)
    expect([answer.status, answer.json.error.details[0].path]).toEqual([status, path])
    expect(answer.text).not.toContain(key.privateKey.slice(40, 80))
  })

  test('is tested', async () => {
    const { set, test: check } = await open()
    await set(unsigned)
    expect((await check()).data).toEqual({ status: 'failed', message: expect.stringMatching(/^upstream: the content server answers 40\d/) })
    await set({ ...signed, cont_rep: 'Z9', private_key: key.privateKey })
    expect((await check()).data.message).toMatch(/^upstream: the content server answers 404/)
    await set({ ...unsigned, url: 'http://10.1.2.3/archive' })
    expect((await check()).data.message).toContain('RELAY_ALLOWED_PRIVATE_CIDRS')
  })
})

test('the key of an upstream is sealed again when the keys are rotated', async () => {
  const { set, repositoryId } = await open()
  await set({ ...signed, private_key: key.privateKey })
  expect(await findUnreadableCredentials(scene.db, createKeyRing([nextKey]))).toContain(repositoryId)
  const rotated = createKeyRing([nextKey, sealingKey])
  expect((await rotateKeys(scene.db, rotated)).unreadable).toEqual([])
  expect(await findUnreadableCredentials(scene.db, createKeyRing([nextKey]))).not.toContain(repositoryId)
  await rotateKeys(scene.db, createKeyRing([sealingKey, nextKey]))
})

test('a file describes the upstream, and an export brings it back', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-upstream-'))
  const config = testConfig({ RELAY_SECRET_KEYS: sealingKey })
  const variables = { UPSTREAM_KEY: key.privateKey, UPSTREAM_PROXY: 'http://relay:canary@127.0.0.1:3128' }
  const apply = async (upstream: object | null) =>
    withApplyDeps(config, variables, async (deps) => {
      const file = join(folder, 'workspaces.json')
      const repositories = [{ repo_id: 'Z1', name: 'Invoices', upstream }]
      await writeFile(file, JSON.stringify({ workspaces: [{ slug: 'migration/file', repositories }] }))
      const changes = await applyFile(scene.db, file, deps, {})
      return changes.filter(({ kind }) => kind === 'repository').map(({ action, fields }) => [action, fields?.map(({ name }) => name)])
    })
  try {
    expect(await apply({ ...signed, private_key: { env: 'UPSTREAM_KEY' } })).toEqual([['create', undefined]])
    expect(await apply({ ...signed, private_key: { env: 'UPSTREAM_KEY' } })).toEqual([['unchanged', undefined]])
    expect(await apply({ ...signed, delivers: true, private_key: { env: 'UPSTREAM_KEY' } })).toEqual([['update', ['upstream']]])
    const { text } = await withApplyDeps(config, variables, (deps) => exportWorkspaces(scene.db, 'migration/file', deps))
    expect(parse(text).workspaces[0].repositories[0].upstream).toEqual({
      ...defaults,
      ...signed,
      delivers: true,
      private_key: { env: 'RELAY_CREDENTIAL_MIGRATION_FILE_Z1_UPSTREAM_PRIVATE_KEY' },
    })
    expect(await apply(null)).toEqual([['update', ['upstream']]])
    const proxied = { ...unsigned, proxy_url: { env: 'UPSTREAM_PROXY' } }
    expect(await apply(proxied)).toEqual([['update', ['upstream', 'upstream.proxy_url']]])
    expect(await apply(proxied)).toEqual([['unchanged', undefined]])
    variables.UPSTREAM_PROXY = 'http://relay:other-canary@127.0.0.1:3128'
    expect(await apply(proxied)).toEqual([['update', ['upstream.proxy_url']]])
    const exported = await withApplyDeps(config, variables, (deps) => exportWorkspaces(scene.db, 'migration/file', deps))
    expect(parse(exported.text).workspaces[0].repositories[0].upstream.proxy_url).toEqual({
      env: 'RELAY_CREDENTIAL_MIGRATION_FILE_Z1_UPSTREAM_PROXY_URL',
    })
    expect(await apply({ ...unsigned, proxy_url: 'http://127.0.0.1:3128/' })).toEqual([['update', ['upstream']]])
    await expect(apply({ ...unsigned, proxy_url: 'http://relay:canary@127.0.0.1:3128' })).rejects.toThrow(
      'without user and password, or { env',
    )
    variables.UPSTREAM_PROXY = 'http://relay:100%@127.0.0.1:3128'
    await expect(apply(proxied)).rejects.toThrow(/^(?!.*100%@).*proxy_url: must be an http or https address/s)
  } finally {
    await rm(folder, { recursive: true })
  }
})
