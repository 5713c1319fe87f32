import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createAwsSessions } from '../../../src/connectors/objstore/sessions.ts'
import { createTokenCache } from '../../../src/connectors/shared/access-tokens.ts'
import { createReadTokenFile } from '../../../src/connectors/shared/token-files.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { disposable } from '../../support/disposable.ts'
import { startHttpTarget, type Arrival } from '../../support/http-target.ts'
import { share } from '../../support/share.ts'
import { contextOf, failure, payloadOf } from '../payloads.ts'

const sts = share(await startHttpTarget())
const store = share(await startHttpTarget())
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (guard) => guard.close()))
const folder = await mkdtemp(join(tmpdir(), 'relay-roles-'))
const tokenFile = join(folder, 'token')
afterAll(() => rm(folder, { recursive: true }))

const role = 'arn:aws:iam::123456789012:role/documents'
const token = 'header.canary-of-the-workload.signature'
type Answer = Parameters<typeof sts.answerWith>[0]

const xml = (body: string) => `<?xml version="1.0"?>${body}`
const sessionFor = (action: string) =>
  xml(
    `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Credentials><AccessKeyId>ASIASESSION</AccessKeyId>` +
      `<SecretAccessKey>canary-session-secret</SecretAccessKey><SessionToken>canary-session-token-${sts.arrivals.length}</SessionToken>` +
      `<Expiration>${new Date(Date.now() + 3_600_000).toISOString()}</Expiration></Credentials></${action}Result></${action}Response>`,
  )
const formOf = ({ body }: Arrival) => Object.fromEntries(new URLSearchParams(body.toString()))
const issue: Answer = (arrival, response) => {
  response.setHeader('content-type', 'text/xml')
  response.end(sessionFor(formOf(arrival)['Action']!))
}
const refuse =
  (status: number, code: string, message: string): Answer =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'text/xml' })
    response.end(xml(`<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`))
  }

beforeEach(async () => {
  sts.arrivals.length = 0
  store.arrivals.length = 0
  sts.answerWith(issue)
  store.answerWith((_, response) => {
    response.setHeader('etag', '"1"')
    response.end()
  })
  await writeFile(tokenFile, `${token}\n`)
})

const identity = { accessKeyId: 'AKIARELAY', secretAccessKey: 'canary-of-the-relay' }
const createConnector = () =>
  createObjstore(
    createPartMemory(),
    createAwsSessions(createTokenCache(), [{ value: role }], createReadTokenFile([{ value: folder }]), {
      endpoint: sts.origin,
      credentials: identity,
    }),
  )
const deliver = (credentials: object, connector = createConnector()) => {
  const target = {
    config: connector.config.parse({ bucket: 'documents', region: 'eu-central-1', endpoint: store.origin, path_style: true }),
    credentials: connector.credentials.parse({ role_arn: role, ...credentials }),
  }
  return connector.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound))
}

test('a request to the store is signed by the session, and the relay has signed the one for it', async () => {
  await deliver({ external_id: 'acme-4711' })
  expect(formOf(sts.arrivals[0]!)).toMatchObject({ Action: 'AssumeRole', RoleArn: role, ExternalId: 'acme-4711' })
  expect(sts.arrivals[0]!.headers.authorization).toContain('Credential=AKIARELAY/')
  expect(store.arrivals[0]!.headers).toMatchObject({
    authorization: expect.stringContaining('Credential=ASIASESSION/'),
    'x-amz-security-token': 'canary-session-token-1',
  })
})

test('with a token file, the token proves who assumes the role, and the relay signs nothing', async () => {
  await deliver({ federated_token_file: tokenFile })
  expect(formOf(sts.arrivals[0]!)).toMatchObject({ Action: 'AssumeRoleWithWebIdentity', RoleArn: role, WebIdentityToken: token })
  expect(sts.arrivals[0]!.headers.authorization).toBeUndefined()
  expect(store.arrivals[0]!.headers.authorization).toContain('Credential=ASIASESSION/')
})

test('a token file that the operator does not allow is not read', async () => {
  const error = await failure(deliver({ federated_token_file: '/etc/hostname' }))
  expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
  expect(error.message).toContain('RELAY_TOKEN_FILE_ROOTS')
  expect(sts.arrivals).toEqual([])
})

const ofRole = {}
const ofToken = { federated_token_file: tokenFile }
test.each<[number, string, string, object, { code: string; permanent: boolean; says: RegExp }]>([
  [403, 'AccessDenied', 'User is not authorized to perform: sts:AssumeRole', ofRole, final(/trust policy/)],
  [400, 'ValidationError', 'roleArn is invalid', ofRole, final(/role_arn or external_id is not valid/)],
  [403, 'RegionDisabledException', 'STS is not activated in this region', ofRole, final(/activate it, or correct region/)],
  [400, 'InvalidIdentityToken', 'No OpenIDConnect provider found in your account', ofToken, final(/no identity provider/)],
  [403, 'IDPRejectedClaim', 'the claim was rejected', ofToken, final(/subject or its audience/)],
  [400, 'InvalidIdentityToken', "Couldn't retrieve verification key from your identity provider", ofToken, passing(/verification key/)],
  [400, 'IDPCommunicationError', 'the provider did not answer', ofToken, { code: 'http_400', permanent: false, says: /did not answer/ }],
  [
    400,
    'ExpiredTokenException',
    'Token expired: current date/time must be before the expiration',
    ofToken,
    passing(/let its system renew it/),
  ],
  [
    400,
    'ExpiredTokenException',
    'The security token included in the request is expired',
    ofRole,
    passing(/relay's own credentials have expired/),
  ],
  [403, 'InvalidClientTokenId', 'The security token included in the request is invalid', ofRole, passing(/relay's own identity/)],
  [403, 'SignatureDoesNotMatch', 'Signature expired: 20261129T080000Z is now earlier than', ofRole, passing(/set the clock/)],
  [400, 'Throttling', 'Rate exceeded', ofRole, { code: 'http_400', permanent: false, says: /Rate exceeded/ }],
  [500, 'InternalFailure', 'internal', ofRole, { code: 'http_500', permanent: false, says: /internal/ }],
  [503, 'ServiceUnavailable', 'try again', ofRole, { code: 'http_503', permanent: false, says: /try again/ }],
  [403, 'SomethingNew', 'not in any table', ofRole, { code: 'http_403', permanent: false, says: /not in any table/ }],
])('%i %s (%s) of AWS says what to do, after the operation', async (status, code, message, credentials, { says, ...expected }) => {
  sts.answerWith(refuse(status, code, message))
  const error = await failure(deliver(credentials))
  expect(error).toMatchObject(expected)
  expect(error.message).toMatch(says)
  const operation = credentials === ofToken ? 'AssumeRoleWithWebIdentity' : 'AssumeRole'
  expect(error.message.startsWith(`${operation} of ${role}: `)).toBe(true)
  expect(store.arrivals).toEqual([])
})

function final(says: RegExp) {
  return { code: 'credentials_refused', permanent: true, says }
}

function passing(says: RegExp) {
  return { code: 'credentials_refused', permanent: false, says }
}

test('an answer that is none of AWS, and one without a session, are retried', async () => {
  for (const body of ['<html>Sign in to the network</html>', xml('<AssumeRoleResponse></AssumeRoleResponse>'), '']) {
    sts.answerWith((_, response) => response.end(body))
    const error = await failure(deliver({}))
    expect([body, error.permanent, error.code]).toEqual([body, false, expect.stringMatching(/^(answer_unreadable|token_unreadable)$/)])
  }
})

test('a session that the store no longer accepts is not used again, and the delivery is retried', async () => {
  const connector = createConnector()
  await deliver({}, connector)
  store.answerWith((_, response) => {
    response.writeHead(400, { 'content-type': 'application/xml' })
    response.end('<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>')
  })
  const error = await failure(deliver({}, connector))
  expect(error).toMatchObject({ code: 'credentials_refused', permanent: false })
  expect(error.message).toContain(`the store refused the session of ${role}`)
  expect(sts.arrivals).toHaveLength(1)
  await failure(deliver({}, connector))
  expect(sts.arrivals).toHaveLength(2)
})

test('what AWS or the store quotes of the token, and of the session, is in no error', async () => {
  sts.answerWith(refuse(400, 'InvalidIdentityToken', `the token ${token} is not valid`))
  const quoted = await failure(deliver({ federated_token_file: tokenFile }))
  sts.answerWith(issue)
  store.answerWith((_, response) => {
    response.writeHead(403, { 'content-type': 'application/xml' })
    response.end('<Error><Code>AccessDenied</Code><Message>canary-session-secret canary-session-token-2 said</Message></Error>')
  })
  const ofStore = await failure(deliver({}))
  for (const error of [quoted, ofStore]) {
    expect(`${error.message} ${JSON.stringify(error.answer)}`).not.toContain('canary')
    expect(error.message).toContain('[REDACTED]')
  }
})

test.each([
  [{ access_key_id: 'a', secret_access_key: 'b' }, undefined],
  [{ role_arn: role }, undefined],
  [{ role_arn: role, external_id: 'acme-4711' }, undefined],
  [{ role_arn: role, federated_token_file: tokenFile }, undefined],
  [{}, ''],
  [{ access_key_id: 'a' }, 'secret_access_key'],
  [{ access_key_id: 'a', secret_access_key: 'b', role_arn: role }, ''],
  [{ external_id: 'acme-4711' }, ''],
  [{ federated_token_file: tokenFile }, 'role_arn'],
  [{ role_arn: role, federated_token_file: tokenFile, external_id: 'acme-4711' }, 'external_id'],
  [{ role_arn: role, session_token: 'c' }, 'session_token'],
  [{ role_arn: 'arn:aws:iam::123456789012:user/relay' }, 'role_arn'],
])('%j are credentials, or have an issue at %s', (credentials, path) => {
  const { success, error } = createConnector().credentials.safeParse(credentials)
  expect(success).toBe(path === undefined)
  if (path !== undefined) expect(error!.issues.map((each) => each.path.join('.'))).toContain(path)
})
