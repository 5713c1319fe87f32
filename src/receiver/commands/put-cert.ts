import { systemActor } from '../../db/audit.ts'
import { sourceOf } from '../../security/address-filter.ts'
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
  const owner = { workspaceId: repository.workspace.id, repositoryId: repository.id, actor: systemActor }
  const { certificate, hasReplaced } = await deps.certificates.receive(
    { ...owner, authId, received, facts, sentFrom: sourceOf(exchange.request.sourceIp) },
    deps.limits.maxUnreviewedCertificates,
  )
  if (hasReplaced) {
    const ids = { request_id: exchange.request.id, repository_id: repository.id, certificate_id: certificate.id }
    deps.log.warn(ids, 'a certificate that was sent has replaced another one that no operator has reviewed')
  }
  return { status: 200, headers: {}, body: '' }
}

const readWholeBody = async ({ exchange }: CommandContext, { limits }: CommandDeps): Promise<Buffer> => {
  const chunks: Buffer[] = []
  const bounded = { ...limits, RELAY_DOCUMENT_MAX_BYTES: certificateMaxBytes }
  for await (const chunk of readBody(exchange.request, bounded)) chunks.push(chunk)
  return Buffer.concat(chunks)
}
