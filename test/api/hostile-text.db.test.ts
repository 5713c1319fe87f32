import { hostileTexts, wrongIn, wrongInside } from '../support/hostile-text.ts'
import { fault, result, startRfcSystem } from '../support/rfc-system.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

// What the API takes from people and from the source system, and what it says of the answers of other systems.

const { db, acme, workspace } = share(await startScene())
const { repositoryId } = await wire(acme, 'A1')

const short = Object.entries(hostileTexts).filter(([what]) => !/megabyte|where texts are cut/.test(what))
// Its JSON is refused as a whole, before anybody looks at a name.
const inJson = short.filter(([, text]) => text.isWellFormed() && !text.includes('\0'))

/** Returns a text as XML may hold it: with references, which a parser decodes to whatever they name. */
const references = (text: string) => Array.from({ length: text.length }, (_, at) => `&#x${text.charCodeAt(at).toString(16)};`).join('')

// The system says what the test has it say.
let said = ''
const system = share(
  await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (parameters) =>
      said === ''
        ? fault(`${references('\ud83d')}${references('\0\u001b[2J\n')}`)
        : result('ARCHIV_GET_CONNECTIONS', parameters, '<COUNT>1</COUNT>', {
            CONNECTIONS: `<item><SAP_OBJECT>${said}</SAP_OBJECT><OBJECT_ID>${said}</OBJECT_ID><AR_OBJECT>A</AR_OBJECT></item>`,
          }),
  }),
)
const rfc = { url: system.url, client: '100', credentials: system.logon, allowed_functions: ['ARCHIV_GET_CONNECTIONS'] }
const enrichment = async () => {
  await acme.call('PATCH', '/settings', { rfc })
  const body = { name: 'Links', repository_ids: [], steps: [{ kind: 'link' }] }
  return (await acme.call('POST', '/enrichments', body)).json.data.id as string
}

test('a try of an enrichment answers JSON that a strict client can read', async () => {
  const id = await enrichment()
  const document_id = await insertDocument(db, { workspaceId: acme.id, repositoryId, repoId: 'A1', docId: 'TRY' })
  for (const text of ['', ...short.map(([, each]) => references(each))]) {
    said = text
    const { status, json } = await acme.call('POST', `/enrichments/${id}/try`, { document_id })
    expect(status).toBe(200)
    expect(JSON.stringify(json)).not.toMatch(/\\u(?:0000|d[89a-f])/)
    const [step] = json.data.steps
    expect(wrongIn(step.answer ?? '', { lines: true })).toEqual([])
    expect(wrongInside([step.error, step.fields])).toEqual([])
  }
})

test('a call through the bridge answers JSON that a strict client can read', async () => {
  await enrichment()
  said = references('half \ud83d and \0')
  const { status, text } = await acme.bridge('ARCHIV_GET_CONNECTIONS', { imports: {}, tables: { CONNECTIONS: [] } })
  expect(status).toBe(200)
  expect(text).toMatch(/half .* and/)
  expect(text).not.toMatch(/\\u(?:0000|d[89a-f])/)
})

test('business keys in headers of the source system become plain', async () => {
  const { source, workspaceId } = await workspace()
  // The bytes of U+009B, which a header carries as two characters of Latin-1.
  const csi = Buffer.from('\u009b31mC1\u009d0;title\u009c 4711', 'utf8').toString('latin1')
  const headers = {
    'x-relay-object-type': 'BKPF',
    'x-relay-object-id': csi,
    'x-relay-ar-object': encodeURIComponent('A\u001b[2J\nB\u202e'),
  }
  expect((await source.create('KEYS', 'x', { headers })).status).toBe(201)
  const [document] = await db('documents').where({ workspace_id: workspaceId, doc_id: 'KEYS' })
  expect(wrongInside([document.erp_object_type, document.erp_object_id, document.ar_object])).toEqual([])
  expect(document).toMatchObject({ erp_object_type: 'BKPF', erp_object_id: expect.stringContaining('4711') })
})

test.each(inJson)('metadata with %s is refused', async (_, text) => {
  await insertDocument(db, { workspaceId: acme.id, repositoryId, repoId: 'A1', docId: 'META' })
  const { status, json } = await acme.call('PUT', '/documents/by-doc-id/A1/META/metadata', { erp_object_id: `1${text}2` })
  expect(status).toBe(422)
  expect(json.error.details).toEqual([{ path: 'erp_object_id', message: expect.stringContaining('must not contain line breaks') }])
})

const named: [path: string, more: object][] = [
  ['/destinations', { connector_type: 'webhook', config: { url: 'http://127.0.0.1:9/' }, credentials: {} }],
  ['/repositories', { repo_id: 'N1' }],
  ['/connections', { repository_ids: ['x'], destination_ids: ['x'] }],
  ['/enrichments', { repository_ids: [], steps: [{ kind: 'link' }] }],
  ['/notifications', { events: ['delivery.failed'], destination_id: 'x' }],
  ['/event-subscriptions', { events: ['document.received'], destination_id: 'x' }],
  ['/api-keys', { level: 'viewer' }],
]

test.each(named)('a name that a terminal would obey is refused at %s, and says why', async (path, more) => {
  for (const [, text] of inJson) {
    const { status, json } = await acme.call('POST', path, { ...more, name: `My ${text} name` })
    expect({ path, status }).toEqual({ path, status: 422 })
    expect(json.error.details).toContainEqual({ path: 'name', message: expect.stringContaining('control characters') })
  }
})
