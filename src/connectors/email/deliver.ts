import { DeliveryError, type AttemptContext, type Connector, type Payload, type Target } from '../connector.ts'
import { redactAndCut, toDeliveryError, withDeliveryErrors } from '../shared/errors.ts'
import { openPayload } from '../shared/payload-stream.ts'
import { secretsOf, type Logins } from './login.ts'
import { createMessage, createNoticeMessage, messageBytes, messageIdHeader } from './message.ts'
import { recipientsOf, type EmailConfig, type EmailCredentials } from './schema.ts'
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
    await session.address(config.from, recipients, messageBytes(isAttached ? payload.sizeBytes : 0))

    const reply = await sendMessage(session, payload, target, url, context)
    const body = redactAndCut(reply.text, secrets, context.answerMaxBytes)
    const messageId = messageIdHeader(payload, config)
    return {
      path: `mailto:${recipients.join(',')}?message-id=${encodeURIComponent(messageId)}`,
      bytesSent: isAttached ? payload.sizeBytes : 0,
      answer: { status: reply.code, body, message_id: messageId, enclosed: isAttached ? 'attachment' : 'link' },
    }
  })

export const probe: With<EmailConnector['probe']> = (logins, target, context) => {
  // Test the credentials instead of a token that was issued for them earlier.
  logins.forget(target.credentials)
  return withSession(logins, target, context, async (session) => {
    const { host, from } = target.config
    await session.address(from, recipientsOf(target.config), messageBytes(0))
    await session.reset()
    const login = target.credentials.username === undefined ? '' : 'the login, '
    return `The server ${host} accepted ${login}the sender and all recipients. No mail was sent, so its delivery to the mailboxes is not proved.`
  })
}

export const sendNotice: With<EmailConnector['sendNotice']> = (logins, notice, target, context) =>
  withSession(logins, target, context, async (session) => {
    await session.address(target.config.from, recipientsOf(target.config), messageBytes(0))
    await session.send(createNoticeMessage(notice, target.config))
  })

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
