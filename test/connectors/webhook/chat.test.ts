import { array, assert, constant, constantFrom, oneof, property, string, webUrl } from 'fast-check'
import { chatBody } from '../../../src/connectors/webhook/chat.ts'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { contextOf } from '../payloads.ts'

const webhook = createWebhook()
const server = await startHttpTarget()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(async () => {
  await outbound.close()
  await server.stop()
})

// Neither Slack nor Teams can be had here. These are contract doubles: they refuse what the documentation of the services does not allow.

interface SlackText {
  type: string
  text: string
  emoji?: boolean
  verbatim?: boolean
}

const own = /^<https?:\/\/[^\s<>|]+\|Open in the console>$/

/** Returns why an incoming webhook of Slack refuses a message, by https://docs.slack.dev/reference/block-kit/blocks. */
const slackFault = (body: string): string | undefined => {
  const message = JSON.parse(body) as { text?: string; blocks?: { type: string; text: SlackText }[]; mrkdwn?: boolean }
  if (typeof message.text !== 'string' || message.text === '') return 'no_text'
  if (message.text.length > 40_000) return 'msg_too_long'
  if (!Array.isArray(message.blocks) || message.blocks.length > 50) return 'invalid_blocks'
  for (const { type, text } of message.blocks) {
    const max = type === 'header' ? 150 : type === 'section' ? 3_000 : 0
    if (text.text.length < 1 || text.text.length > max) return `invalid_blocks: ${type} of ${text.text.length}`
    if (type === 'header' && text.type !== 'plain_text') return 'invalid_blocks: header'
    if (text.type === 'mrkdwn' ? text.emoji !== undefined : text.verbatim !== undefined) return 'invalid_blocks: text object'
  }
  return undefined
}

const elements = new Set(['RichTextBlock', 'TextRun', 'AdaptiveCard', 'Action.OpenUrl'])

/** Returns why a workflow of Teams refuses a message: its size, and what https://adaptivecards.io/explorer has in version 1.4. */
const teamsFault = (body: string): string | undefined => {
  if (Buffer.byteLength(body) > 28 * 1024) return `too large: ${Buffer.byteLength(body)}`
  const { type, attachments } = JSON.parse(body) as {
    type: string
    attachments: { contentType: string; content: Record<string, unknown> }[]
  }
  if (type !== 'message' || attachments.length !== 1) return 'no message'
  const { contentType, content } = attachments[0]!
  if (contentType !== 'application/vnd.microsoft.card.adaptive' || content['type'] !== 'AdaptiveCard' || content['version'] !== '1.4')
    return 'no card'
  let fault: string | undefined
  JSON.stringify(content, (_, value: unknown) => {
    const { type: element } = (value ?? {}) as { type?: unknown }
    if (typeof element === 'string' && !elements.has(element)) fault = `unknown element ${element}`
    return value
  })
  return fault
}

const faults = { slack: slackFault, teams: teamsFault }
const formats = ['slack', 'teams'] as const

const messageOf = (subject: string, text: string, consoleUrl?: unknown) => ({
  id: '01K9R4B6ZD8M2V7X0QF3N5T1CN',
  workspace: 'acme/invoices',
  subject,
  text,
  event: { type: 'relay.delivery.failed', timestamp: '2026-11-22T19:04:30.118Z', data: { console_url: consoleUrl } },
})

const bodyOf = (format: (typeof formats)[number], ...args: Parameters<typeof messageOf>) =>
  JSON.stringify(chatBody(format, messageOf(...args)))

/** Returns every text of a message that a person sees, with the address of the link apart. */
const textsOf = (body: string): string[] => {
  const texts: string[] = []
  JSON.stringify(JSON.parse(body), (name, value: unknown) => {
    if (name === 'text' && typeof value === 'string') texts.push(value)
    return value
  })
  return texts.filter((text) => !own.test(text))
}

const anyText = oneof(
  string({ unit: 'grapheme', maxLength: 300 }),
  string({ unit: 'binary', maxLength: 6_000 }),
  array(constantFrom('<!channel>', '<@U1>', '&lt;', '*b*', '`', '[x](http://y)', '\n', '"', '\\', '😀', '|', '>', 'a'), {
    maxLength: 4_000,
  }).map((parts) => parts.join('')),
)

test.each(formats)('%s takes a message of any texts: within its limits, with no markup but the link of the relay', (format) => {
  assert(
    property(anyText, anyText, oneof(anyText, webUrl(), constant(undefined)), (subject, text, url) => {
      const body = bodyOf(format, `Incident: ${subject}`, text, url)
      expect(faults[format](body)).toBeUndefined()
      if (format === 'slack') for (const shown of textsOf(body)) expect(shown).not.toMatch(/[<>]|&(?!(?:amp|lt|gt);)/)
    }),
    { numRuns: 300 },
  )
})

test('Slack shows hostile texts as they are: a mention, a link, an emoji and an entity are text', () => {
  const { text, blocks } = chatBody(
    'slack',
    messageOf(
      'Incident in acme: <!channel> & <http://evil|Save>',
      'Last error: *x* :bomb: &lt;',
      'https://relay.example/console/attention',
    ),
  ) as {
    text: string
    blocks: { text: SlackText }[]
  }
  expect(text).toBe('Incident in acme: &lt;!channel&gt; &amp; &lt;http://evil|Save&gt;')
  expect(blocks.map((block) => block.text)).toEqual([
    { type: 'plain_text', text, emoji: false },
    { type: 'plain_text', text: 'Last error: *x* :bomb: &amp;lt;', emoji: false },
    { type: 'mrkdwn', text: '<https://relay.example/console/attention|Open in the console>', verbatim: true },
  ])
})

test('Teams shows hostile texts in elements that have no Markdown', () => {
  const { attachments } = chatBody(
    'teams',
    messageOf('Incident: [Save](http://evil)', '**x** <at>all</at>', 'https://relay.example/console/attention'),
  ) as {
    attachments: { content: object }[]
  }
  expect(attachments[0]!.content).toMatchObject({
    body: [
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: 'Incident: [Save](http://evil)' }] },
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: '**x** <at>all</at>' }] },
    ],
    actions: [{ type: 'Action.OpenUrl', url: 'https://relay.example/console/attention' }],
  })
})

test.each(['javascript:alert(1)', 'data:text/html,x', 'not an address', 42, null, `https://relay.example/${'x'.repeat(3_000)}`])(
  'no link leads to %s',
  (address) => {
    for (const format of formats) expect(bodyOf(format, 'a', 'b', address)).not.toContain('Open in the console')
  },
)

describe('a destination with notice_format', () => {
  const targetOf = (config: object) => ({
    config: webhook.config.parse({ url: `${server.origin}/services/T0/B0/secret-part-of-the-address`, ...config }),
    credentials: webhook.credentials.parse({}),
  })

  test.each(formats)('%s: notices and tests are posted as the service takes them, whatever method says', async (format) => {
    server.answerWith(({ body, method }, response) => {
      const fault = method === 'POST' ? faults[format](body.toString()) : 'method'
      response.writeHead(fault === undefined ? (format === 'slack' ? 200 : 202) : 400).end(fault ?? 'ok')
    })
    const before = server.arrivals.length
    const target = targetOf({ notice_format: format, method: 'PUT' })
    await webhook.sendNotice!(messageOf('Incident in acme: it fails', 'it fails\nSince: now'), target, contextOf(outbound))
    expect(await webhook.probe(target, contextOf(outbound))).toMatch(/Look into the chat/)
    const arrivals = server.arrivals.slice(before)
    expect(arrivals.map(({ method, headers }) => [method, headers['content-type'], headers['x-relay-event-type']])).toEqual([
      ['POST', 'application/json', 'relay.delivery.failed'],
      ['POST', 'application/json', 'ping'],
    ])
  })

  test('a refusal of the service is an error with its answer and without the address', async () => {
    server.answerWith((_, response) => response.writeHead(403).end('action_prohibited'))
    const failure = webhook.sendNotice!(messageOf('a', 'b'), targetOf({ notice_format: 'slack' }), contextOf(outbound))
    await expect(failure).rejects.toMatchObject({ message: expect.stringContaining('403') as string })
    await expect(failure).rejects.not.toMatchObject({ message: expect.stringContaining('secret-part') as string })
  })

  test('without it, the object for programs is sent as before', async () => {
    server.answerWith((_, response) => response.writeHead(204).end())
    const before = server.arrivals.length
    const message = messageOf('a', 'b')
    await webhook.sendNotice!(message, targetOf({}), contextOf(outbound))
    expect(JSON.parse(server.arrivals[before]!.body.toString())).toEqual(JSON.parse(JSON.stringify(message.event)))
  })
})
