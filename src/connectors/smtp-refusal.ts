import { DeliveryError } from './connector.ts'
import type { Reply } from './smtp-replies.ts'

/** What a server was asked when it refused. */
export type Stage = 'connection' | 'login' | 'sender' | 'recipient' | 'message'

// 5.2.2 is a mailbox that is full: a matter of time, whatever the first digit says
const mailboxFull = /^5\.2\.2\b/
const tooLarge = /^5\.(2\.3|3\.4)\b/

/** Whether another try may be met with another answer. */
export const isPassing = ({ code, text }: Reply) => code < 500 || mailboxFull.test(text)

/**
 * A refusal as an operator understands it.
 * @param who whom the server does not take
 */
export const refusal = (stage: Stage, reply: Reply, who = ''): DeliveryError => {
  const { code, text } = reply
  const said = `${code} ${text}`.trim()
  const answer = { status: code, body: text }
  const passing = (message: string) => new DeliveryError(`smtp_${code}`, message, { answer })
  const permanently = (name: string, message: string) => new DeliveryError(name, message, { permanent: true, answer })

  if (isPassing(reply) || stage === 'connection') {
    return passing(stage === 'recipient' ? `the server takes no mail now for ${who}` : `the server put us off: ${said}`)
  }
  // asked for, or too weak, at any stage
  if (stage === 'login' || code === 530 || code === 535 || code === 538) {
    return permanently('credentials_refused', `the server does not let us send: ${said}`)
  }
  if (stage === 'recipient') return permanently('recipient_refused', `the server refused ${who}: nobody got the mail`)
  if (tooLarge.test(text) || (stage !== 'message' && code === 552)) {
    return permanently('message_too_large', `the message is longer than the server takes (${said}): lower max_attachment_bytes`)
  }
  if (stage === 'sender') return permanently('sender_refused', `the server does not take mail from ${who}: ${said}`)
  return permanently('message_refused', `the server refused the message: ${said}`)
}
