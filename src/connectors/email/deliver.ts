import { createHash } from 'node:crypto'
import { redactAndCut } from '../../base/secrets.ts'
import { DeliveryError, type AttemptContext, type Connector, type Payload, type Target } from '../connector.ts'
import { toDeliveryError, withDeliveryErrors } from '../shared/errors.ts'
import { openPayload } from '../shared/payload-stream.ts'
import { secretsOf, type Logins } from './login.ts'
import { createMessage, createNoticeMessage, messageBytes, messageIdHeader } from './message.ts'
import { recipientsOf, type EmailConfig, type EmailCredentials } from './schema.ts'
import type { Reply } from './smtp-replies.ts'
import { openSmtpSession, type SmtpSession } from './smtp-session.ts'

type EmailConnector = Required<Connector<EmailConfig, EmailCredentials>>
type EmailTarget = Target<EmailConfig, EmailCredentials>
type With<Method extends (...attempt: never[]) => unknown> = (logins: Logins, ...attempt: Parameters<Method>) => ReturnType<Method>

/** Mails the document as an attachment, or a link to it if it is too large. A repetition has the same Message-ID. */
export const deliver: With<EmailConnector['deliver']> = (logins, payload, target, context) =>
  withSession(logins, target, context, async (session, secrets) => {
    const { config } = target
    const recipients = recipientsOf(config)
    const isAttached = fitsInMessage(payload, config, session)
    // Before the envelope is sent: without a link there is no message to send.
    const url = isAttached ? undefined : requireLink(payload)
    const left = recipientsLeft(recipients, context.saved)
    const onSent = ({ length }: string[]) =>
      context.save({ recipients: digestOf(recipients), count: recipients.length - length } satisfies Sent)
    const send = () => sendMessage(session, payload, target, url, context)
    const reply = await sendToAll(session, config, left, messageBytes(isAttached ? payload.sizeBytes : 0), send, onSent)
    const text = redactAndCut(reply.text, secrets, context.answerMaxBytes)
    const messageId = messageIdHeader(payload, config)
    return {
      path: `mailto:${recipients.join(',')}?message-id=${encodeURIComponent(messageId)}`,
      bytesSent: isAttached ? payload.sizeBytes : 0,
      answer: { status: reply.code, reply: text, message_id: messageId, enclosed: isAttached ? 'attachment' : 'link' },
    }
  })

export const probe: With<EmailConnector['probe']> = (logins, target, context) => {
  // Test the credentials instead of a token that was issued for them earlier.
  logins.forget(target.credentials, context)
  return withSession(logins, target, context, async (session) => {
    const { host } = target.config
    await openEnvelopes(session, target.config, recipientsOf(target.config), messageBytes(0))
    await session.reset()
    const login = target.credentials.username === undefined ? '' : 'the login, '
    return `The server ${host} accepted ${login}the sender and all recipients. No mail was sent, so its delivery to the mailboxes is not proved.`
  })
}

export const sendNotice: With<EmailConnector['sendNotice']> = (logins, notice, target, context) =>
  withSession(logins, target, context, async (session) => {
    const send = () => session.send(createNoticeMessage(notice, target.config))
    await sendToAll(session, target.config, recipientsOf(target.config), messageBytes(0), send)
  })

/**
 * Opens as many envelopes as the server needs for the recipients, one after the other. The last one stays open.
 * @returns the number of envelopes
 * @throws DeliveryError if the server refuses a recipient
 */
const openEnvelopes = async (session: SmtpSession, config: EmailConfig, recipients: string[], sizeBytes: number): Promise<number> => {
  let rest = recipients
  for (let envelopes = 1; ; envelopes += 1) {
    rest = await session.address(config.from, rest, sizeBytes)
    if (rest.length === 0) return envelopes
    await session.reset()
  }
}

/**
 * Sends a message to all recipients, in as many transactions as the server needs. It has accepted every recipient before the first one gets
 * the message.
 * @param onSent is called after each transaction but the last, with the recipients that are left
 * @returns the reply to the last transaction
 */
const sendToAll = async (
  session: SmtpSession,
  config: EmailConfig,
  recipients: string[],
  sizeBytes: number,
  send: () => Promise<Reply>,
  onSent: (left: string[]) => void = () => {},
): Promise<Reply> => {
  if ((await openEnvelopes(session, config, recipients, sizeBytes)) === 1) return send()
  await session.reset()
  let rest = recipients
  for (;;) {
    rest = await session.address(config.from, rest, sizeBytes)
    const reply = await send()
    if (rest.length === 0) return reply
    onSent(rest)
  }
}

/** What an attempt saves that is lost between two transactions. */
interface Sent {
  /** Digest of all recipients. */
  recipients: string
  /** How many of them have the mail. */
  count: number
}

const digestOf = (recipients: string[]) => createHash('sha256').update(recipients.join()).digest('base64')

/** Returns the recipients that have not got the mail from an attempt that was lost. */
const recipientsLeft = (recipients: string[], saved: unknown): string[] => {
  const { recipients: digest, count } = (saved ?? {}) as Partial<Sent>
  return digest === digestOf(recipients) ? recipients.slice(count) : recipients
}

const fitsInMessage = ({ sizeBytes }: Payload, config: EmailConfig, { sizeMaxBytes = Infinity }: SmtpSession) =>
  sizeBytes <= config.max_attachment_bytes && messageBytes(sizeBytes) <= sizeMaxBytes

const requireLink = (payload: Payload): string => {
  const url = payload.downloadUrl()
  if (url !== undefined) return url
  throw new DeliveryError(
    'link_unavailable',
    'the document is too large to attach, and without RELAY_BASE_URL there is no link to it; set RELAY_BASE_URL, or raise max_attachment_bytes',
  )
}

const sendMessage = async (
  session: SmtpSession,
  payload: Payload,
  { config }: EmailTarget,
  url: string | undefined,
  context: AttemptContext,
) => {
  if (url !== undefined) return session.send(createMessage(payload, config, { url }))
  const document = openPayload(payload, context)
  let readError: Error | undefined
  document.once('error', (error) => {
    readError = error
  })
  try {
    return await session.send(createMessage(payload, config, { attached: document }))
  } catch (thrown) {
    throw readError instanceof DeliveryError ? readError : thrown
  } finally {
    document.destroy()
  }
}

const withSession = <Result>(
  logins: Logins,
  target: EmailTarget,
  context: AttemptContext,
  act: (session: SmtpSession, secrets: string[]) => Promise<Result>,
): Promise<Result> => {
  const secrets = secretsOf(target.credentials)
  const attempt = async () => {
    const session = await logins.withLogin(target.credentials, context, secrets, (login) => openSmtpSession(target.config, login, context))
    try {
      return await act(session, secrets)
    } finally {
      session.end()
    }
  }
  return withDeliveryErrors(context, secrets, attempt, (thrown) => toDeliveryError(thrown, 'smtp_failure'))
}
