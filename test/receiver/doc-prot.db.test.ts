import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import type { CallOptions, SourceAnswer } from '../support/source-system.ts'

const put = (body: string): CallOptions => ({ method: 'PUT', body, headers: { 'content-type': 'text/plain' } })
const code = ({ status, headers }: SourceAnswer) => headers['x-errordescription']?.split(':')[0] ?? status

/** Creates documents of every protection without signatures, then lets the repository require signatures. */
const startProtected = async (variables: Record<string, string>): Promise<SceneWorkspace> => {
  const scene = share(await startScene({ variables }))
  const workspace = await scene.workspace()
  for (const [docId, docProt] of [
    ['UNSAID', ''],
    ['OPEN', '&docProt='],
    ['READABLE', '&docProt=ud'],
    ['HIDDEN', '&docProt=r'],
  ]) {
    const created = await workspace.source.call(`create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data${docProt}`, put('hello'))
    expect(created.status).toBe(201)
  }
  await scene.db('repositories').where({ id: workspace.repositoryId }).update({ signature_verification: true })
  return workspace
}

const requests = (docId: string): [command: string, query: string, options?: CallOptions][] => [
  ['info', `info&pVersion=0045&contRep=Z1&docId=${docId}`],
  ['get', `get&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`],
  ['docGet', `docGet&pVersion=0045&contRep=Z1&docId=${docId}`],
  ['search', `search&pVersion=0045&contRep=Z1&docId=${docId}&compId=data&pattern=he`],
  ['update', `update&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`, put('hello again')],
  ['append', `append&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`, put('!')],
  ['delete', `delete&pVersion=0045&contRep=Z1&docId=${docId}`, { method: 'DELETE' }],
]

const outcomes = async ({ source }: SceneWorkspace, docId: string) => {
  const codes: Record<string, string | number> = {}
  for (const [command, query, options] of requests(docId)) codes[command] = code(await source.call(query, options))
  return codes
}

const missing = 'signature_missing'
const all = (outcome: string | number) => ({ info: outcome, get: outcome, docGet: outcome, search: outcome })
const nothingOpen = { ...all(missing), update: missing, append: missing, delete: missing }

describe('a repository that requires signatures, except as docProt allows', () => {
  let workspace: SceneWorkspace
  beforeAll(async () => {
    workspace = await startProtected({ RELAY_SIGNATURE_SCOPE: 'doc_prot' })
  })

  test.each([
    ['UNSAID', nothingOpen],
    ['OPEN', { ...all(200), update: 200, append: 200, delete: 200 }],
    ['READABLE', { ...all(200), update: missing, append: missing, delete: missing }],
    ['HIDDEN', { ...all(missing), update: 200, append: 200, delete: 200 }],
    ['UNKNOWN', nothingOpen],
  ])('accepts without a signature only what the docProt of the document %s leaves open', async (docId, expected) => {
    expect(await outcomes(workspace, docId)).toEqual(expected)
  })

  test('refuses an unsigned create, for any protection of the new document', async () => {
    for (const docProt of ['', '&docProt=', '&docProt=ud']) {
      const query = `create&pVersion=0045&contRep=Z1&docId=NEW&compId=data${docProt}`
      expect(code(await workspace.source.call(query, put('hello')))).toBe(missing)
    }
  })

  test('verifies a signature even if none is required', async () => {
    const query =
      'get&pVersion=0045&contRep=Z1&docId=READABLE&compId=data&accessMode=r&authId=CN%3DTST&expiration=20991231235959&secKey=MIIB'
    expect(code(await workspace.source.call(query))).toBe('certificate_unknown')
    expect(code(await workspace.source.call(query.replace('MIIB', '')))).toBe(missing)
  })
})

test('a repository that requires signatures ignores docProt by default', async () => {
  expect(await outcomes(await startProtected({}), 'OPEN')).toEqual(nothingOpen)
})
