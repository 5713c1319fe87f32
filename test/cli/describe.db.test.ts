import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describeWorkspace, writeDescription } from '../../src/cli/describe/describe.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { writeSignInFile } from '../support/sign-in-file.ts'
import { createSigner } from '../support/signer.ts'

const config = testConfig({ RELAY_BASE_URL: 'https://relay.example' })
const scene = share(await startScene())
const { db, acme } = scene
const now = new Date('2026-11-29T09:00:00Z')
const run = promisify(execFile)

const describeIn = (lang: 'en' | 'de', restoreTest?: string) => describeWorkspace(db, config, 'acme/prod', { lang, restoreTest, now })
const sectionsOf = (text: string) => text.split(/^## /m)
const headingsOf = (text: string) => sectionsOf(text).map((section) => section.split('\n', 1)[0])
const created = async (path: string, body: object): Promise<string> => {
  const { status, json } = await acme.call('POST', path, body)
  if (status !== 201) throw new Error(JSON.stringify({ path, json }))
  return json.data.id
}

const repositoryId = await created('/repositories', { repo_id: 'Z1', name: 'Invoices', signature_verification: true })
const destinationId = await created('/destinations', {
  name: 'Archive [click](https://evil.example)',
  connector_type: 'objstore',
  config: { bucket: 'acme-documents', region: 'eu-central-1', object_lock_mode: 'COMPLIANCE', retain_days: 3_650, legal_hold: true },
  credentials: { access_key_id: 'canary-id', secret_access_key: 'canary-secret' },
})
const hookId = await created('/destinations', {
  name: 'Hook',
  connector_type: 'webhook',
  config: { url: 'https://hook.example/canary-path' },
  credentials: { secret: 'canary-secret' },
})
await acme.call('PATCH', `/repositories/${repositoryId}`, { home_destination_id: destinationId, home_after_days: 30 })
const connectionId = await created('/connections', {
  name: 'To the archive',
  repository_ids: [repositoryId],
  destination_ids: [destinationId],
  settings: { path_template: '{repo_id}/{doc_id}/{comp_id}' },
})
await acme.call('PATCH', '/settings', {
  content_days: 90,
  rfc: {
    url: 'https://erp.example',
    client: '100',
    allowed_functions: ['Z_A'],
    credentials: { user: 'canary-user', password: 'canary-password' },
  },
})
const signer = share(await createSigner('RSA 2048'))
await created(`/repositories/${repositoryId}/certificates`, { auth_id: 'CN=TST', certificate: signer.pem, status: 'active' })
await created('/enrichments', { name: 'Invoices', repository_ids: [repositoryId], steps: [{ kind: 'link' }] })
await created('/notifications', { name: 'Operators', events: ['destination.failing'], destination_id: hookId })
await created('/legal-holds', { repo_id: 'Z1', reason: 'Tax audit\n## Injected' })

test('the description has the same sections in both languages, and a sentence for each setting', async () => {
  const [english, german] = [await describeIn('en'), await describeIn('de', '2026-10-01')]
  expect(headingsOf(german)).toHaveLength(headingsOf(english).length)
  expect(headingsOf(english).filter((heading) => heading!.includes('Injected'))).toEqual([])
  expect(english).toContain('Requests without a valid signature of an active certificate are refused.')
  expect(english).toContain(
    'The target must keep each document for 3650 days from its receipt (mode COMPLIANCE). Each document is put on legal hold there.',
  )
  expect(english).toContain('The relay may call these functions of the source system at https://erp.example: Z_A.')
  expect(english).toContain('**Invoices** fetches business data for Z1 in these steps: link (link).')
  expect(english).toContain('The notification **Operators** announces destination.failing at Hook.')
  expect(english).toMatch(/\n {2}- Certificate .+, active, valid until \d{4}-\d\d-\d\d, SHA-256 [0-9a-f]{64}\n/)
  expect(english).toContain('30 days after its delivery to Archive')
  expect(english).toContain('is removed 90 days after its receipt.')
  expect(english).toContain('the repository Z1 has been on hold: Tax audit ## Injected')
  expect(english).toContain('Last restore test: not recorded.')
  expect(german).toContain('# Verfahrensbeschreibung: Eingang und Zustellung von Dokumenten, acme/prod')
  expect(german).toContain('**To the archive** leitet Dokumente aus Z1 an Archive \\[click\\](https://evil.example) weiter.')
  expect(german).toContain('wird 90 Tage nach dem Eingang entfernt.')
  expect(german).toContain('Letzter Test der Wiederherstellung nach Angabe des Betreibers: 2026-10-01.')
  expect(german).not.toMatch(/undefined|null|\[object/)
  expect(english).not.toMatch(/undefined|null|\[object/)
})

test('it says where contents are that have left the relay, also when their repository has no home any more', async () => {
  const kept = ['The relay removes no content because of its age.', 'Das Relay entfernt keinen Inhalt wegen seines Alters.']
  const left = ['Only this destination has the contents that have left the relay', 'hat nur dieses Ziel; sie werden von dort gelesen.']
  const alone = ['is kept by its destination alone', 'bewahrt allein sein Ziel auf']
  const both = async () => [await describeIn('en'), await describeIn('de')]
  const expectAll = async (texts: string[], isSaid: boolean) => {
    for (const [index, description] of (await both()).entries())
      expect([texts[index], description.includes(texts[index]!)]).toEqual([texts[index], isSaid])
  }
  const { id } = await db('workspaces').where({ workspace_slug: 'prod', user_slug: 'acme' }).first('id')
  await acme.call('PATCH', '/settings', { content_days: null })
  await expectAll(kept, true)
  await expectAll(left, false)
  await expectAll(alone, true)
  await acme.call('PATCH', `/repositories/${repositoryId}`, { home_destination_id: null })
  await expectAll(alone, false)

  const content = { id: 'C'.repeat(26), workspace_id: id, store: 'home', owned_at: db.fn.now() }
  await db('contents').insert(content)
  await db('home_contents').insert({
    content_id: content.id,
    document_id: 'D',
    destination_id: destinationId,
    path: 'p',
    digests: Buffer.alloc(0),
  })
  await expectAll(left, true)
  await expectAll(alone, true)
  await db('contents').where({ id: content.id }).delete()
  await acme.call('PATCH', '/settings', { content_days: 90 })
  await acme.call('PATCH', `/repositories/${repositoryId}`, { home_destination_id: destinationId, home_after_days: 30 })
})

test('it says which people may sign in to the workspace', async () => {
  await using folder = await createFolder()
  const provider = { issuer: 'https://id.example', clientId: 'relay', clientSecret: 'canary-secret' }
  const path = await writeSignInFile(join(folder.path, 'sign-in.json'), provider as never, {
    access: [
      { value: '[Auditors](x)\\', workspace: 'acme/prod', level: 'viewer' },
      { value: 'Others', workspace: 'acme/test', level: 'admin' },
    ],
  })
  const read = (lang: 'en' | 'de') => describeWorkspace(db, { ...config, RELAY_OIDC_FILE: path }, 'acme/prod', { lang })
  const english = await read('en')
  expect(english).toContain('People sign in through the OpenID provider https://id.example, or with API keys.')
  expect(english).toContain('- People whose claim groups has the value **\\[Auditors\\](x)\\\\**, level viewer\n')
  expect(english).not.toMatch(/Others|canary/)
  expect(await read('de')).toContain('- Personen, deren Claim groups den Wert **\\[Auditors\\](x)\\\\** hat, Stufe viewer\n')
  expect(await describeIn('en')).toContain('no OpenID provider is configured')
})

test('it says where small contents are stored', async () => {
  const stored = (variables: object) => describeWorkspace(db, { ...config, ...variables }, 'acme/prod', { lang: 'en' })
  const inDatabase = 'Contents below 65536 bytes are stored in the database instead.'
  expect(await stored({ CONTENT_DIR: '/srv/contents' })).toContain('Contents are stored in a directory.')
  expect(await stored({ CONTENT_DIR: '/srv/contents' })).toContain(inDatabase)
  for (const other of [{}, { CONTENT_S3_BUCKET: 'contents' }, { CONTENT_DIR: '/srv/contents', CONTENT_DIR_MIN_BYTES: 0 }])
    expect(await stored(other)).not.toContain('in the database instead')
})

test('it says what a setting leaves out: a repository without a destination, copies of manifests, and holds that it does not list', async () => {
  const discarded = 'No connection leads to a destination: new documents are acknowledged and discarded'
  expect(await describeIn('en')).not.toContain(discarded)
  expect(await describeIn('en')).toContain('No destination gets the manifests.')
  const unconnected = await created('/repositories', { repo_id: 'Z2', name: 'Nowhere' })
  expect(await describeIn('en')).toMatch(new RegExp(`^- \\*\\*Z2\\*\\*.* ${discarded}`, 'm'))
  expect(await describeIn('de')).toMatch(/^- \*\*Z2\*\*.* Neue Dokumente werden bestätigt und verworfen/m)
  await acme.call('DELETE', `/repositories/${unconnected}`)

  const copying = { ...config, PROOF_DESTINATIONS: [hookId] }
  expect(await describeWorkspace(db, copying, 'acme/prod', { lang: 'en' })).toContain('get a copy of each manifest: Hook.')
  expect(await describeWorkspace(db, copying, 'acme/prod', { lang: 'de' })).toContain('erhalten eine Kopie jedes Manifests: Hook.')

  await db.raw(`
    insert into legal_holds (id, workspace_id, scope, erp_object_type, erp_object_id, reason, documents)
    select lpad(number::text, 26, '0'), (select workspace_id from legal_holds), 'business_object', 'BKPF', number::text, 'Audit', 0
    from generate_series(1, 1000) as number
  `)
  expect(await describeIn('en')).toContain('Earlier holds that are not listed here: 1.')
  expect(await describeIn('de')).toContain('Ältere Löschsperren, die hier nicht aufgeführt sind: 1.')
  await db('legal_holds').where({ reason: 'Audit' }).delete()
})

test('it says nothing false of settings that are zero or empty', async () => {
  const removing = { ...config, RETENTION_DOCUMENTS_DAYS: 30 }
  const read = async (lang: 'en' | 'de') => describeWorkspace(db, removing, 'acme/prod', { lang, now })
  await acme.call('PATCH', '/settings', { content_days: null, events_days: 0, rfc: { allowed_functions: [] } })
  const [english, german] = [await read('en'), await read('de')]
  await acme.call('PATCH', '/settings', { content_days: 90, events_days: 7, rfc: { allowed_functions: ['Z_A'] } })
  expect(english).toContain(
    'The records of a document with which nothing is left to be done, and of its deliveries, are removed 30 days after its receipt, if it has no content any more.',
  )
  expect(german).toContain('und seine Zustellungen werden 30 Tage nach dem Eingang entfernt, wenn es keinen Inhalt mehr hat.')
  expect(english).toContain('No events are written for other programs.')
  expect(german).toContain('Ereignisse für andere Programme werden nicht geschrieben.')
  expect(english).toContain('The relay calls no functions of the source system.')
  expect(german).toContain('Das Relay ruft keine Funktionen des Quellsystems auf.')
})

test('no name changes its structure', async () => {
  const shapeOf = (text: string) => text.split('\n').map((line) => line.match(/^(?:#+ |- | {2}- |)/)![0])
  const hostile = [
    '# Heading',
    '- item\u202e\u2066',
    '**bold** [x](https://evil.example) ![y](z)',
    '<script>alert(1)</script><!-- ',
    '```` `code` ~~~ ---',
    'a\\',
    '&lt;b&gt; &#10;&NewLine;# x',
    '> quote | table |',
    'line\r\n\r\n## Injected\u2028\u2029\u0085- x',
    'שלום \u200f عربي',
  ]
  const before = await describeIn('en')
  for (const name of hostile) {
    const { rows } = await db.raw<{ rows: { before: string }[] }>('select name as before from connections where id = ?', [connectionId])
    await db('connections').where({ id: connectionId }).update({ name })
    await db('legal_holds').update({ reason: name })
    await db('repositories').where({ id: repositoryId }).update({ name })
    const text = await describeIn('en')
    expect(shapeOf(text)).toEqual(shapeOf(before))
    expect(text).not.toMatch(/(?<!\\)(?:\[x\]|<script|<!--|`)|[\u202e\u2066\u2028\u2029\u0085\r]/)
    await db('connections').where({ id: connectionId }).update({ name: rows[0]!.before })
  }
  await db('legal_holds').update({ reason: 'Tax audit\n## Injected' })
  await db('repositories').where({ id: repositoryId }).update({ name: 'Invoices' })
})

test('it contains no secret', async () => {
  const [english, german] = [await describeIn('en'), await describeIn('de')]
  const [secretKey] = config.RELAY_SECRET_KEYS
  for (const text of [english, german]) {
    expect(text).not.toContain('canary')
    expect(text).not.toContain(String(secretKey).split(':')[1])
  }
})

test('one changed connection changes one section, and the same settings give the same text', async () => {
  const before = sectionsOf(await describeIn('de'))
  expect(sectionsOf(await describeIn('de'))).toEqual(before)
  await acme.call('PATCH', `/connections/${connectionId}`, { settings: { path_template: '{yyyy}/{doc_id}/{comp_id}' } })
  const after = sectionsOf(await describeIn('de'))
  const changed = after.filter((section, index) => section !== before[index])
  expect(changed).toHaveLength(1)
  expect(changed[0]).toMatch(/^Verbindungen\n[^]*Pfad: \{yyyy\}\/\{doc_id\}\/\{comp_id\}\./)
})

test('a signed description is verified by openssl, and refused after one changed byte', async () => {
  await using folder = await createFolder()
  const path = join(folder.path, 'process.md')
  const files = await writeDescription(db, config, path, await describeIn('de'), true)
  expect(files).toEqual([path, `${path}.p7s`, `${path}.pem`])
  const verify = () =>
    run('openssl', [
      'cms',
      '-verify',
      '-binary',
      '-inform',
      'DER',
      '-in',
      `${path}.p7s`,
      '-content',
      path,
      '-nointern',
      '-certfile',
      `${path}.pem`,
      '-CAfile',
      `${path}.pem`,
      '-purpose',
      'any',
      '-out',
      '/dev/null',
    ])
  await verify()
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('90 Tage', '91 Tage'))
  await expect(verify()).rejects.toThrow(/verification failure/i)
  // The key that signs manifests is named from now on.
  expect(await describeIn('en')).toMatch(/SHA-256 of the certificate that verifies it: ([0-9A-F]{2}:){31}/)
})
