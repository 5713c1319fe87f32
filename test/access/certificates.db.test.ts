import { createCertificates, replacedBy } from '../../src/access/certificates.ts'
import { newId } from '../../src/base/ids.ts'
import { createRepositories } from '../../src/routing/repositories.ts'
import { readCertificate } from '../../src/security/certificate.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { createSigner, type Signer } from '../support/signer.ts'

const actor = { type: 'system', userId: null } as const
const notFound = { code: 'not_found' }

const database = share(await createTestDatabase())
const signers = await Promise.all(['/CN=A', '/CN=B', '/CN=C'].map((subject) => createSigner('P-256', subject).then(share)))

const arrange = async () => {
  const { workspaceId, repositoryId } = await createRoutes(database.db, [])
  const certificates = createCertificates(database.db)
  const receive = (signer: Signer, authId = 'CN=TST', maxUnreviewed = 10, sentFrom = '192.0.2.1') =>
    certificates.receive(
      { workspaceId, repositoryId, authId, received: signer.pkcs7, facts: readCertificate(signer.der)!, actor, sentFrom },
      maxUnreviewed,
    )
  const auditLog = () => database.db('audit_logs').where({ workspace_id: workspaceId }).orderBy('id')
  return { workspaceId, repositoryId, certificates, receive, auditLog }
}

describe('certificates', () => {
  test('keep their status if they are received again; a certificate that differs is added as inactive', async () => {
    const { workspaceId, repositoryId, certificates, receive, auditLog } = await arrange()
    const first = await receive(signers[0]!)
    expect(first).toMatchObject({ isNew: true, certificate: { status: 'inactive', authId: 'CN=TST', subject: 'CN=A' } })
    await certificates.setStatus({ workspaceId, repositoryId, actor }, first.certificate.id, 'active')

    expect(await receive(signers[0]!)).toMatchObject({ isNew: false, certificate: { id: first.certificate.id, status: 'active' } })
    expect(await receive(signers[1]!)).toMatchObject({ isNew: true, certificate: { status: 'inactive' } })
    expect(await receive(signers[0]!, 'CN=tst')).toMatchObject({ isNew: true, certificate: { status: 'inactive' } })
    expect((await certificates.listKeys(repositoryId, 'CN=TST')).certificates.map(({ der }) => der)).toEqual([null, signers[0]!.der])
    expect(await certificates.listKeys(repositoryId, 'cn=tst')).toEqual({ certificates: [], rivals: [] })
    expect(await certificates.listActive(repositoryId)).toMatchObject([{ subject: 'CN=A', received: signers[0]!.pkcs7 }])
    expect((await auditLog()).map(({ event }) => event)).toEqual(['cert.received', 'cert.activated', 'cert.received', 'cert.received'])
  })

  test('are stored once if they are received several times at once', async () => {
    const { repositoryId, certificates, receive, auditLog } = await arrange()
    const answers = await Promise.all(Array.from({ length: 5 }, () => receive(signers[0]!)))
    expect(answers.filter(({ isNew }) => isNew)).toHaveLength(1)
    expect(await certificates.listAll(repositoryId)).toHaveLength(1)
    expect(await auditLog()).toHaveLength(1)
  })

  test('that are unreviewed give way beyond their maximum number, the oldest first', async () => {
    const { workspaceId, repositoryId, certificates, receive, auditLog } = await arrange()
    const authIds = async () => (await certificates.listAll(repositoryId)).map(({ authId }) => authId)
    const activated = await receive(signers[0]!, 'CN=ACTIVE', 2)
    const { id } = activated.certificate
    await certificates.setStatus({ workspaceId, repositoryId, actor }, id, 'active')
    await certificates.setStatus({ workspaceId, repositoryId, actor }, id, 'inactive')

    for (const authId of ['CN=1', 'CN=2', 'CN=2', 'CN=3']) await receive(signers[0]!, authId, 2)
    expect(await authIds()).toEqual(['CN=ACTIVE', 'CN=2', 'CN=3'])
    await receive(signers[1]!, 'CN=4', 1)
    expect(await authIds()).toEqual(['CN=ACTIVE', 'CN=4'])
    // Neither what gives way nor what replaces it is recorded.
    const received = (await auditLog()).filter(({ event }) => !event.startsWith('cert.a') && event !== 'cert.deactivated')
    expect(received.map(({ event, description }) => [event, description])).toEqual([
      ['cert.received', 'Certificate CN=A of CN=ACTIVE was received.'],
      ['cert.received', 'Certificate CN=A of CN=1 was received.'],
      ['cert.received', 'Certificate CN=A of CN=2 was received.'],
    ])
  })

  test('of a flood push out only what the same address has sent, and add a bounded number of audit entries', async () => {
    const { repositoryId, certificates, receive, auditLog } = await arrange()
    const authIds = async () => (await certificates.listAll(repositoryId)).map(({ authId }) => authId)
    await receive(signers[0]!, 'CN=SAP', 4, '192.0.2.7')
    for (let sent = 1; sent <= 50; sent += 1) await receive(signers[1]!, `CN=${sent}`, 4)
    expect(await authIds()).toEqual(['CN=SAP', 'CN=48', 'CN=49', 'CN=50'])
    expect(await auditLog()).toHaveLength(4)
    // The source system finds room during the flood, and keeps it.
    await receive(signers[2]!, 'CN=SAP', 4, '192.0.2.7')
    for (let sent = 51; sent <= 53; sent += 1) await receive(signers[1]!, `CN=${sent}`, 4)
    expect(await authIds()).toEqual(['CN=SAP', 'CN=SAP', 'CN=52', 'CN=53'])
    expect(await auditLog()).toHaveLength(4)
  })

  test.each([
    ['nothing, as long as there is room', 'a', ['a', 'b'], 3, []],
    ['the oldest of the address, if it has sent most', 'a', ['b', 'a', 'a'], 3, ['1']],
    ['the oldest of another address that has sent more', 'c', ['a', 'b', 'b'], 3, ['1']],
    ['its own rather than that of an address that has sent as many', 'a', ['b', 'b', 'a'], 3, ['2']],
    ['the oldest of all, if each address has sent one', 'd', ['a', 'b', 'c'], 3, ['0']],
    ['as many as are too many', 'a', ['b', 'a', 'a', 'a'], 2, ['1', '2', '3']],
  ])('replace %s', (_, sentFrom, sent, max, replaced) => {
    expect(
      replacedBy(
        sentFrom,
        sent.map((each, index) => ({ id: String(index), sentFrom: each })),
        max,
      ),
    ).toEqual(replaced)
  })

  test('of operators have a limit of their own, which received certificates do not use up', async () => {
    const { workspaceId, repositoryId, certificates, receive } = await arrange()
    for (const authId of ['CN=1', 'CN=2', 'CN=3']) await receive(signers[0]!, authId)
    const add = (authId: string) =>
      certificates.add({ workspaceId, repositoryId, authId, text: signers[1]!.der.toString('base64'), actor, status: 'inactive' }, 2)
    await add('CN=A')
    const { id } = await add('CN=B')
    await expect(add('CN=C')).rejects.toThrow('has reached the maximum number of certificates')
    await expect(add('CN=B')).rejects.toThrow(`already has this certificate for this auth_id: ${id}.`)
    expect(await receive(signers[2]!, 'CN=4')).toMatchObject({ isNew: true })
  })

  test('cause an audit log entry for every change, and none if nothing changes', async () => {
    const { workspaceId, repositoryId, certificates, receive, auditLog } = await arrange()
    const received = await receive(signers[0]!)
    const { id, fingerprintSha256, validTo } = received.certificate
    const by = { type: 'api_key', id: newId(), name: 'Night batch', userId: newId() } as const
    for (const status of ['active', 'active', 'inactive', 'inactive'] as const) {
      expect(await certificates.setStatus({ workspaceId, repositoryId, actor: by }, id, status)).toMatchObject({ id, status })
    }
    const owner = { workspaceId, repositoryId, actor: by }
    await certificates.delete(owner, id)
    await expect(certificates.delete(owner, id)).rejects.toMatchObject(notFound)
    await expect(certificates.setStatus({ workspaceId, repositoryId, actor: by }, id, 'active')).rejects.toMatchObject(notFound)

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
      description: 'Certificate CN=A of CN=TST was deleted.',
      metadata: { fingerprint_sha256: fingerprintSha256, valid_to: validTo.toISOString() },
    })
  })

  test('belong to one repository of one workspace, and are deleted with it', async () => {
    const [mine, other] = [await arrange(), await arrange()]
    const received = await mine.receive(signers[0]!)
    const { id } = received.certificate
    await expect(
      mine.certificates.setStatus({ workspaceId: other.workspaceId, repositoryId: mine.repositoryId, actor }, id, 'active'),
    ).rejects.toMatchObject(notFound)
    await expect(
      mine.certificates.setStatus({ workspaceId: other.workspaceId, repositoryId: other.repositoryId, actor }, id, 'active'),
    ).rejects.toMatchObject(notFound)
    await expect(
      mine.certificates.delete({ workspaceId: other.workspaceId, repositoryId: other.repositoryId, actor }, id),
    ).rejects.toMatchObject(notFound)

    await createRepositories(database.db).delete(mine.workspaceId, mine.repositoryId, actor, { limit: 100, keepConnections: false })
    expect(await mine.certificates.listAll(mine.repositoryId)).toEqual([])
    await expect(mine.receive(signers[0]!)).rejects.toMatchObject(notFound)
    expect((await mine.auditLog()).map(({ event }) => event)).toEqual(['cert.received', 'repository.deleted', 'cert.deleted'])
  })
})
