import { plainText, type Answer } from '../answer.ts'
import { dateOf, timeOf } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { asLine } from '../lines.ts'

/** What a cache server asks for, so that it can verify signatures by itself: whether they are looked at, and the active certificates. */
export const getCert: CommandHandler = async ({ source: { repository } }, deps): Promise<Answer> => {
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
  return { status: 200, headers: { 'Content-Type': plainText }, body: lines.map(asLine).join('') }
}

const moment = (time: Date) => `${dateOf(time)} ${timeOf(time)}`
