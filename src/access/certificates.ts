import type { Knex } from 'knex'
import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound, validationFailed } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { asColumns, columnsAs } from '../domain/casing.ts'
import { certificateMaxBytes, isTooWeak, readCertificate, tooWeak, type CertificateFacts } from '../security/certificate.ts'

export type CertificateStatus = 'active' | 'inactive'

/** A certificate as operators see it. */
export interface Certificate extends Omit<CertificateFacts, 'der' | 'signerId'> {
  id: string
  authId: string
  status: CertificateStatus
  receivedAt: Date
  updatedAt: Date
}

/** The repository whose certificates change, and the actor of the change. */
interface Owner {
  workspaceId: string
  repositoryId: string
  actor: AuditActor
}

interface NewCertificate extends Owner {
  authId: string
  /** The bytes as they were received. */
  received: Buffer
  facts: CertificateFacts
}

interface SentCertificate extends NewCertificate {
  /** The address that has sent it, or for IPv6 its network. */
  sentFrom: string
}

interface UploadedCertificate extends Owner {
  authId: string
  text: string
  status: CertificateStatus
}

interface Stored {
  certificate: Certificate
  /** False if the repository had the certificate already, which then stays as it is. */
  isNew: boolean
  /** True if another certificate gave way to it. */
  hasReplaced: boolean
}

interface CertificateKey {
  /** Null while the certificate is inactive. */
  der: Buffer | null
  signerId: string
}

const events = {
  'cert.received': 'was received',
  'cert.activated': 'was activated',
  'cert.deactivated': 'was deactivated',
  'cert.deleted': 'was deleted',
} as const

const displayedColumns = (db: Database | Transaction) => [
  ...columnsAs('id, auth_id, subject, issuer, serial_number, valid_from, valid_to, received_at, updated_at'),
  ...columnsAs('key_algorithm, key_bits, signature_algorithm, fingerprint_sha1, fingerprint_sha256'),
  db.raw("case when is_active then 'active' else 'inactive' end as status"),
]

const audit = (trx: Transaction, workspaceId: string, event: keyof typeof events, certificate: Certificate, actor: AuditActor) =>
  record(trx, {
    workspaceId,
    event,
    subjectId: certificate.id,
    description: `Certificate ${certificate.subject || certificate.serialNumber} of ${certificate.authId} ${events[event]}.`,
    metadata: { fingerprint_sha256: certificate.fingerprintSha256, valid_to: certificate.validTo.toISOString() },
    actor,
  })

const of = ({ repositoryId }: Pick<Owner, 'repositoryId'>) => ({ repository_id: repositoryId })

/** Deletes the certificates that a query finds. @returns their number */
const remove = async (trx: Transaction, { workspaceId, actor }: Owner, found: Knex.QueryBuilder): Promise<number> => {
  const deleted: Certificate[] = await trx('certificates').whereIn('id', found.select('id')).delete().returning(displayedColumns(trx))
  for (const certificate of deleted) await audit(trx, workspaceId, 'cert.deleted', certificate, actor)
  return deleted.length
}

/** Deletes the certificates of a deleted repository. */
export const deleteCertificatesOf = async (
  trx: Transaction,
  workspaceId: string,
  repositoryId: string,
  actor: AuditActor,
): Promise<void> => {
  await remove(trx, { workspaceId, repositoryId, actor }, trx('certificates').where({ repository_id: repositoryId }))
}

/** Finds the certificate if it is stored already for the same authId. */
const findSame = (
  trx: Transaction,
  { repositoryId, authId, facts }: Pick<NewCertificate, 'repositoryId' | 'authId' | 'facts'>,
): Promise<Certificate | undefined> =>
  trx('certificates')
    .select(displayedColumns(trx))
    .where({ repository_id: repositoryId, auth_id: authId, fingerprint_sha256: facts.fingerprintSha256 })
    .first()

const insert = async (
  trx: Transaction,
  { workspaceId, repositoryId, authId, received, facts, actor }: NewCertificate,
  state: { is_active?: boolean; is_unreviewed?: boolean; sent_from?: string },
  isRecorded = true,
): Promise<Certificate> => {
  const [certificate]: Certificate[] = await trx('certificates')
    .insert({
      ...asColumns({ id: newId(), workspaceId, repositoryId, authId, received, ...facts }),
      ...state,
    })
    .returning(displayedColumns(trx))
  if (isRecorded) await audit(trx, workspaceId, 'cert.received', certificate!, actor)
  if (state.is_active) await audit(trx, workspaceId, 'cert.activated', certificate!, actor)
  return certificate!
}

/** An unreviewed certificate. */
interface Sent {
  id: string
  sentFrom: string | null
}

/**
 * Returns the ids of the unreviewed certificates that give way to one more: each time the oldest of the address that has sent most of them.
 * So one address replaces only what it has sent itself, unless all others have sent one each.
 * @param unreviewed oldest first
 */
export const replacedBy = (sentFrom: string, unreviewed: readonly Sent[], maxUnreviewed: number): string[] => {
  const kept: Sent[] = [...unreviewed]
  const replaced: string[] = []
  while (kept.length > 0 && kept.length >= maxUnreviewed) {
    const sentBy = (address: string | null) => kept.filter((each) => each.sentFrom === address).length + (address === sentFrom ? 1 : 0)
    const most = Math.max(...kept.map((each) => sentBy(each.sentFrom)))
    const own = kept.findIndex((each) => each.sentFrom === sentFrom && sentBy(sentFrom) === most)
    const first = kept.findIndex((each) => sentBy(each.sentFrom) === most)
    replaced.push(...kept.splice(own >= 0 ? own : first, 1).map(({ id }) => id))
  }
  return replaced
}

/**
 * Returns a query for the names of the repositories in the same workspace that begin with the name of the repository `own` or are its
 * beginning, and that accept signatures of an authId. The text that is signed for one of them may be read as if it was signed for another.
 * @param own alias of the table repositories in the outer query
 * @param authIds condition on `theirs.auth_id`
 */
export const similarRepositories = (own: string, authIds: string) => `
  select alike.repo_id
  from repositories as alike
  where alike.workspace_id = ${own}.workspace_id
    and alike.deleted_at is null
    and (
      alike.repo_id collate "C" > ${own}.repo_id and alike.repo_id collate "C" < ${own}.repo_id || chr(127)
      or alike.repo_id collate "C" = any (array(select left(${own}.repo_id, n) from generate_series(1, length(${own}.repo_id) - 1) as n))
    )
    and exists (
      select 1
      from certificates as theirs
      where theirs.repository_id = alike.id
        and theirs.auth_id ${authIds}
        and theirs.is_active
    )
`

// Of a repository, that operators have added or activated, active or not. Each is tried for a signature of its authId.
const certificatesMax = 100

/** Reads a certificate that an operator has uploaded as text. @throws AppError 422 */
const readUpload = (text: string): CertificateFacts => {
  const bytes = Buffer.from(text)
  const facts = bytes.length <= certificateMaxBytes ? readCertificate(bytes) : undefined
  if (!facts) throw validationFailed([{ path: 'certificate', message: 'must be an X.509 certificate with a DSA, RSA or EC key' }])
  if (isTooWeak(facts)) throw validationFailed([{ path: 'certificate', message: tooWeak }])
  return facts
}

export const createCertificates = (db: Database) => {
  /** Locks a repository, so that changes of its certificates take turns. @throws AppError 404 */
  const lock = async (trx: Transaction, { workspaceId, repositoryId }: Owner): Promise<void> => {
    const found = await trx('repositories')
      .select('id')
      .where({ workspace_id: workspaceId, id: repositoryId })
      .whereNull('deleted_at')
      .forNoKeyUpdate()
      .first()
    if (!found) throw notFound()
  }

  return {
    /** Adds a certificate that an operator has uploaded as text. @throws AppError 404, 409 or 422 */
    add: ({ text, ...upload }: UploadedCertificate, maxCertificates: number = certificatesMax): Promise<Certificate> => {
      const facts = readUpload(text)
      const certificate = { ...upload, received: facts.der, facts }
      return db.transaction(async (trx) => {
        await lock(trx, certificate)
        const known = await findSame(trx, certificate)
        if (known) throw new AppError('conflict', `The repository already has this certificate for this auth_id: ${known.id}.`)
        const reviewed = await trx('certificates')
          .count({ total: '*' })
          .where({ ...of(certificate), is_unreviewed: false })
          .first()
        if (Number(reviewed?.total) >= maxCertificates) {
          throw new AppError('conflict', 'The repository has reached the maximum number of certificates. Delete one first.')
        }
        return insert(trx, certificate, { is_active: upload.status === 'active' })
      })
    },

    /**
     * Stores a certificate that a source system has sent, as inactive. A certificate that is stored already stays as it is. Every client
     * can send certificates: beyond `maxUnreviewed` unreviewed ones, others give way. The audit log records neither them nor the one that
     * replaces them, so that a flood of certificates adds no more than `maxUnreviewed` entries.
     * @throws AppError 404
     */
    receive: (certificate: SentCertificate, maxUnreviewed: number): Promise<Stored> =>
      db.transaction(async (trx) => {
        await lock(trx, certificate)
        const known = await findSame(trx, certificate)
        if (known) return { certificate: known, isNew: false, hasReplaced: false }
        const unreviewed: Sent[] = await trx('certificates')
          .select('id', 'sent_from as sentFrom')
          .where({ ...of(certificate), is_unreviewed: true })
          .orderBy('id')
        const replaced = replacedBy(certificate.sentFrom, unreviewed, maxUnreviewed)
        await trx('certificates').whereIn('id', replaced).delete()
        const state = { is_unreviewed: true, sent_from: certificate.sentFrom }
        return { certificate: await insert(trx, certificate, state, replaced.length === 0), isNew: true, hasReplaced: replaced.length > 0 }
      }),

    /** Lists certificates in order of receipt. */
    list: (workspaceId: string, repositoryId: string, page: PageRequest): Promise<Page<Certificate>> =>
      pageOf(
        db('certificates').where({ workspace_id: workspaceId, repository_id: repositoryId }).orderBy('id'),
        displayedColumns(db),
        page,
      ),

    listAll: (repositoryId: string): Promise<Certificate[]> =>
      db('certificates').select(displayedColumns(db)).where({ repository_id: repositoryId }).orderBy('id'),

    /** Lists the certificates that may sign for a repository, with their bytes as received. */
    listActive: (repositoryId: string): Promise<(Certificate & { received: Buffer })[]> =>
      db('certificates')
        .select([...displayedColumns(db), 'received'])
        .where({ repository_id: repositoryId, is_active: true })
        .orderBy('id'),

    /**
     * Lists the certificates of an authId, which is compared literally. Inactive certificates come without their bytes.
     * @returns also the names of other repositories of the workspace that accept signatures of the authId, and whose name begins with the
     * name of this repository or is its beginning
     */
    listKeys: async (repositoryId: string, authId: string): Promise<{ certificates: CertificateKey[]; rivals: string[] }> => {
      const { rows } = await db.raw<{ rows: (CertificateKey & { rivals: string[] })[] }>(
        `
        select
          signer_id as "signerId",
          case when is_active then der end as der,
          (
            select array(${similarRepositories('own', '= :authId')})
            from repositories as own
            where own.id = :repositoryId
          ) as rivals
        from certificates
        where repository_id = :repositoryId
          and auth_id = :authId
        order by id desc
        `,
        { repositoryId, authId },
      )
      return { certificates: rows, rivals: rows[0]?.rivals ?? [] }
    },

    /** Lists the names by which active certificates sign for a repository. */
    listAuthIds: (repositoryId: string): Promise<string[]> =>
      db('certificates').distinct('auth_id').where({ repository_id: repositoryId, is_active: true }).pluck('auth_id'),

    /** Activates or deactivates a certificate. @throws AppError 404 */
    setStatus: (owner: Owner, id: string, status: CertificateStatus): Promise<Certificate> =>
      db.transaction(async (trx) => {
        await lock(trx, owner)
        const wanted = { ...of(owner), id }
        const isActive = status === 'active'
        const [changed]: Certificate[] = await trx('certificates')
          .where({ ...wanted, is_active: !isActive })
          .update({ is_active: isActive, is_unreviewed: false, updated_at: trx.fn.now() })
          .returning(displayedColumns(db))
        if (changed) await audit(trx, owner.workspaceId, isActive ? 'cert.activated' : 'cert.deactivated', changed, owner.actor)
        const found: Certificate | undefined = changed ?? (await trx('certificates').select(displayedColumns(db)).where(wanted).first())
        if (!found) throw notFound()
        return found
      }),

    /** Deletes a certificate. @throws AppError 404 */
    delete: (owner: Owner, id: string): Promise<void> =>
      db.transaction(async (trx) => {
        await lock(trx, owner)
        if ((await remove(trx, owner, trx('certificates').where({ ...of(owner), id }))) === 0) throw notFound()
      }),

    /** Deletes all inactive certificates of a repository. @throws AppError 404 if the repository does not exist */
    deleteInactive: (owner: Owner): Promise<void> =>
      db.transaction(async (trx) => {
        await lock(trx, owner)
        await remove(trx, owner, trx('certificates').where({ ...of(owner), is_active: false }))
      }),
  }
}

export type Certificates = ReturnType<typeof createCertificates>
