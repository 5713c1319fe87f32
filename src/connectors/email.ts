import { DeliveryError, type AttemptContext, type Connector, type Parcel, type Target } from './connector.ts'
import { messageBytes, messageIdOf, mailOf, type Enclosure } from './email-message.ts'
import { emailConfig, emailCredentials, recipientsOf, type EmailConfig, type EmailCredentials } from './email-target.ts'
import { metered } from './metered.ts'
import { toDeliveryError } from './network-error.ts'
import { keptText, reporting } from './reporting.ts'
import { openSmtpSession, type SmtpSession } from './smtp-session.ts'

type EmailTarget = Target<EmailConfig, EmailCredentials>

/** Sends the document as an attachment, or a link to it where it is too large. A repetition bears the same Message-ID. */
export const email: Connector<EmailConfig, EmailCredentials> = {
  kind: 'email',
  isMessage: true,
  config: emailConfig,
  credentials: emailCredentials,

  deliver: (parcel, target, context) =>
    within(target, context, async (session) => {
      const { config } = target
      const recipients = recipientsOf(config)
      const attached = isAttached(parcel, config, session)
      // before a recipient is named: where there is no link to be had there is nothing to send
      const url = attached ? undefined : linkTo(parcel)
      await session.address(config.from, recipients, messageBytes(attached ? parcel.sizeBytes : 0))

      const reply = await sendMessage(session, parcel, target, url, context)
      const body = keptText(reply.text, secretsOf(target.credentials), context.answerMaxBytes)
      const messageId = messageIdOf(parcel, config)
      return {
        path: `mailto:${recipients.join(',')}?message-id=${encodeURIComponent(messageId)}`,
        bytesSent: attached ? parcel.sizeBytes : 0,
        answer: { status: reply.code, body, message_id: messageId, enclosed: attached ? 'attachment' : 'link' },
      }
    }),

  probe: (target, context) =>
    within(target, context, async (session) => {
      await session.address(target.config.from, recipientsOf(target.config), messageBytes(0))
      await session.reset()
    }),
}

const isAttached = ({ sizeBytes }: Parcel, config: EmailConfig, { sizeMaxBytes = Infinity }: SmtpSession) =>
  sizeBytes <= config.max_attachment_bytes && messageBytes(sizeBytes) <= sizeMaxBytes

const linkTo = (parcel: Parcel): string => {
  const url = parcel.downloadUrl()
  if (url !== undefined) return url
  throw new DeliveryError(
    'link_unavailable',
    'the document is too large to be attached, and there can be no link to it: have the operator set RELAY_BASE_URL, or raise max_attachment_bytes',
    { permanent: true },
  )
}

const sendMessage = async (
  session: SmtpSession,
  parcel: Parcel,
  { config }: EmailTarget,
  url: string | undefined,
  { signal, onProgress }: AttemptContext,
) => {
  if (url !== undefined) return session.send(mailOf(parcel, config, { url }))
  const document = metered(parcel.open(), { sizeBytes: parcel.sizeBytes, signal, onBytes: onProgress })
  let unreadable: Error | undefined
  document.once('error', (error) => {
    unreadable = error
  })
  const enclosure: Enclosure = { attached: document }
  try {
    return await session.send(mailOf(parcel, config, enclosure))
  } catch (thrown) {
    throw unreadable instanceof DeliveryError ? unreadable : thrown
  } finally {
    document.destroy()
  }
}

/** A session that ends with what is done in it. */
const within = <Result>(target: EmailTarget, context: AttemptContext, act: (session: SmtpSession) => Promise<Result>): Promise<Result> =>
  reporting(
    context,
    secretsOf(target.credentials),
    async () => {
      const session = await openSmtpSession(target, context)
      try {
        return await act(session)
      } finally {
        session.end()
      }
    },
    (thrown) => toDeliveryError(thrown, 'smtp_failure'),
  )

/** The password, as it is or as it goes over the wire: a server may quote what it was sent. */
const secretsOf = ({ username, password }: EmailCredentials): string[] => {
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  return password === undefined ? [] : [password, encoded(password), encoded(`\0${username}\0${password}`)]
}
