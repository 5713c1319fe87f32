import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import type { Reply } from './smtp-replies.ts'

/** The step of the session at which a server refused. */
export type Stage = 'connection' | 'login' | 'sender' | 'recipient' | 'message'

// 5.2.2 is a full mailbox, which passes although its first digit says otherwise.
const mailboxFull = /^5\.2\.2\b/
const tooLarge = /^5\.(2\.3|3\.4)\b/

/** Returns `true` if a later attempt may get another reply. */
export const isTemporary = ({ code, text }: Reply) => code < 500 || mailboxFull.test(text)

/**
 * Maps a refusal by the mail server.
 * @param addresses are those that the server refused
 */
export const smtpError = (stage: Stage, reply: Reply, addresses = ''): DeliveryError => {
  const { code, text } = reply
  const quoted = `${code} ${text}`.trim()
  const answer = { status: code, body: text }
  const refusal = (name: FixedErrorCode, message: string) => new DeliveryError(name, message, { answer })

  if (isTemporary(reply) || stage === 'connection') {
    return refusal(
      `smtp_${code}`,
      stage === 'recipient' ? `the server does not accept mail for ${addresses} now` : `the server asked to try again later: ${quoted}`,
    )
  }
  // At any stage, a server may require a login or a stronger one.
  if (stage === 'login' || code === 530 || code === 535 || code === 538) {
    return new DeliveryError('credentials_refused', `the server does not permit the account to send: ${quoted}`, {
      permanent: true,
      answer,
    })
  }
  if (stage === 'recipient') return refusal('recipient_refused', `the server refused ${addresses}; nobody received the mail`)
  if (tooLarge.test(text) || (stage !== 'message' && code === 552)) {
    return refusal('message_too_large', `the message is longer than the server accepts (${quoted}); lower max_attachment_bytes`)
  }
  if (stage === 'sender') return refusal('sender_refused', `the server does not accept mail from ${addresses}: ${quoted}`)
  return refusal('message_refused', `the server refused the message: ${quoted}`)
}
