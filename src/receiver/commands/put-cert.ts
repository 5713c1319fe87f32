import { systemActor } from '../../db/audit.ts'
import { certificateMaxBytes, isAuthId, isTooWeak, readCertificate, tooWeak } from '../../security/certificate.ts'
import type { Answer } from '../answer.ts'
import { readBody } from '../body.ts'
import type { CommandContext, CommandDeps, CommandHandler } from '../command-context.ts'
import { Refusal } from '../refusal.ts'

/**
 * Stores the certificate that a source system signs with. It is inactive until an operator activates it. Until then it counts towards a
 * limit of its own, because every client can send certificates.
 */
export const putCert: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command, exchange } = context
  const waitSeconds = deps.putCertLimit.count(exchange.request.sourceIp)
  if (waitSeconds > 0) {
    throw new Refusal('too_many_certificates', `your address has sent too many certificates, try again in ${waitSeconds} s`)
  }
  const authId = command.get('authId')
  if (!isAuthId(authId)) throw new Refusal('invalid_parameter', 'authId must not be empty, too long, or contain control characters')

  const received = await readWholeBody(context, deps)
  const facts = readCertificate(received)
  if (!facts) {
    throw new Refusal('certificate_unreadable', 'the body is not a certificate with a DSA, RSA or EC key, as DER, PEM, PKCS#7 or base64')
  }
  if (isTooWeak(facts)) throw new Refusal('certificate_too_weak', `the certificate ${tooWeak}`)
  await deps.certificates.receive(
    { workspaceId: repository.workspace.id, repositoryId: repository.id, authId, received, facts, actor: systemActor },
    deps.limits.maxUnreviewedCertificates,
  )
  return { status: 200, headers: {}, body: '' }
}

const readWholeBody = async ({ exchange }: CommandContext, { limits }: CommandDeps): Promise<Buffer> => {
  const chunks: Buffer[] = []
  const bounded = { ...limits, RELAY_DOCUMENT_MAX_BYTES: certificateMaxBytes }
  for await (const chunk of readBody(exchange.request, bounded)) chunks.push(chunk)
  return Buffer.concat(chunks)
}
