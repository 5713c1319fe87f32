import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RestError } from '@azure/storage-blob'
import * as fc from 'fast-check'
import { z } from 'zod'
import { Deviation, NotOffered } from '../../clients/check-source/src/outcome.ts'
import { personOf } from '../../src/access/people.ts'
import { AppError } from '../../src/base/errors.ts'
import { storable } from '../../src/base/text.ts'
import { shorten } from '../../src/cli/mcp/shorten.ts'
import { tableOf } from '../../src/cli/output.ts'
import { blobError } from '../../src/connectors/blob/errors.ts'
import { DeliveryError } from '../../src/connectors/connector.ts'
import { contentServerError } from '../../src/connectors/content-server/errors.ts'
import { fileSystemError } from '../../src/connectors/directory/errors.ts'
import { driveError } from '../../src/connectors/drive/errors.ts'
import { smtpError } from '../../src/connectors/email/errors.ts'
import { connectorTypes } from '../../src/connectors/index.ts'
import { objstoreError, refusalOf as objstoreRefusalOf } from '../../src/connectors/objstore/errors.ts'
import { sessionError, sftpError } from '../../src/connectors/sftp/errors.ts'
import { withDeliveryErrors } from '../../src/connectors/shared/errors.ts'
import { graphError } from '../../src/connectors/teamsite/errors.ts'
import { webhookError } from '../../src/connectors/webhook/errors.ts'
import { ContentServerFailure } from '../../src/content-server/failure.ts'
import { toSnakeCase } from '../../src/domain/casing.ts'
import { toFieldValue } from '../../src/domain/field-values.ts'
import { UpstreamFailure } from '../../src/migration/failure.ts'
import { readLinkList } from '../../src/migration/link-list.ts'
import { textOf, testTextOf } from '../../src/notifications/text.ts'
import { readMetadata } from '../../src/receiver/components.ts'
import { Refusal } from '../../src/receiver/refusal.ts'
import { readAnswer } from '../../src/rfc/call.ts'
import { readLink } from '../../src/rfc/object-link.ts'
import { SignInError } from '../../src/security/oidc.ts'
import { name } from '../../src/workspace/inputs.ts'
import { batchOptions, deliveryOptions, documentOptions, sideWorkOptions } from '../../workflows/options.ts'
import { anyText, hostileTexts, wrongIn, wrongInside } from '../support/hostile-text.ts'

/** What an operator, a client or Temporal gets of an error. */
const shown = ({ code, message, answer }: DeliveryError) => ({ code, message, answer })

const cloudResponse = (text: string) => ({
  status: 400,
  headers: { 'request-id': text, etag: text },
  text: JSON.stringify({ error: { code: text, message: text, status: text, errors: [{ reason: text, message: text }] } }),
})

const serviceError = (text: string) =>
  Object.assign(new Error(text), { name: text, $metadata: { httpStatusCode: 400, requestId: text }, $response: { headers: {} } })

const restError = (text: string) => new RestError(text, { code: text, statusCode: 500 })

/** The kinds of destinations, each with a refusal whose every text is the target's. A kind that is added needs one. */
const refusals: Record<string, (text: string) => unknown> = {
  webhook: (text) => shown(webhookError({ statusCode: 400, headers: { 'retry-after': text } }, { status: 400, body: text, etag: text })),
  objstore: (text) => shown(objstoreError(serviceError(text), { region: 'eu' } as never, text)),
  blob: (text) => shown(blobError(restError(text), { config: {}, credentials: {} } as never, [])),
  teamsite: (text) => shown(graphError(cloudResponse(text))),
  drive: (text) => shown(driveError(cloudResponse(text), text)),
  sftp: (text) => [sftpError(new Error(text)), sessionError(Object.assign(new Error(text), { level: 'handshake' }))].map(shown),
  email: (text) => shown(smtpError('message', { code: 554, text, lines: [text] }, text)),
  'content-server': (text) => shown(contentServerError(new ContentServerFailure('bad_request', text, { status: 400 }), false)),
  directory: (text) => shown(fileSystemError(Object.assign(new Error(text), { code: 'ENOSPC' }))),
}

test('every kind of destination has a refusal in the list', () => {
  expect(Object.keys(refusals).toSorted()).toEqual(connectorTypes.toSorted())
})

const xml = (text: string) => Array.from(text, (character) => `&#x${character.codePointAt(0)!.toString(16)};`).join('')
const soap = (text: string) =>
  `<e:Envelope xmlns:e="x"><e:Body><F.Response><NAME>${xml(text)}</NAME><T><item><A>${xml(text)}</A></item></T></F.Response></e:Body></e:Envelope>`
const soapFault = (text: string) =>
  `<e:Envelope xmlns:e="x"><e:Body><e:Fault><faultstring>${xml(text)}</faultstring></e:Fault></e:Body></e:Envelope>`

const linksOf = async (text: string) => {
  // A line has 64 KiB at most.
  const cell = text
    .slice(0, 2_000)
    .replaceAll(/[\r\n\0]/g, ' ')
    .replaceAll('"', '""')
  const rows = []
  const list = `ARCHIV_ID\tARC_DOC_ID\tSAP_OBJECT\tOBJECT_ID\tAR_OBJECT\nZ1\tD1\t"${cell}"\t"${cell}"\t"${cell}"\n`
  for await (const row of readLinkList(
    (async function* () {
      yield Buffer.from(list)
    })(),
  )) {
    rows.push(row)
  }
  return rows
}

const noticeOf = (text: string) =>
  textOf({
    transition: 'opened',
    notification: text,
    data: {
      workspace: 'acme/prod',
      incidentId: '1',
      summary: text,
      remedy: text,
      openedAt: '2026-01-01T00:00:00Z',
      destination: { id: '1', name: text, type: 'sftp' },
      // The text comes from the database.
      repository: { id: '1', repoId: storable(text) },
      error: { code: 'http_400', message: text },
      document: { id: '1', repoId: text, docId: text, compId: text, workflowId: text },
    } as never,
  })

/** Where text of others enters as text for people, and what becomes of it. A new entrance needs a line. */
const entrances: Record<string, (text: string) => unknown> = {
  ...Object.fromEntries(Object.entries(refusals).map(([kind, refusal]) => [`refusal of a target of the kind ${kind}`, refusal])),
  'any error of a delivery': (text) =>
    shown(new DeliveryError('http_400', text, { permanent: true, answer: { body: text, [text]: text } })),
  'a refusal of the relay, with details': (text) => {
    const { message, details } = new AppError('conflict', text, { details: [{ path: text, message: text }] })
    return { message, details }
  },
  'a refusal that the source system gets': (text) => new Refusal('invalid_parameter', text).message,
  'a failure of an upstream': (text) => new UpstreamFailure(text).message,
  'a failure of a content server': (text) => new ContentServerFailure('bad_request', text).message,
  'an OpenID provider': (text) => new SignInError('failed', text).message,
  'the name of a person': (text) =>
    personOf({ sub: 'x', email: text, name: text, preferred_username: text, groups: ['a'] }, {
      provider: { issuer: 'https://i.example', claim: 'groups' },
      rules: [{ id: '1', value: 'a', userSlug: 'u', workspaceSlug: 'w', level: 'viewer' }],
    } as never)?.name,
  'a check of a content server': (text) => [new Deviation(text).message, new NotOffered(text).message],
  'a fault of a remote function': (text) =>
    new AppError('rfc_failed', (readAnswer({ text: soapFault(text), tables: [] }) as { message: string }).message).message,
  'a field of an answer': (text) => toFieldValue('string', text),
  'headers of the source system': (text) =>
    readMetadata(
      {
        headers: { 'x-relay-object-id': encodeURIComponent(text.toWellFormed()).slice(0, 250), 'x-relay-object-type': text.slice(0, 200) },
      } as never,
      'windows-1252',
    ),
  'a call that links a document': (text) =>
    readLink({
      functionName: 'ARCHIV_CONNECTION_INSERT',
      imports: { ARCHIV_ID: 'Z1', ARC_DOC_ID: 'D1', SAP_OBJECT: text, OBJECT_ID: text, AR_OBJECT: text },
      tables: {},
    }),
  'a list of links': linksOf,
}

const plainOutputs: Record<string, (text: string) => unknown> = {
  'a table of the command line': (text) => tableOf(['NAME', 'OTHER'], [[text, text]]),
  'a tool of an agent': (text) => ({ text: JSON.parse(JSON.stringify(shorten({ deep: [{ body: text }] }, 5).value)).deep[0].body }),
}

const textsUnderTest = Object.values(hostileTexts)

test.each(Object.entries(entrances))('%s: any text becomes plain', async (_, enter) => {
  for (const text of textsUnderTest) {
    const entered = await enter(text)
    expect(wrongInside(entered)).toEqual([])
    // A field of an answer says what is wrong with it instead.
    expect(JSON.stringify(entered ?? null).length).toBeLessThan(1_100_000)
  }
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      expect(wrongInside(await enter(text))).toEqual([])
    }),
    { numRuns: 30 },
  )
})

test.each(Object.entries(plainOutputs))('%s shows no text raw', (_, show) => {
  for (const text of textsUnderTest) expect(wrongInside(show(text))).toEqual([])
})

test('the message of an error has 1,000 characters at most, and ends with a whole character', () => {
  for (const refusal of Object.values(refusals)) {
    for (const each of [refusal(hostileTexts['a megabyte of emoji']!)].flat()) {
      const { message } = each as { message: string }
      expect(message.length).toBeLessThanOrEqual(1_000)
      expect(message).not.toMatch(/\u200d(\.\.\.)?$/)
    }
  }
})

// The SDK makes objects of the elements inside a code or a message. `toString` is one, and the name of a member of every object is no code.
test('what a store says in another shape than a text is a refusal like any other', () => {
  for (const odd of [{ b: 'x' }, { toString: 'x' }, ['a', 'b'], 1, null, {}]) {
    const error = Object.assign(serviceError('x'), { name: odd, message: odd, Region: odd })
    const region = Object.assign(serviceError('AuthorizationHeaderMalformed'), { name: 'AuthorizationHeaderMalformed', Region: odd })
    expect(objstoreError(error, { region: 'eu' } as never, 'write').code).toMatch(/^(http_400|answer_unreadable)$/)
    expect(objstoreError(region, { region: 'eu' } as never, 'write')).toMatchObject({ code: 'wrong_region' })
    expect(objstoreRefusalOf(error)).toBeUndefined()
  }
  for (const code of ['constructor', 'toString', '__proto__']) {
    const error = blobError(restError(code), { config: {}, credentials: {} } as never, [])
    expect(error).toMatchObject({ code: 'http_500', permanent: false })
  }
})

test('a mail has the lines of the relay only, whatever the texts in it say', () => {
  const lines = noticeOf('quiet').split('\n').length
  for (const text of textsUnderTest) {
    const mail = noticeOf(text)
    expect(mail.split('\n')).toHaveLength(lines)
    expect(wrongIn(mail, { lines: true })).toEqual([])
    expect(mail.match(/^What to do:$/gm)).toHaveLength(1)
    expect(wrongIn(testTextOf({ workspace: 'a/b', summary: text } as never), { lines: true })).toEqual([])
  }
})

test('JSON of a remote function keeps its values, without what strict clients refuse', () => {
  for (const text of textsUnderTest.filter((each) => each.length < 2_000)) {
    const answer = readAnswer({ text: soap(text), tables: ['T'] })
    if (answer.kind !== 'result') continue
    expect(answer.body.isWellFormed()).toBe(true)
    expect(answer.body).not.toMatch(/\\u(?:0000|d[89a-f])/)
  }
  expect(readAnswer({ text: soap('\ud83d'), tables: ['T'] })).toMatchObject({ kind: 'result' })
})

test('JSON of the API is well-formed, whatever an answer contains', () => {
  const schema = z.object({ a_text: z.string(), list_of: z.array(z.object({ a_text: z.string().nullable() })) })
  for (const text of textsUnderTest) {
    const json = JSON.stringify(toSnakeCase(schema, { aText: text, listOf: [{ aText: text }] }))
    expect(json).not.toMatch(/\\ud[89a-f]/)
  }
})

test.each(Object.entries(hostileTexts).filter(([what]) => !/megabyte|where texts are cut/.test(what)))(
  'a name with %s is refused',
  (_, text) => {
    expect(name.safeParse(`My ${text} bucket`).success).toBe(false)
  },
)

test('a name that looks like nothing is refused', () => {
  for (const text of ['\u200d', '\u200c \u200d', '\u115f\u1160', '\u2800', '\ufe0f', '\u034f', '\u3164']) {
    expect([text, name.safeParse(text).success]).toEqual([text, false])
  }
})

test('summaries of workflows, which the UI of Temporal shows as Markdown, have no link, picture, tag or entity of others', () => {
  const document = { documentId: '1', workspace: 'a/b', repoId: 'Z1', docId: 'D1' }
  for (const text of [
    '[Sign in](https://evil.example)',
    '![](https://evil.example/x.png)',
    '<img src=x>',
    '&#x202e;',
    '`a`',
    String.raw`\[a](b)`,
  ]) {
    const destination = { id: '1', name: text, connector: 'sftp' }
    const input = { ...document, compId: text, destination, destinations: [destination], name: text, queueId: '1' } as never
    const sideWork = (['events', 'enrichment', 'late_data'] as const).map((kind) => sideWorkOptions(kind, input, { registered: false }))
    for (const { staticSummary } of [
      documentOptions(input, { registered: false }),
      deliveryOptions(input, { registered: false }),
      ...sideWork,
    ]) {
      expect(staticSummary).not.toMatch(/(?<!\\)(?:\\\\)*[`[\]<&]/)
    }
    const batch = { action: 'release', by: 'connection', name: text, workspace: 'a/b', id: '1' } as const
    expect(batchOptions(batch as never).staticSummary).not.toMatch(/(?<!\\)(?:\\\\)*[`[\]<&]/)
  }
})

test('names of people and of every language are accepted', () => {
  for (const text of ['Rechnungen (Köln)', 'می‌خواهم', 'שלום', 'Family 👩‍👩‍👧‍👦', '葛󠄀城']) expect(name.parse(text)).toBe(text)
})

test('a secret in a message is found before the message is cut, and across its line breaks', async () => {
  const secret = `-----BEGIN KEY-----\n${'abcdef\n'.repeat(30)}-----END KEY-----`
  for (const before of [0, 500, 900, 950, 990]) {
    const error = await withDeliveryErrors({ signal: new AbortController().signal, answerMaxBytes: 100 }, [secret], async () => {
      throw new DeliveryError('http_400', `${'x'.repeat(before)}${secret} ${'y'.repeat(1_000)}`, {
        permanent: true,
        answer: { body: `${'z'.repeat(50)}${secret}${secret}` },
      })
    }).catch((thrown: DeliveryError) => thrown)
    expect(JSON.stringify(shown(error))).not.toMatch(/BEGIN|abcdef/)
  }
})

// A new cut or a new cleaning of text belongs to src/base/text.ts. These are of another kind.
const ownRules: Record<string, string> = {
  'src/app/sign-in-file.ts': 'cuts a digest',
  'src/base/json-schema.ts': 'writes a pattern for other programs',
  'src/base/s3-answers.ts': 'looks at the beginning of a body',
  'src/rfc/call.ts': 'refuses control characters in parameters of functions',
  'src/capture/redact-body.ts': 'looks at the beginning of a body',
  'clients/check-source/src/expect.ts': 'cuts ASCII',
  'clients/check-source/src/report.ts': 'escapes for XML and HTML',
  'src/connectors/shared/http.ts': 'percent-encodes',
  'src/connectors/shared/schema-fields.ts': 'refuses control characters in a configured path',
  'src/connectors/shared/target-path.ts': 'escapes names of files, which must stay distinct',
  'src/content-server/encoding.ts': 'percent-encodes',
  'src/content-server/http.ts': 'cuts ASCII',
  'src/content-server/parameters.ts': 'refuses control characters in names',
  'src/domain/casing.ts': 'is the last net of JSON answers',
  'src/domain/connection-settings.ts': 'refuses control characters in templates and names',
  'src/domain/fan-out.ts': 'escapes segments of paths, which must stay distinct',
  'src/enrichment/steps.ts': 'percent-encodes',
  'src/http/request-log.ts': 'cuts the path of a URL, which has one byte for a character',
  'src/receiver/answer.ts': 'cuts ASCII',
  'src/receiver/command.ts': 'cuts ASCII',
  'src/security/certificate.ts': 'refuses control characters in ids of signers',
  'workflows/ids.ts': 'makes ids, which must be the same in every version of Node',
  'workflows/options.ts': 'makes search attributes, which must be the same in every version of Node',
}

const cleaning = /\.toWellFormed\(|\\p\{C[cf]\}|\.(?:slice|substring|substr)\(0, \w*(?:Characters|Chars)\)|\.slice\(0, (?:[4-9]\d|\d{3,})\)/

test('text is cut and cleaned in one place', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const found: string[] = []
  for (const folder of ['src', 'workflows', 'activities', 'clients/check-source/src']) {
    for (const path of await readdir(join(root, folder), { recursive: true })) {
      const file = join(folder, path)
      if (!file.endsWith('.ts') || file === 'src/base/text.ts') continue
      const lines = (await readFile(join(root, file), 'utf8')).split('\n')
      // Digests and dates have characters of ASCII.
      if (lines.some((line) => cleaning.test(line) && !/digest\(|toISOString/.test(line))) found.push(file)
    }
  }
  expect(found.toSorted()).toEqual(Object.keys(ownRules).toSorted())
})
