import { plainText } from '../../base/text.ts'
import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import type { FinalAnswer } from '../shared/final-answers.ts'
import type { Reply } from './smtp-replies.ts'

/** The step of the session at which a server refused. */
export type Stage = 'connection' | 'login' | 'sender' | 'recipient' | 'message'

interface StatusRule {
  /** An enhanced status code (RFC 3463), whose detail may be `x` for any, or a code of three digits. */
  status: string
  meaning: string
  passes?: true
}

/**
 * What a server means by its statuses. A refusal is final if its status says what no time changes; one that is not in the table may pass.
 * A status with the detail 0 says nothing more than its code of three digits, which counts then.
 */
const statusRules: readonly StatusRule[] = [
  { status: '5.1.1', meaning: 'the mailbox does not exist' },
  { status: '5.1.2', meaning: 'the domain of a recipient does not exist' },
  { status: '5.1.3', meaning: 'the address is not valid' },
  { status: '5.1.6', meaning: 'the mailbox has moved' },
  { status: '5.1.7', meaning: 'the address of the sender is not valid' },
  { status: '5.1.8', meaning: 'the domain of the sender does not exist' },
  { status: '5.1.10', meaning: 'the domain accepts no mail' },
  { status: '5.2.1', meaning: 'the mailbox is switched off' },
  { status: '5.2.3', meaning: 'the message is longer than the mailbox accepts' },
  { status: '5.2.4', meaning: 'the mailing list is not valid' },
  { status: '5.3.3', meaning: 'the server lacks a feature that the message needs' },
  { status: '5.3.4', meaning: 'the message is longer than the server accepts' },
  { status: '5.4.1', meaning: 'the server has no such recipient (Exchange Online)' },
  { status: '5.5.3', meaning: 'more recipients than the server takes at a time', passes: true },
  { status: '5.5.x', meaning: 'the server does not accept a command' },
  { status: '5.6.x', meaning: 'the server does not accept the content' },
  { status: '5.7.5', meaning: 'a key could not be used', passes: true },
  { status: '5.7.24', meaning: 'the policy of the sender could not be looked up', passes: true },
  { status: '5.7.28', meaning: 'too many messages at a time', passes: true },
  { status: '5.7.232', meaning: 'a limit of a day (Exchange Online)', passes: true },
  { status: '5.7.233', meaning: 'a limit of a day (Exchange Online)', passes: true },
  { status: '5.7.705', meaning: 'the tenant has sent more than it may (Exchange Online)', passes: true },
  { status: '5.7.x', meaning: 'the server does not permit it' },
  { status: '500', meaning: 'the server does not know a command' },
  { status: '501', meaning: 'the server does not accept a parameter' },
  { status: '502', meaning: 'the server does not have a command' },
  { status: '503', meaning: 'a command comes too early' },
  { status: '504', meaning: 'the server does not accept a parameter' },
  { status: '521', meaning: 'the host accepts no mail' },
  { status: '530', meaning: 'the server wants a login' },
  { status: '534', meaning: 'the server wants another login' },
  { status: '535', meaning: 'the server refuses the login' },
  { status: '538', meaning: 'the server wants an encrypted login' },
  { status: '550', meaning: 'the mailbox does not exist, or the server does not permit it' },
  { status: '551', meaning: 'the mailbox is elsewhere' },
  { status: '552', meaning: 'the message is too long. Of a recipient, it may pass' },
  { status: '553', meaning: 'the address is not valid' },
  { status: '554', meaning: 'the server refuses the message' },
  { status: '555', meaning: 'the server does not accept a parameter' },
  { status: '556', meaning: 'the domain accepts no mail' },
  { status: '571', meaning: 'the server does not permit it' },
]

/** Returns the statuses of a family that pass, as words. */
const exceptions = (family: string) => {
  const passing = statusRules.filter(({ status, passes }) => passes && family.endsWith('x') && status.startsWith(family.slice(0, -1)))
  return passing.length === 0 ? '' : `, but ${passing.map(({ status }) => status).join(', ')}`
}

/** What a mail server says that no time changes. */
export const emailFinalAnswers: readonly FinalAnswer[] = statusRules
  .filter(({ passes }) => !passes)
  .map(({ status, meaning }) => ({ answer: `${status}${exceptions(status)}`, meaning }))

const rulesByStatus = new Map(statusRules.map((rule) => [rule.status, rule]))

/**
 * Words by which a server says that a refusal passes, whatever its status: many have one status for all refusals.
 * @param unless words with which they mean something else
 */
export const passingWords: readonly { words: RegExp; unless?: RegExp; meaning: string }[] = [
  {
    meaning: 'a later attempt',
    words: /\b(later|tomorrow)\b|\bin (a few|some|\d+) ?(seconds|minutes|hours|days|[smh]\b)/i,
    unless: /\bor later/i,
  },
  { meaning: 'something temporary', words: /temporar|transient|momentar|at th(is|e) (time|moment)|timed? ?out|no answer from/i },
  {
    meaning: 'a quota or a limit',
    words:
      /quota(?!tion)|exceed|\blimit(s|ed)?\b|reached .{0,40}max|throttl|too many|too (fast|much|often)|\b(unusual|excessive) (rate|sending|activity)/i,
    unless:
      /(message|mail|content|attachment|line|header|file)s? ?(is |body |length |size |hop )?.{0,20}(size|length|too (large|big|long)|larger)|max(imum)? .{0,12}(size|length)|size .{0,20}(limit|exceed)|too (large|big|long)\b|\bhops?\b|\bloop|(bad|invalid|unknown|unrecognized|syntax|protocol) (command|recipient|user|address|error)|too many (errors|received)|off[- ]?limits/i,
  },
  { meaning: 'a limit of a time', words: /\b(daily|hourly)\b|(\bper|\beach|\/) ?(second|minute|hour|day)|\b24 ?h|flood/i },
  {
    meaning: 'a full mailbox or disk',
    words:
      /mailbox (is |size |has )?.{0,20}(full|limit|quota|exceed)|full mailbox|(insufficient|not enough|out of|no) .{0,20}(storage|space|disk|memory|resources)|(disk|storage) (is )?full|storage allocation/i,
  },
  {
    meaning: 'load',
    words:
      /gr[ea]y-?list|\bbusy\b|overload|congest|load .{0,10}high|maintenance|shutting down|(scanner|filter|backend|server|system).{0,20} (not |un)available/i,
  },
]

const enhancedStatus = /(?:^|[\s#(<[])([245])\.(\d{1,3})\.(\d{1,3})(?![\d.])/

/** Returns what the table says about a reply. */
const ruleOf = (stage: Stage, { code, text }: Reply): StatusRule | undefined => {
  const [, first, subject, detail] = enhancedStatus.exec(text) ?? []
  // RFC 5321, 4.5.3.1.10: a recipient too many, as servers of RFC 821 said it.
  if (code === 552 && stage === 'recipient' && detail === undefined) return undefined
  if (first !== '5' || (detail === '0' && subject !== '2' && subject !== '4')) return rulesByStatus.get(String(code))
  return rulesByStatus.get(`5.${subject}.${detail}`) ?? rulesByStatus.get(`5.${subject}.x`)
}

const saysThatItPasses = (text: string): boolean => {
  // Addresses are names, and not what a server says. Of a text without end, the beginning decides.
  const said = plainText(text).replaceAll(/\S*@\S*|\bhttps?:\S*/g, ' ')
  return passingWords.some(({ words, unless }) => words.test(said) && unless?.test(said) !== true)
}

/** Returns `true` if a later attempt may get another reply. */
export const isTemporary = (stage: Stage, reply: Reply): boolean => {
  if (reply.code < 500) return true
  const rule = ruleOf(stage, reply)
  return rule === undefined || rule.passes === true || saysThatItPasses(reply.text)
}

/** Returns `true` if a server takes no further recipient in this transaction (RFC 5321, 4.5.3.1.10). */
export const isRecipientTooMany = ({ code, text }: Reply): boolean => {
  const [, , subject, detail] = enhancedStatus.exec(text) ?? []
  if (code === 421) return false
  if (subject !== undefined && !(subject === '5' && detail === '3')) return /too many recipients/i.test(text)
  return code === 452 || code === 552 || (subject === '5' && detail === '3') || /too many recipients/i.test(text)
}

const tooLarge = /^5\.(2\.3|3\.4)\b|(message|mail|content|size).{0,40}(too (large|big|long)|size|exceed|larger)/i
const aboutName = /\b(helo|ehlo)\b/i

/**
 * Maps a refusal by the mail server.
 * @param addresses are those that the server refused
 */
export const smtpError = (stage: Stage, reply: Reply, addresses = ''): DeliveryError => {
  const { code, text } = reply
  const quoted = `${code} ${text}`.trim()
  const answer = { status: code, body: text }
  const refusal = (name: FixedErrorCode, message: string) => new DeliveryError(name, message, { answer })

  if (aboutName.test(text) && code >= 500 && !isTemporary(stage, reply)) {
    return refusal('helo_refused', `the server does not accept the name by which the relay greets it: ${quoted}; set helo_name`)
  }
  if (isTemporary(stage, reply) || stage === 'connection') {
    return refusal(
      `smtp_${code}`,
      stage === 'recipient' ? `the server does not accept mail for ${addresses} now` : `the server refuses for now: ${quoted}`,
    )
  }
  // At any stage, a server may require a login or a stronger one.
  if (stage === 'login' || code === 530 || code === 534 || code === 535 || code === 538) {
    return new DeliveryError('credentials_refused', `the server does not permit the account to send: ${quoted}`, {
      permanent: true,
      answer,
    })
  }
  if (stage === 'recipient') return refusal('recipient_refused', `the server refused ${addresses}; nobody received the mail`)
  const isOfLength = code === 552 && !/(?:^|\s)5\.7\./.test(text)
  if (isOfLength || (code >= 550 && tooLarge.test(text))) {
    return refusal('message_too_large', `the message is longer than the server accepts (${quoted}); lower max_attachment_bytes`)
  }
  if (stage === 'sender') return refusal('sender_refused', `the server does not accept mail from ${addresses}: ${quoted}`)
  return refusal('message_refused', `the server refused the message: ${quoted}`)
}
