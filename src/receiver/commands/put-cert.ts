import { isAuthId, readCertificate } from '../../security/certificate.ts'
import type { Answer } from '../answer.ts'
import { readBody } from '../body.ts'
import type { Call, CommandDeps, CommandHandler } from '../call.ts'
import { Refusal } from '../refusal.ts'

/** A source system shows the certificate that it signs with. It signs nothing here until an operator has activated it. */
export const putCert: CommandHandler = async (call, deps): Promise<Answer> => {
  const { workspace, repository } = call.source
  const authId = call.command.get('authId')
  if (!isAuthId(authId)) throw new Refusal('invalid_parameter', 'authId must not be empty, nor long, nor hold control characters')

  const received = await wholeBody(call, deps)
  const facts = readCertificate(received)
  if (!facts)
    throw new Refusal('certificate_unreadable', 'the body is no certificate with a DSA, RSA or EC key, as DER, PEM, PKCS#7 or base64')
  const outcome = await deps.certificates.receive(
    { workspaceId: workspace.id, repositoryId: repository.id, authId, received, facts, actor: { type: 'system', userId: null } },
    deps.limits.RELAY_REPOSITORY_MAX_CERTIFICATES,
  )
  if (outcome === 'repository_gone') throw new Refusal('repository_not_found', 'there is no such repository')
  if (outcome === 'too_many') throw new Refusal('too_many_certificates', 'the repository holds as many certificates as it may: delete some')
  return { status: 200, headers: {}, body: '' }
}

const wholeBody = async ({ request }: Call, { limits }: CommandDeps): Promise<Buffer> => {
  const pieces: Buffer[] = []
  const bounded = { ...limits, RELAY_DOCUMENT_MAX_BYTES: limits.RELAY_CERTIFICATE_MAX_BYTES }
  for await (const piece of readBody(request, bounded)) pieces.push(piece)
  return Buffer.concat(pieces)
}
