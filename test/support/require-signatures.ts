import { createCertificates } from '../../src/access/certificates.ts'
import type { Database } from '../../src/db/database.ts'
import type { SceneWorkspace } from './scene.ts'

/** Lets the repository of a workspace accept signed requests only, and activates a certificate, as the source system and an administrator do. */
export const requireSignatures = async (
  db: Database,
  { workspaceId, repositoryId, source }: Pick<SceneWorkspace, 'workspaceId' | 'repositoryId' | 'source'>,
  { authId, certificate }: { authId: string; certificate: string },
): Promise<void> => {
  await source.call(`putCert&pVersion=0045&contRep=Z1&authId=${encodeURIComponent(authId)}`, { method: 'PUT', body: certificate })
  const certificates = createCertificates(db)
  const [sent] = await certificates.listAll(repositoryId)
  await certificates.setStatus({ workspaceId, repositoryId, actor: { type: 'system', userId: null } }, sent!.id, 'active')
  await db('repositories').where({ id: repositoryId }).update({ signature_verification: true })
}
