import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDrive } from '../../../src/connectors/drive/index.ts'
import { createTokenCache } from '../../../src/connectors/shared/access-tokens.ts'
import { createReadTokenFile } from '../../../src/connectors/shared/token-files.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { contextOf, failure, payloadOf } from '../payloads.ts'
import { startDrive } from './rig.ts'

const rig = await startDrive()
const source = await startHttpTarget()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
const folder = await mkdtemp(join(tmpdir(), 'relay-google-'))
const file = join(folder, 'token')
beforeEach(async () => {
  rig.reset()
  source.arrivals.length = 0
  source.answerWith((_, response) => response.end(rig.double.subjectToken))
  await writeFile(file, `${rig.double.subjectToken}\n`)
})
afterAll(async () => {
  await outbound.close()
  await Promise.all([rig.stop(), source.stop(), rm(folder, { recursive: true })])
})

const hosts = { sts: rig.double.rootAt(), iamCredentials: rig.double.rootAt() }
const connector = (roots = [folder]) =>
  createDrive(rig.double.rootAt(), createTokenCache(), createReadTokenFile(roots.map((value) => ({ value }))), hosts)
const credentialsOf = (from: object, overrides: object = {}) => ({ external_account: rig.double.externalAccount(from, overrides) })
const deliver = (from: object, overrides: object = {}, roots = [folder], config: object = {}) => {
  const drive = connector(roots)
  const target = { config: rig.target({ config }).config, credentials: drive.credentials.parse(credentialsOf(from, overrides)) }
  return drive.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound))
}
const url = () => `${source.origin}/token`

test('the token of a workload, from a file, is exchanged for one of a service account', async () => {
  await deliver({ file })
  expect(rig.double.files.size).toBe(1)
  expect(rig.double.requests.slice(0, 2)).toEqual([
    'POST /v1/token',
    `POST /v1/projects/-/serviceAccounts/relay@project.iam.gserviceaccount.example:generateAccessToken`,
  ])
})

test('the federated account itself can be the one that the folder is shared with', async () => {
  await deliver({ file }, { service_account_impersonation_url: undefined })
  expect(rig.double.requests.filter((line) => line.includes('serviceAccounts'))).toEqual([])
  expect(rig.double.files.size).toBe(1)
})

test('the token of a workload, from an address, is asked for with its headers, in JSON', async () => {
  source.answerWith((_, response) => response.end(JSON.stringify({ value: rig.double.subjectToken })))
  const format = { type: 'json', subject_token_field_name: 'value' }
  await deliver({ url: url(), headers: { metadata: 'true' }, format })
  expect(source.arrivals[0]).toMatchObject({ method: 'GET', url: '/token', headers: { metadata: 'true' } })
  expect(rig.double.files.size).toBe(1)
})

test('a token that was renewed in its file is used for the next sign-in', async () => {
  await writeFile(file, 'expired')
  expect(await failure(deliver({ file }))).toMatchObject({
    code: 'credentials_refused',
    permanent: false,
    message: expect.stringContaining('has expired; let its system renew it') as string,
  })
  await writeFile(file, rig.double.subjectToken)
  await deliver({ file })
})

test('a file that the operator does not allow is not read', async () => {
  expect(await failure(deliver({ file }, {}, []))).toMatchObject({
    code: 'credentials_refused',
    permanent: true,
    message: expect.stringContaining('RELAY_TOKEN_FILE_ROOTS') as string,
  })
  expect(rig.double.requests).toEqual([])
})

test('the address of a token goes through the guard of outgoing connections', async () => {
  expect(await failure(deliver({ url: 'https://169.254.169.254/token' }))).toMatchObject({ code: 'blocked_address', permanent: true })
})

test.each([
  ['a token that Google does not accept', { file }, {}, /does not accept the token of the workload.*not valid/, true],
  ['another audience', { file }, { audience: '//iam.googleapis.com/other' }, /audience names no provider/, true],
  [
    'a service account of others',
    { file },
    {
      service_account_impersonation_url:
        'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/other@project.example:generateAccessToken',
    },
    /may not act for the service account.*PERMISSION_DENIED/,
    true,
  ],
])('%s is final, and no token is shown', async (what, from, overrides, message, permanent) => {
  if (what.includes('not accept')) await writeFile(file, 'a-wrong-token')
  const error = await failure(deliver(from, overrides))
  expect(error).toMatchObject({ code: 'credentials_refused', permanent, message: expect.stringMatching(message) as string })
  for (const token of ['a-wrong-token', rig.double.subjectToken, 'drive-token']) {
    expect(JSON.stringify([error.message, error.answer])).not.toContain(token)
  }
})

test.each([
  [404, true],
  [503, false],
])('a source that answers %i is reported, permanent: %s', async (status, permanent) => {
  source.answerWith((_, response) => response.writeHead(status).end('a token?'))
  const error = await failure(deliver({ url: url() }))
  expect(error).toMatchObject({ permanent, message: expect.stringContaining(`answered ${status}`) as string })
  expect(JSON.stringify([error.message, error.answer])).not.toContain('a token?')
})

test('a page in place of the exchange passes', async () => {
  for (const match of [/v1\/token$/, /generateAccessToken$/]) {
    rig.double.faults.push({ match, response: { status: 403, text: '<html>' }, times: 1 })
    expect(await failure(deliver({ file }))).toMatchObject({ code: 'http_403', permanent: false })
  }
})

test('it cannot act for a user', async () => {
  expect(await failure(deliver({ file }, {}, [folder], { subject: rig.double.subject }))).toMatchObject({ code: 'config_invalid' })
})

test.each<[string, object, object]>([
  ['a program', { executable: { command: '/bin/sh' } }, {}],
  ['AWS', { environment_id: 'aws1', region_url: 'http://169.254.169.254/' }, {}],
  ['two sources', { file, url: 'https://issuer.example/token' }, {}],
  ['a relative path', { file: 'token' }, {}],
  ['http at a public address', { url: 'http://issuer.example/token' }, {}],
  ['JSON without a field', { file, format: { type: 'json' } }, {}],
  ['a token service of others', { file }, { token_url: 'https://sts.example/v1/token' }],
  [
    'impersonation at others',
    { file },
    { service_account_impersonation_url: 'https://iam.example/v1/projects/-/serviceAccounts/a@b:generateAccessToken' },
  ],
  ['a key file', { file }, { type: 'service_account' }],
])('refuses %s', (_what, from, overrides) => {
  expect(rig.connector.credentials.safeParse(credentialsOf(from, overrides)).success).toBe(false)
})

test('refuses both accounts, and none', () => {
  const both = { ...credentialsOf({ file }), service_account: rig.double.keyFile() }
  for (const credentials of [both, {}]) expect(rig.connector.credentials.safeParse(credentials).success).toBe(false)
})
