import type { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import { withExtension } from '../domain/content-type.ts'
import { fillTemplate, valuesOf } from '../domain/template.ts'
import type { Parcel } from './connector.ts'
import type { EmailConfig } from './email-target.ts'
import { contentTypeHeader, percentEncoded } from './percent-encoded.ts'
import { targetSegments } from './target-path.ts'

/** The document itself, or where it can be fetched. */
export type Enclosure = { attached: Readable } | { url: string }

/** The same for every attempt to send these bytes, so that a repetition can be told; another one for what an append made of the document. */
export const messageIdOf = ({ deliveryId, sha256 }: Parcel, { from }: EmailConfig) =>
  `<${deliveryId}.${sha256.slice(0, 16)}@${from.slice(from.lastIndexOf('@') + 1)}>`

// headers, text and what stands between the parts
const overheadBytes = 16 * 1024
const lineCharacters = 76

/** How long a message becomes at most: base64 in lines. */
export const messageBytes = (attachedBytes: number) => {
  const characters = Math.ceil(attachedBytes / 3) * 4
  return overheadBytes + characters + Math.ceil(characters / lineCharacters) * 2
}

/** The message as it goes over the wire, in lines that end with CR LF; the document is encoded as it is read. */
export const mailOf = (parcel: Parcel, config: EmailConfig, enclosure: Enclosure): Readable => {
  const fileName = fileNameOf(parcel)
  const composer = new MailComposer({
    from: config.from,
    to: config.to,
    ...(config.cc !== undefined && { cc: config.cc }),
    subject: subjectOf(parcel, config, fileName),
    messageId: messageIdOf(parcel, config),
    headers: headersOf(parcel),
    text: textOf(parcel, fileName, enclosure),
    attachments:
      'attached' in enclosure
        ? [{ filename: fileName, contentType: attachmentType(parcel), contentTransferEncoding: 'base64', content: enclosure.attached }]
        : [],
    newline: 'windows',
    // it would read from wherever a content says it lies
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().createReadStream()
}

const subjectMaxCharacters = 250
// what ends a line, and what makes a text look like another one
const misleading = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu

const subjectOf = (parcel: Parcel, { subject_template: template }: EmailConfig, fileName: string): string => {
  const subject = fillTemplate(template, { ...valuesOf(parcel), file_name: fileName })
  // a character cut in two is none any more
  return subject.replaceAll(misleading, ' ').slice(0, subjectMaxCharacters).toWellFormed()
}

const fileNameOf = (parcel: Parcel): string => withExtension(targetSegments(parcel.path).at(-1) ?? '', parcel)

/** A message or a multipart would be taken for a part of this one, and neither may be in base64 (RFC 2046, 5.2.1). */
const attachmentType = ({ contentType }: Parcel): string =>
  /^(message|multipart)\//i.test(contentType) ? 'application/octet-stream' : contentTypeHeader(contentType)

// a line has 998 characters at most, and such a value cannot be broken
const headerMaxCharacters = 900

const headersOf = (parcel: Parcel): Record<string, string> => {
  const headers = {
    'Auto-Submitted': 'auto-generated',
    'X-Relay-Delivery-Id': percentEncoded(parcel.deliveryId),
    'X-Relay-Document-Id': percentEncoded(parcel.documentId),
    'X-Relay-Repo-Id': percentEncoded(parcel.repoId),
    'X-Relay-Doc-Id': percentEncoded(parcel.docId),
    'X-Relay-Comp-Id': percentEncoded(parcel.compId),
    'X-Relay-Sha256': parcel.sha256,
  }
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value.length <= headerMaxCharacters))
}

const textOf = (parcel: Parcel, fileName: string, enclosure: Enclosure): string => {
  const shown = (text: string) => text.replaceAll(misleading, ' ')
  return [
    ...('url' in enclosure
      ? [
          'This document is too large to be attached. It can be fetched here for a limited time, by anybody who has this link:',
          '',
          enclosure.url,
        ]
      : ['A document is attached.']),
    '',
    `File:       ${shown(fileName)}`,
    `Repository: ${shown(parcel.repoId)}`,
    `Document:   ${shown(parcel.docId)}`,
    `Component:  ${shown(parcel.compId)}`,
    `Type:       ${shown(parcel.contentType)}`,
    `Bytes:      ${parcel.sizeBytes}`,
    `SHA-256:    ${parcel.sha256}`,
    `Received:   ${parcel.receivedAt.toISOString()}`,
    '',
  ].join('\n')
}
