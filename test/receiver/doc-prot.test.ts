import type { CallOptions, SourceAnswer } from '../support/source-system.ts'
import { startScene, type Scene, type SceneWorkspace } from './receiver.ts'

const scenes: Scene[] = []
afterAll(async () => {
  for (const scene of scenes) await scene.stop()
})

const put = (body: string): CallOptions => ({ method: 'PUT', body, headers: { 'content-type': 'text/plain' } })
const code = ({ status, headers }: SourceAnswer) => headers['x-errordescription']?.split(':')[0] ?? status

/** Documents of every protection, sent while nothing needed a signature, in a repository that has demanded signatures since. */
const startDemanding = async (variables: Record<string, string>): Promise<SceneWorkspace> => {
  const scene = await startScene(variables)
  scenes.push(scene)
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
  const seen: Record<string, string | number> = {}
  for (const [command, query, options] of requests(docId)) seen[command] = code(await source.call(query, options))
  return seen
}

const missing = 'signature_missing'
const all = (outcome: string | number) => ({ info: outcome, get: outcome, docGet: outcome, search: outcome })
const nothing = { ...all(missing), update: missing, append: missing, delete: missing }

describe('a repository that demands signatures where docProt is heard', () => {
  let workspace: SceneWorkspace
  beforeAll(async () => {
    workspace = await startDemanding({ RELAY_SIGNATURE_SCOPE: 'doc_prot' })
  })

  it.each([
    ['UNSAID', nothing],
    ['OPEN', { ...all(200), update: 200, append: 200, delete: 200 }],
    ['READABLE', { ...all(200), update: missing, append: missing, delete: missing }],
    ['HIDDEN', { ...all(missing), update: 200, append: 200, delete: 200 }],
    ['UNKNOWN', nothing],
  ])('takes unsigned what the document %s leaves open, and nothing else', async (docId, expected) => {
    expect(await outcomes(workspace, docId)).toEqual(expected)
  })

  it('lets nobody create unsigned, whatever protection the new document is to have', async () => {
    for (const docProt of ['', '&docProt=', '&docProt=ud']) {
      const query = `create&pVersion=0045&contRep=Z1&docId=NEW&compId=data${docProt}`
      expect(code(await workspace.source.call(query, put('hello')))).toBe(missing)
    }
  })

  it('verifies a signature that is given, even where none is needed', async () => {
    const query =
      'get&pVersion=0045&contRep=Z1&docId=READABLE&compId=data&accessMode=r&authId=CN%3DTST&expiration=20991231235959&secKey=MIIB'
    expect(code(await workspace.source.call(query))).toBe('certificate_unknown')
    expect(code(await workspace.source.call(query.replace('MIIB', '')))).toBe(missing)
  })
})

it('is the default that docProt opens nothing', async () => {
  expect(await outcomes(await startDemanding({}), 'OPEN')).toEqual(nothing)
})
