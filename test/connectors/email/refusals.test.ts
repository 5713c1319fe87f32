import { smtpError, type Stage } from '../../../src/connectors/email/errors.ts'

const errorOf = (stage: Stage, line: string) => {
  const text = line.slice(4)
  const { code, permanent } = smtpError(stage, { code: Number(line.slice(0, 3)), text, lines: [text] }, 'a@acme.example')
  return { code, permanent }
}

describe('a refusal is retried unless the server has said what no time changes', () => {
  test.each<[Stage, string]>([
    ['recipient', '550 5.4.5 Daily user sending quota exceeded. s1'],
    ['message', '550 5.4.5 Daily user sending limit exceeded'],
    ['message', "550 5.1.90 Your message can't be sent because you've reached your daily limit for message recipients"],
    ['message', '554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; Failed to process message'],
    ['message', '554 5.7.0 Try again later, closing connection.'],
    ['sender', '550 5.7.1 You have exceeded your hourly sending limit'],
    ['sender', '554 Throttling failure: Maximum sending rate exceeded'],
    ['recipient', '550 Domain acme.example is not allowed to send: probation limit 100 messages/hour'],
    ['recipient', '550 5.4.6 Unusual sending activity detected'],
    ['recipient', '550 5.7.1 Our system has detected an unusual rate of unsolicited mail'],
    ['recipient', '552 5.2.2 mailbox full'],
    ['recipient', '554 5.2.2 mailbox full'],
    ['recipient', '550 The mailbox is full'],
    ['recipient', '550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents this; try again later'],
    ['recipient', '552 Requested mail action aborted: exceeded storage allocation'],
    ['recipient', '552 too many recipients'],
    ['message', '554 5.3.1 Mail system full'],
    ['message', '550 5.3.2 System not accepting network messages'],
    ['message', '554 5.4.7 Delivery time expired'],
    ['message', '550 5.7.28 Mail flood detected'],
    ['message', '554 Insufficient disk space'],
    ['message', '550 greylisted, please wait'],
    ['message', '550 5.7.705 Access denied, tenant has exceeded threshold'],
    ['message', '500 temporary failure'],
    ['message', '554 5.7.1 You are rate limited'],
    ['message', '550 5.7.1 Client host rate-limited, slow down'],
    ['message', '454 Throttling failure: Daily message quota exceeded.'],
    ['message', '554 Transaction failed: Daily message quota exceeded'],
    ['sender', '550 5.7.508 Access denied, 192.0.2.1 has exceeded permitted limits within range'],
    ['recipient', '550 5.2.121 The recipient has exceeded the limit of messages per hour'],
    ['recipient', '550 5.2.122 Exceeded the limit of messages from one sender'],
    ['sender', '550 5.4.6 Unusual sending activity detected. Please try after sometime'],
    ['sender', '550 Sender address is blocked temporarily'],
    ['message', '554 5.7.1 Message refused: mailbox store is in read-only mode, retry in 10 minutes'],
    ['message', '550 5.7.1 You reached the maximum number of messages for today'],
    ['message', '552 5.3.1 Insufficient system storage'],
    ['message', '554 5.3.0 Virus scanner is not available'],
    ['login', '535 5.7.8 Too many failed login attempts'],
    ['login', '454 4.7.0 Temporary authentication failure'],
    ['connection', '554 5.7.1 go away'],
    ['message', '451 4.3.0 later'],
    ['message', '599 no idea'],
  ])('at %s: %s', (stage, line) => {
    expect(errorOf(stage, line)).toEqual({ code: `smtp_${line.slice(0, 3)}`, permanent: false })
  })

  test.each<[Stage, string, string]>([
    ['recipient', '550 5.1.1 <daily-limit@quota.example>: Recipient address rejected: User unknown', 'recipient_refused'],
    ['recipient', '550 no such user', 'recipient_refused'],
    ['recipient', '550 5.1.1 The email account that you tried to reach does not exist', 'recipient_refused'],
    ['recipient', '550 5.4.1 Recipient address rejected: Access denied', 'recipient_refused'],
    ['recipient', '550 5.7.1 Relaying denied', 'recipient_refused'],
    [
      'recipient',
      '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.example; 192.0.2.0/24 is listed',
      'recipient_refused',
    ],
    ['recipient', '553 5.3.0 rejected', 'recipient_refused'],
    ['sender', '550 5.7.60 SMTP; Client does not have permissions to send as this sender', 'sender_refused'],
    ['sender', '501 5.1.7 Bad sender address syntax', 'sender_refused'],
    ['sender', '552 5.3.4 Message size exceeds fixed limit', 'message_too_large'],
    ['sender', '552 message size exceeds the limit', 'message_too_large'],
    ['message', '552 Message size exceeds maximum permitted', 'message_too_large'],
    ['message', '552 5.2.3 Message exceeds maximum fixed size', 'message_too_large'],
    ['message', '554 5.6.0 Message size exceeded', 'message_too_large'],
    ['message', '552 5.7.0 This message was blocked because its content presents a potential security issue', 'message_refused'],
    ['message', '550 5.7.1 EICAR found', 'message_refused'],
    ['message', '554 5.7.1 looks like spam', 'message_refused'],
    ['message', '554 5.4.6 Too many hops, exceeded the maximum hop count', 'smtp_554'],
    ['login', '535 5.7.8 Authentication credentials invalid', 'credentials_refused'],
    ['login', '535 Incorrect authentication data, please try again', 'credentials_refused'],
    ['login', '534 5.7.9 Please log in via your web browser', 'credentials_refused'],
    ['sender', '530 5.7.0 authentication required', 'credentials_refused'],
    ['recipient', '504 5.5.2 <relay>: Helo command rejected: need fully-qualified hostname', 'helo_refused'],
    ['connection', '550 HELO argument does not match', 'helo_refused'],
    ['message', '550 5.7.10 TLS 1.2 or later is required', 'message_refused'],
  ])('at %s: %s is %s', (stage, line, code) => {
    expect(errorOf(stage, line)).toEqual({ code, permanent: !code.startsWith('smtp_') })
  })
})
