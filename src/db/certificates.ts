import { newId } from '../ids.ts'
import type { CertificateFacts } from '../security/certificate.ts'
import { record, type AuditActor } from './audit.ts'
import type { Database, Transaction } from './database.ts'
import { pageOf, type Page, type PageRequest } from './page.ts'

export type CertificateStatus = 'active' | 'inactive'

/** A certificate as operators see it. */
export interface Certificate extends Omit<CertificateFacts, 'der' | 'signerId'> {
  id: string
  authId: string
  status: CertificateStatus
  receivedAt: Date
  updatedAt: Date
}

interface NewCertificate {
  workspaceId: string
  repositoryId: string
  authId: string
  /** As it came. */
  received: Buffer
  facts: CertificateFacts
  actor: AuditActor
  status?: CertificateStatus
}

type Received = { certificate: Certificate; isNew: boolean } | 'repository_gone' | 'too_many'

interface CertificateKey {
  /** Null while it is inactive. */
  der: Buffer | null
  signerId: string
}

const columns = [
  'id',
  'auth_id as authId',
  'subject',
  'issuer',
  'serial_number as serialNumber',
  'valid_from as validFrom',
  'valid_to as validTo',
  'key_algorithm as keyAlgorithm',
  'key_bits as keyBits',
  'fingerprint_sha1 as fingerprintSha1',
  'fingerprint_sha256 as fingerprintSha256',
  'received_at as receivedAt',
  'updated_at as updatedAt',
]

const events = {
  'cert.received': 'was received',
  'cert.activated': 'was activated',
  'cert.deactivated': 'was deactivated',
  'cert.deleted': 'was deleted',
} as const

const shown = (db: Database | Transaction) => [...columns, db.raw("case when is_active then 'active' else 'inactive' end as status")]

const audit = (trx: Transaction, workspaceId: string, event: keyof typeof events, certificate: Certificate, actor: AuditActor) =>
  record(trx, {
    workspaceId,
    event,
    subjectId: certificate.id,
    description: `The certificate ${certificate.subject || certificate.serialNumber} of ${certificate.authId} ${events[event]}.`,
    metadata: { fingerprint_sha256: certificate.fingerprintSha256, valid_to: certificate.validTo.toISOString() },
    actor,
  })

/** With their repository. */
export const removeCertificatesOf = async (
  trx: Transaction,
  workspaceId: string,
  repositoryId: string,
  actor: AuditActor,
): Promise<void> => {
  const deleted: Certificate[] = await trx('certificates').where({ repository_id: repositoryId }).delete().returning(shown(trx))
  for (const certificate of deleted) await audit(trx, workspaceId, 'cert.deleted', certificate, actor)
}

export const createCertificates = (db: Database) => {
  /** Changes to one repository's certificates take turns. @returns false where there is no such repository */
  const lock = async (trx: Transaction, workspaceId: string, repositoryId: string): Promise<boolean> => {
    const found = await trx('repositories')
      .select('id')
      .where({ workspace_id: workspaceId, id: repositoryId })
      .whereNull('deleted_at')
      .forNoKeyUpdate()
      .first()
    return found !== undefined
  }

  return {
    /** Takes a certificate in, inactive unless told otherwise. One that is there already stays what it is. */
    receive: (
      { workspaceId, repositoryId, authId, received, facts, actor, status = 'inactive' }: NewCertificate,
      maxCertificates: number,
    ): Promise<Received> =>
      db.transaction(async (trx) => {
        if (!(await lock(trx, workspaceId, repositoryId))) return 'repository_gone'
        const same = { repository_id: repositoryId, auth_id: authId, fingerprint_sha256: facts.fingerprintSha256 }
        const known: Certificate | undefined = await trx('certificates').select(shown(db)).where(same).first()
        if (known) return { certificate: known, isNew: false }
        const counted = await trx('certificates').where({ repository_id: repositoryId }).count({ total: '*' }).first()
        if (Number(counted?.total) >= maxCertificates) return 'too_many'

        const [certificate]: Certificate[] = await trx('certificates')
          .insert({
            ...same,
            id: newId(),
            workspace_id: workspaceId,
            received,
            der: facts.der,
            subject: facts.subject,
            issuer: facts.issuer,
            serial_number: facts.serialNumber,
            valid_from: facts.validFrom,
            valid_to: facts.validTo,
            key_algorithm: facts.keyAlgorithm,
            key_bits: facts.keyBits,
            fingerprint_sha1: facts.fingerprintSha1,
            signer_id: facts.signerId,
            is_active: status === 'active',
          })
          .returning(shown(db))
        await audit(trx, workspaceId, 'cert.received', certificate!, actor)
        if (status === 'active') await audit(trx, workspaceId, 'cert.activated', certificate!, actor)
        return { certificate: certificate!, isNew: true }
      }),

    /** In order of receipt. */
    list: (workspaceId: string, repositoryId: string, page: PageRequest): Promise<Page<Certificate>> =>
      pageOf(db('certificates').where({ workspace_id: workspaceId, repository_id: repositoryId }).orderBy('id'), shown(db), page),

    listAll: (repositoryId: string): Promise<Certificate[]> =>
      db('certificates').select(shown(db)).where({ repository_id: repositoryId }).orderBy('id'),

    /** The certificates that may sign for a repository, with the bytes in which they came. */
    listActive: (repositoryId: string): Promise<(Certificate & { received: Buffer })[]> =>
      db('certificates')
        .select([...shown(db), 'received'])
        .where({ repository_id: repositoryId, is_active: true })
        .orderBy('id'),

    /** What has been sent under an authId, compared literally. Of the inactive ones, of any size and number, only who they are. */
    listKeys: (repositoryId: string, authId: string): Promise<CertificateKey[]> =>
      db('certificates')
        .select(['signer_id as signerId', db.raw('case when is_active then der end as der')])
        .where({ repository_id: repositoryId, auth_id: authId })
        .orderBy('id', 'desc'),

    /** Undefined where there is none. One that has that status already is left alone. */
    setStatus: (
      workspaceId: string,
      repositoryId: string,
      id: string,
      status: CertificateStatus,
      actor: AuditActor,
    ): Promise<Certificate | undefined> =>
      db.transaction(async (trx) => {
        if (!(await lock(trx, workspaceId, repositoryId))) return undefined
        const of = { repository_id: repositoryId, id }
        const isActive = status === 'active'
        const [changed]: Certificate[] = await trx('certificates')
          .where({ ...of, is_active: !isActive })
          .update({ is_active: isActive, updated_at: trx.fn.now() })
          .returning(shown(db))
        if (!changed) return trx('certificates').select(shown(db)).where(of).first()
        await audit(trx, workspaceId, isActive ? 'cert.activated' : 'cert.deactivated', changed, actor)
        return changed
      }),

    /** @returns false where there is none */
    remove: (workspaceId: string, repositoryId: string, id: string, actor: AuditActor): Promise<boolean> =>
      db.transaction(async (trx) => {
        if (!(await lock(trx, workspaceId, repositoryId))) return false
        const [deleted]: Certificate[] = await trx('certificates').where({ repository_id: repositoryId, id }).delete().returning(shown(db))
        if (!deleted) return false
        await audit(trx, workspaceId, 'cert.deleted', deleted, actor)
        return true
      }),
  }
}

export type Certificates = ReturnType<typeof createCertificates>
