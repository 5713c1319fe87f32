import { runChecks, type Report } from '../../clients/check-source/src/run.ts'
import { createIdentity } from '../../clients/check-source/src/throw-away.ts'
import { createCertificates } from '../../src/access/certificates.ts'
import { checkOwnRepository } from '../../src/check-source/own-repository.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createEndCheck } from '../../src/delivery/end-check.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const scene = share(await startScene())
const certificates = createCertificates(scene.db)
const deps = { certificates, actor: systemActor, endCheck: createEndCheck(scene.db, 300) }

/** Creates a repository that is wired to a destination. */
const repositoryOf = async (signatureVerification: boolean, repoId = 'Z1') => {
  const { workspaceId, repositoryId, path, ask } = await scene.workspace()
  await scene.db('repositories').where({ id: repositoryId }).update({ repo_id: repoId, signature_verification: signatureVerification })
  const url = new URL(scene.api.baseUrl + path)
  /** Counts the documents that the repository has. */
  const count = async () => (await scene.db('archive_documents').where({ workspace_id: workspaceId, deleted_at: null })).length
  return { own: { workspaceId, repositoryId, repoId, signatureVerification, url }, count, ask }
}

/** Returns what is not as it should be. The receiver has every command. */
const faultsOf = ({ results, left_behind: left }: Report) => [
  ...results.filter(({ status }) => status === 'failed' || status === 'not_offered').map(({ id, message }) => `${id}: ${message}`),
  ...left,
]

describe('the receiver passes relay check source', () => {
  test('unsigned', async () => {
    const { own, count } = await repositoryOf(false)
    const report = await checkOwnRepository(own, deps, { profile: 'full' })
    expect(faultsOf(report)).toEqual([])
    expect(report).toMatchObject({ signed: false, server: 'Document Relay 1.0' })
    expect(await count()).toBe(0)
  })

  test('signed with RSA, by a certificate of the run, which it deletes', async () => {
    const { own, ask } = await repositoryOf(true)
    const report = await checkOwnRepository(own, deps, { profile: 'full' })
    expect(faultsOf(report)).toEqual([])
    expect(report).toMatchObject({ signed: true, not_checked: 0 })
    expect(await certificates.listAll(own.repositoryId)).toEqual([])
    const { json } = await ask('GET', '/audit-logs?per_page=100')
    const events = json.data.map(({ attributes }: { attributes: { event: string } }) => attributes.event)
    expect(events).toEqual(expect.arrayContaining(['cert.received', 'cert.activated', 'cert.deleted']))
  })

  test('signed, in a repository whose name has a comma', async () => {
    const { own } = await repositoryOf(true, 'Z,1')
    expect(faultsOf(await checkOwnRepository(own, deps, { profile: 'wire' }))).toEqual([])
  })

  test('signed with DSA and SHA-1, by a certificate that an administrator has added', async () => {
    const { own } = await repositoryOf(true)
    const [{ signer, certificate }, stranger] = await Promise.all([createIdentity('dsa'), createIdentity('dsa')])
    const added = { ...own, authId: signer.authId, text: certificate.pem, status: 'active' as const, actor: systemActor }
    await certificates.add(added)
    const target = { url: own.url, contRep: 'Z1', pVersion: '0045', signer, stranger: async () => stranger.signer }
    const report = await runChecks(target, { profile: 'full' })
    expect(faultsOf(report)).toEqual([])
  })
})

test('a run that is stopped deletes its documents, and says that it was stopped', async () => {
  const { own, count } = await repositoryOf(false)
  const stop = new AbortController()
  const report = await checkOwnRepository(own, deps, {
    profile: 'core',
    signal: stop.signal,
    onResult: ({ id }) => void (id === 'create-exists' && stop.abort()),
  })
  expect(report).toMatchObject({ interrupted: true, failed: 0, left_behind: [] })
  expect(report.results.at(-1)?.id).toBe('create-exists')
  expect(await count()).toBe(0)
})

test('a run that signs nothing is told that the repository requires signatures', async () => {
  const { own } = await repositoryOf(true)
  const report = await runChecks(
    { url: own.url, contRep: 'Z1', pVersion: '0045', stranger: async () => Promise.reject(new Error('not asked')) },
    { profile: 'smoke' },
  )
  expect(report.results.find(({ id }) => id === 'access')).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/^info was answered with 401 \(signature_missing: /),
    remedy: expect.stringMatching(/^The repository requires signed requests: use --throw-away/),
  })
})
