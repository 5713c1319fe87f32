import { runChecks, type Report, type RunOptions } from '../../clients/check-source/src/run.ts'
import { createIdentity, throwAwayOf, type Activate } from '../../clients/check-source/src/throw-away.ts'
import type { Certificates } from '../access/certificates.ts'
import type { AuditActor } from '../db/audit.ts'
import type { EndCheck } from '../delivery/end-check.ts'

export interface OwnRepository {
  workspaceId: string
  repositoryId: string
  repoId: string
  signatureVerification: boolean
  /** Address of its receiver. */
  url: URL
}

interface OwnDeps {
  certificates: Pick<Certificates, 'listAll' | 'setStatus' | 'delete'>
  actor: AuditActor
  endCheck: EndCheck
}

const stranger = async () => (await createIdentity('rsa')).signer

/**
 * Checks a repository of this relay over HTTP, as its source system would use it. If it requires signatures, certificates of the run are sent,
 * activated and deleted again, each with its entry in the audit log. What is still to be delivered of the documents of the run is cancelled.
 */
export const checkOwnRepository = async (own: OwnRepository, deps: OwnDeps, options: RunOptions): Promise<Report> => {
  const { workspaceId, repoId } = own
  const docIds: string[] = []
  try {
    return await runOwn(own, deps, { ...options, onDocument: (docId) => void docIds.push(docId) })
  } finally {
    await deps.endCheck({ workspaceId, repoId, docIds })
  }
}

const runOwn = async (own: OwnRepository, { certificates, actor }: OwnDeps, options: RunOptions): Promise<Report> => {
  const target = { url: own.url, contRep: own.repoId, pVersion: '0047', stranger }
  if (!own.signatureVerification) return runChecks(target, options)

  const owner = { workspaceId: own.workspaceId, repositoryId: own.repositoryId, actor }
  const identity = await createIdentity('rsa')
  const known = new Set((await certificates.listAll(own.repositoryId)).map(({ id }) => id))
  /** Returns the certificates that the run has sent. */
  const sent = async () => (await certificates.listAll(own.repositoryId)).filter(({ id, authId }) => !known.has(id) && authIds.has(authId))
  const authIds = new Set([identity.signer.authId])
  const activate: Activate = async ({ signer, fingerprintSha256 }) => {
    authIds.add(signer.authId)
    const received = (await sent()).find((certificate) => certificate.fingerprintSha256 === fingerprintSha256)
    // Otherwise putCert has failed, which is a line of the report.
    if (received) await certificates.setStatus(owner, received.id, 'active')
  }
  try {
    return await runChecks({ ...target, signer: identity.signer, throwAway: throwAwayOf(identity, activate) }, options)
  } finally {
    for (const { id } of await sent()) await certificates.delete(owner, id)
  }
}
