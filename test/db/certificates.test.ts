import { createCertificates } from '../../src/db/certificates.ts'
import { createRepositories } from '../../src/db/repositories.ts'
import { newId } from '../../src/ids.ts'
import { readCertificate } from '../../src/security/certificate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring } from '../support/factories.ts'
import { createSigner, type Signer } from '../support/signer.ts'

let database: TestDatabase
let signers: Signer[]
const actor = { type: 'system', userId: null } as const

beforeAll(async () => {
  database = await createTestDatabase()
  signers = await Promise.all(['/CN=A', '/CN=B', '/CN=C'].map((subject) => createSigner('P-256', subject)))
})
afterAll(async () => {
  for (const signer of signers) await signer.remove()
  await database.drop()
})

const scene = async () => {
  const { workspaceId, repositoryId } = await createWiring(database.db, [])
  const certificates = createCertificates(database.db)
  const receive = (signer: Signer, authId = 'CN=TST', maxCertificates = 10) =>
    certificates.receive(
      { workspaceId, repositoryId, authId, received: signer.pkcs7, facts: readCertificate(signer.der)!, actor },
      maxCertificates,
    )
  const auditLog = () => database.db('audit_logs').where({ workspace_id: workspaceId }).orderBy('id')
  return { workspaceId, repositoryId, certificates, receive, auditLog }
}

describe('certificates', () => {
  it('that come again keep what an operator has decided, and others come beside them, inactive', async () => {
    const { workspaceId, repositoryId, certificates, receive, auditLog } = await scene()
    const first = await receive(signers[0]!)
    if (typeof first === 'string') throw new Error(first)
    expect(first).toMatchObject({ isNew: true, certificate: { status: 'inactive', authId: 'CN=TST', subject: 'CN=A' } })
    await certificates.setStatus(workspaceId, repositoryId, first.certificate.id, 'active', actor)

    expect(await receive(signers[0]!)).toMatchObject({ isNew: false, certificate: { id: first.certificate.id, status: 'active' } })
    expect(await receive(signers[1]!)).toMatchObject({ isNew: true, certificate: { status: 'inactive' } })
    expect(await receive(signers[0]!, 'CN=tst')).toMatchObject({ isNew: true, certificate: { status: 'inactive' } })
    expect((await certificates.listKeys(repositoryId, 'CN=TST')).map(({ der }) => der)).toEqual([null, signers[0]!.der])
    expect(await certificates.listKeys(repositoryId, 'cn=tst')).toEqual([])
    expect(await certificates.listActive(repositoryId)).toMatchObject([{ subject: 'CN=A', received: signers[0]!.pkcs7 }])
    expect((await auditLog()).map(({ event }) => event)).toEqual(['cert.received', 'cert.activated', 'cert.received', 'cert.received'])
  })

  it('that come twice at once are one', async () => {
    const { repositoryId, certificates, receive, auditLog } = await scene()
    const answers = await Promise.all(Array.from({ length: 5 }, () => receive(signers[0]!)))
    expect(answers.filter((answer) => typeof answer === 'object' && answer.isNew)).toHaveLength(1)
    expect(await certificates.listAll(repositoryId)).toHaveLength(1)
    expect(await auditLog()).toHaveLength(1)
  })

  it('are counted: whoever may send them may not send them without end', async () => {
    const { receive } = await scene()
    await receive(signers[0]!, 'CN=TST', 2)
    await receive(signers[1]!, 'CN=TST', 2)
    expect(await receive(signers[2]!, 'CN=TST', 2)).toBe('too_many')
    expect(await receive(signers[1]!, 'CN=TST', 2)).toMatchObject({ isNew: false })
  })

  it('leave an entry in the audit log with every change, and with nothing that changed nothing', async () => {
    const { workspaceId, repositoryId, certificates, receive, auditLog } = await scene()
    const received = await receive(signers[0]!)
    if (typeof received === 'string') throw new Error(received)
    const { id, fingerprintSha256, validTo } = received.certificate
    const by = { type: 'api_key', userId: newId() } as const
    for (const status of ['active', 'active', 'inactive', 'inactive'] as const) {
      expect(await certificates.setStatus(workspaceId, repositoryId, id, status, by)).toMatchObject({ id, status })
    }
    expect(await certificates.remove(workspaceId, repositoryId, id, by)).toBe(true)
    expect(await certificates.remove(workspaceId, repositoryId, id, by)).toBe(false)
    expect(await certificates.setStatus(workspaceId, repositoryId, id, 'active', by)).toBeUndefined()

    const log = await auditLog()
    expect(log.map(({ event, actor_type, user_id }) => [event, actor_type, user_id])).toEqual([
      ['cert.received', 'system', null],
      ['cert.activated', 'api_key', by.userId],
      ['cert.deactivated', 'api_key', by.userId],
      ['cert.deleted', 'api_key', by.userId],
    ])
    expect(log.at(-1)).toMatchObject({
      subject_type: 'Certificate',
      subject_id: id,
      description: 'The certificate CN=A of CN=TST was deleted.',
      metadata: { fingerprint_sha256: fingerprintSha256, valid_to: validTo.toISOString() },
    })
  })

  it('belong to one repository of one workspace, and go with it', async () => {
    const [mine, other] = [await scene(), await scene()]
    const received = await mine.receive(signers[0]!)
    if (typeof received === 'string') throw new Error(received)
    const { id } = received.certificate
    expect(await mine.certificates.setStatus(other.workspaceId, mine.repositoryId, id, 'active', actor)).toBeUndefined()
    expect(await mine.certificates.setStatus(other.workspaceId, other.repositoryId, id, 'active', actor)).toBeUndefined()
    expect(await mine.certificates.remove(other.workspaceId, other.repositoryId, id, actor)).toBe(false)

    await createRepositories(database.db).remove(mine.workspaceId, mine.repositoryId, actor)
    expect(await mine.certificates.listAll(mine.repositoryId)).toEqual([])
    expect(await mine.receive(signers[0]!)).toBe('repository_gone')
    expect((await mine.auditLog()).map(({ event }) => event)).toEqual(['cert.received', 'repository.deleted', 'cert.deleted'])
  })
})
