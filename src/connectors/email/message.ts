import type { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import { plainText, plainValue } from '../../base/text.ts'
import { decodeHeader } from '../../content-server/encoding.ts'
import { sendableContentType } from '../../domain/content-type.ts'
import { fileNameOf } from '../../domain/file-name.ts'
import { fillTemplate, placeholderValues } from '../../domain/template.ts'
import type { NoticeMessage, Payload } from '../connector.ts'
import { documentHeaders } from '../shared/http.ts'
import { targetSegments } from '../shared/target-path.ts'
import type { EmailConfig } from './schema.ts'

/** The document itself, or an address that serves it. */
type Enclosure = { attached: Readable } | { url: string }

export const messageIdHeader = ({ messageId }: Payload, { from }: EmailConfig) => `<${messageId}@${domainOf(from)}>`

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

// Headers, text and the boundaries between them.
const overheadBytes = 16 * 1024
const lineCharacters = 76

/** Returns the maximum length of a message with an attachment of that size, which is sent as lines of base64. */
export const messageBytes = (attachedBytes: number) => {
  const characters = Math.ceil(attachedBytes / 3) * 4
  return overheadBytes + characters + Math.ceil(characters / lineCharacters) * 2
}

/** Returns the message as a stream of lines that end with CR LF. Encodes the document while it is read. */
export const createMessage = (payload: Payload, config: EmailConfig, enclosure: Enclosure): Readable => {
  const fileName = attachmentName(payload)
  return streamOf(config, {
    subject: subjectOf(payload, config, fileName),
    messageId: messageIdHeader(payload, config),
    headers: { 'Auto-Submitted': 'auto-generated', ...documentHeaders(payload, fileName) },
    text: textOf(payload, fileName, enclosure),
    attachments:
      'attached' in enclosure
        ? [{ filename: fileName, contentType: attachmentType(payload), contentTransferEncoding: 'base64', content: enclosure.attached }]
        : [],
  })
}

const streamOf = ({ from, to, cc }: EmailConfig, mail: ConstructorParameters<typeof MailComposer>[0]): Readable =>
  new MailComposer({
    from,
    to,
    ...(cc !== undefined && { cc }),
    ...mail,
    newline: 'windows',
    // The library would otherwise read content from paths and addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
    .compile()
    .createReadStream()

/** Returns a notice as a message of plain text. */
export const createNoticeMessage = ({ id, workspace, subject, text, event }: NoticeMessage, config: EmailConfig): Readable =>
  streamOf(config, {
    subject: subjectLine(subject),
    messageId: `<${id}@${domainOf(config.from)}>`,
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Relay-Event-Type': event.type,
      ...(workspace !== undefined && { 'X-Relay-Workspace': workspace }),
      'X-Relay-Notice-Id': id,
    },
    text,
  })

const subjectMaxCharacters = 250

const subjectOf = (payload: Payload, { subject_template: template }: EmailConfig, fileName: string): string => {
  return subjectLine(fillTemplate(template, { ...placeholderValues(payload), file_name: fileName }))
}

const subjectLine = (text: string): string => plainValue(text, subjectMaxCharacters)

const attachmentName = (payload: Payload): string => fileNameOf(payload, targetSegments(payload.path).at(-1))

/**
 * Hides the types message and multipart: mail programs would take them for a part of this message, and they must not be
 * base64 (RFC 2046, 5.2.1).
 */
const attachmentType = ({ contentType }: Payload): string =>
  /^(message|multipart)\//i.test(contentType) ? 'application/octet-stream' : sendableContentType(contentType)

const textOf = (payload: Payload, fileName: string, enclosure: Enclosure): string => {
  const safe = (text: string) => plainText(text)
  return [
    ...('url' in enclosure
      ? ['This document is too large to attach. Anybody who has this link can download it for a limited time:', '', enclosure.url]
      : ['A document is attached.']),
    '',
    `File:       ${safe(fileName)}`,
    ...(payload.description === null ? [] : [`Description: ${safe(payload.description)}`]),
    `Repository: ${safe(payload.repoId)}`,
    `Document:   ${safe(payload.docId)}`,
    `Component:  ${safe(payload.compId)}`,
    `Type:       ${safe(decodeHeader(payload.contentType))}`,
    `Bytes:      ${payload.sizeBytes}`,
    `SHA-256:    ${payload.sha256}`,
    `Received:   ${payload.receivedAt.toISOString()}`,
    ...Object.entries(payload.fields).map(([name, value]) => `${`${name}:`.padEnd(11)} ${safe(value)}`),
    '',
  ].join('\n')
}
