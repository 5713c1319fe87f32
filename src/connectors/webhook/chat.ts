// Notices in the form of a chat: an incoming webhook of Slack, and a workflow of Microsoft Teams. Names, errors and paths in them are texts of
// others: they are shown as they are, and are neither markup, nor a link, nor a mention.
import { cutText, cutToBytes, plainLines, plainText } from '../../base/text.ts'
import type { NoticeMessage } from '../connector.ts'

/** Forms of notices. `standard_webhooks`: the JSON object for programs. */
export const noticeFormats = ['standard_webhooks', 'slack', 'teams'] as const

export type NoticeFormat = (typeof noticeFormats)[number]

type ChatMessage = Pick<NoticeMessage, 'subject' | 'text' | 'event'>

// https://docs.slack.dev/messaging/formatting-message-text: these three are the control characters of Slack.
const slackEntities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const slackText = (text: string) => text.replaceAll(/[&<>]/g, (character) => slackEntities[character]!)

/** Cuts a text so that it is not longer than a number of UTF-16 code units once it is escaped. */
const cutSlackText = (text: string, maxCharacters: number): string => {
  let shown = cutText(text, maxCharacters)
  while (slackText(shown).length > maxCharacters)
    shown = cutText(shown, shown.length - Math.ceil((slackText(shown).length - maxCharacters) / 5))
  return slackText(shown)
}

// https://docs.slack.dev/reference/block-kit/blocks: the most characters of the text of a header and of a section.
const slackHeaderMaxCharacters = 150
const slackSectionMaxCharacters = 3_000

/** The page of the console that the message is about, if it has one and browsers open it. */
const consoleUrlOf = ({ data }: ChatMessage['event']): string | undefined => {
  const { console_url: address } = (data ?? {}) as { console_url?: unknown }
  if (typeof address !== 'string' || !URL.canParse(address)) return undefined
  const url = new URL(address)
  return ['http:', 'https:'].includes(url.protocol) && url.href.length <= 2_000 ? url.href : undefined
}

/** Returns the lines of a message without its subject, which is shown above them. */
const linesOf = ({ subject, text }: ChatMessage): string => {
  const lines = plainLines(text).trim()
  return lines === subject ? '' : lines
}

// `plain_text` has neither markup nor mentions; `emoji: false` leaves `:name:` as it is.
const slackPlain = (text: string, maxCharacters: number) => ({ type: 'plain_text', text: cutSlackText(text, maxCharacters), emoji: false })

/** Returns the body of a request to an incoming webhook of Slack. */
const slackBody = (message: ChatMessage) => {
  const subject = plainText(message.subject)
  const lines = linesOf(message)
  const url = consoleUrlOf(message.event)
  return {
    // What a notification of the phone shows.
    text: cutSlackText(subject, slackSectionMaxCharacters),
    mrkdwn: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: 'header', text: slackPlain(subject, slackHeaderMaxCharacters) },
      ...(lines === '' ? [] : [{ type: 'section', text: slackPlain(lines, slackSectionMaxCharacters) }]),
      // The only markup: the address is encoded by URL, so it has no `|`, `<` and `>` that would end it.
      ...(url === undefined
        ? []
        : [
            {
              type: 'section',
              text: { type: 'mrkdwn', text: `<${slackText(url).replaceAll('|', '%7C')}|Open in the console>`, verbatim: true },
            },
          ]),
    ],
  }
}

// Teams takes messages of 28 KB. In JSON, a quotation mark or a backslash has two bytes.
const teamsTextMaxBytes = 12_000
const teamsSubjectMaxBytes = 1_000

// A TextRun has no Markdown, which a TextBlock and a FactSet have.
const teamsLine = (text: string, style: object = {}) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', text, ...style }],
})

/** Returns the body of a request to a workflow of Teams that begins with "When a Teams webhook request is received". */
const teamsBody = (message: ChatMessage) => {
  const subject = cutToBytes(plainText(message.subject), teamsSubjectMaxBytes)
  const lines = cutToBytes(linesOf(message), teamsTextMaxBytes)
  const url = consoleUrlOf(message.event)
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [teamsLine(subject, { weight: 'Bolder', size: 'Medium' }), ...(lines === '' ? [] : [teamsLine(lines)])],
          ...(url !== undefined && { actions: [{ type: 'Action.OpenUrl', title: 'Open in the console', url }] }),
        },
      },
    ],
  }
}

/** Returns what a chat gets. */
export const chatBody = (format: Exclude<NoticeFormat, 'standard_webhooks'>, message: ChatMessage): object =>
  format === 'slack' ? slackBody(message) : teamsBody(message)
