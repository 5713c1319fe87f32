import { asciiLine, plainText, type Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { dateOf, timeOf } from '../document-headers.ts'

/** Tells a cache server whether signatures are required, and the active certificates, so that it can verify signatures by itself. */
export const getCert: CommandHandler = async ({ repository }, deps): Promise<Answer> => {
  const certificates = await deps.certificates.listActive(repository.id)
  const lines = [
    { security: repository.signatureVerification ? '1' : '0' },
    ...certificates.map((certificate) => ({
      subject: certificate.subject,
      issuer: certificate.issuer,
      serialNumber: certificate.serialNumber,
      notBefore: moment(certificate.validFrom),
      notAfter: moment(certificate.validTo),
      keyInfo: certificate.fingerprintSha1,
      certificate: certificate.received.toString('hex'),
    })),
  ]
  return { status: 200, headers: { 'Content-Type': plainText }, body: lines.map(asciiLine).join('') }
}

const moment = (time: Date) => `${dateOf(time)} ${timeOf(time)}`
