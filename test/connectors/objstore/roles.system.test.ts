import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createAwsSessions } from '../../../src/connectors/objstore/sessions.ts'
import { createTokenCache } from '../../../src/connectors/shared/access-tokens.ts'
import { createReadTokenFile } from '../../../src/connectors/shared/token-files.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { disposable } from '../../support/disposable.ts'
import { startMoto } from '../../support/moto.ts'
import { share } from '../../support/share.ts'
import { contextOf, failure, largePayload, later, MiB, payloadOf } from '../payloads.ts'

const writes = ['s3:PutObject', 's3:GetObject', 's3:DeleteObject', 's3:ListBucket', 's3:AbortMultipartUpload', 's3:PutObjectTagging']
const moto = share(
  await startMoto(
    ['documents', 'others'],
    {
      writer: { actions: writes, resources: ['arn:aws:s3:::documents', 'arn:aws:s3:::documents/*'] },
      reader: { actions: ['s3:GetObject'], resources: ['arn:aws:s3:::documents/*'] },
      foreign: { actions: writes, resources: ['*'] },
      container: { actions: ['sts:AssumeRole'], resources: ['*'] },
    },
    ['writer', 'reader', 'container'],
  ),
)
const arnOf = (name: string) => `arn:aws:iam::${moto.account}:role/${name}`

/** The forms that have been sent to the Security Token Service. */
const forms: URLSearchParams[] = []

/** Stands in for the trust policy of the role `writer`, which moto does not evaluate: it demands an external id. */
const isTrusted = (form: URLSearchParams) => !form.get('RoleArn')?.endsWith('/writer') || form.get('ExternalId') === 'acme-4711'

const answerForm = async (request: IncomingMessage, response: http.ServerResponse) => {
  const body = await text(request)
  const form = new URLSearchParams(body)
  forms.push(form)
  if (!isTrusted(form)) {
    const error =
      '<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>is not authorized to perform: sts:AssumeRole</Message></Error>'
    response.writeHead(403, { 'content-type': 'text/xml' }).end(`<ErrorResponse>${error}</ErrorResponse>`)
    return
  }
  const { method, url, headers } = request
  http
    .request({ host: '127.0.0.1', port: moto.port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    .end(body)
}

const sts = http.createServer((request, response) => void answerForm(request, response))
sts.listen(0, '127.0.0.1')
await once(sts, 'listening')
const endpoint = `http://127.0.0.1:${(sts.address() as AddressInfo).port}`
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (guard) => guard.close()))
afterAll(() => {
  sts.closeAllConnections()
  sts.close()
})
beforeEach(() => {
  forms.length = 0
})

const grants = [
  { workspace: 'acme/first', value: arnOf('writer') },
  { workspace: 'acme/second', value: arnOf('writer') },
  { workspace: 'acme/first', value: arnOf('reader') },
  { workspace: 'acme/first', value: arnOf('foreign') },
]
const createConnector = (settings: object = { endpoint, credentials: moto.relay }) =>
  createObjstore(createPartMemory(), createAwsSessions(createTokenCache(), grants, createReadTokenFile([]), settings))

const targetOf = (role: string, { bucket = 'documents', externalId = 'acme-4711' }: { bucket?: string; externalId?: string } = {}) => {
  const { config, credentials } = createObjstore(createPartMemory())
  return {
    config: config.parse({ bucket, region: 'us-east-1', endpoint: moto.endpoint, path_style: true }),
    credentials: credentials.parse({ role_arn: arnOf(role), external_id: externalId }),
  }
}
const inWorkspace = (workspace = 'acme/first') => contextOf(outbound, { workspace })

test('a role that the operator allows to the workspace stores documents, in one request and in parts, and the session is used again', async () => {
  const connector = createConnector()
  const target = targetOf('writer')
  for (const payload of [payloadOf(Buffer.from('by a role'), { properties: { Vendor: '0000017300' } }), largePayload(20 * MiB)]) {
    const result = await connector.deliver(payload, target, inWorkspace())
    expect(result).toMatchObject({ path: `s3://documents/${payload.path}`, bytesSent: payload.sizeBytes })
  }
  expect(await connector.probe(target, inWorkspace())).toContain('removed')
  // The probe tests the role itself.
  expect(forms.map((form) => [form.get('Action'), form.get('ExternalId'), form.get('RoleSessionName')])).toEqual([
    ['AssumeRole', 'acme-4711', 'document-relay.acme.first'],
    ['AssumeRole', 'acme-4711', 'document-relay.acme.first'],
  ])
})

test('each workspace has a session of its own, and one that has expired is renewed', async () => {
  const connector = createConnector()
  const deliver = (workspace: string) => connector.deliver(payloadOf(Buffer.from('x')), targetOf('writer'), inWorkspace(workspace))
  await deliver('acme/first')
  await deliver('acme/second')
  expect(forms.map((form) => form.get('RoleSessionName'))).toEqual(['document-relay.acme.first', 'document-relay.acme.second'])
  await later(56, () => deliver('acme/first').catch(() => {}))
  expect(forms).toHaveLength(3)
})

test('a role of another workspace, and one that is allowed to none, is asked of nobody', async () => {
  const connector = createConnector()
  for (const [role, workspace] of [
    ['reader', 'acme/second'],
    ['writer', 'other/first'],
    ['nobodys', 'acme/first'],
  ] as const) {
    const error = await failure(connector.deliver(payloadOf(Buffer.from('x')), targetOf(role), inWorkspace(workspace)))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
    expect(error.message).toBe(
      `AssumeRole of ${arnOf(role)}: the operator of the relay does not allow this role to ${workspace} (RELAY_S3_ROLES)`,
    )
    expect(await failure(connector.probe(targetOf(role), inWorkspace(workspace)))).toMatchObject({ code: 'credentials_refused' })
  }
  expect(forms).toEqual([])
})

test.each([
  ['another external id', targetOf('writer', { externalId: 'other-4711' })],
  ['a role that does not trust the relay', targetOf('foreign')],
])('%s: the role is not assumed, finally, and the message says what to correct', async (_, target) => {
  const error = await failure(createConnector().deliver(payloadOf(Buffer.from('x')), target, inWorkspace()))
  expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, answer: { status: 403 } })
  expect(error.message).toMatch(
    /^AssumeRole of arn:aws:iam::\d+:role\/\w+: AWS issued no session: the role does not exist, or its trust policy/,
  )
})

test('what the role may not do is not done with the identity of the relay', async () => {
  const deliver = (target: ReturnType<typeof targetOf>) =>
    failure(createConnector().deliver(payloadOf(Buffer.from('x')), target, inWorkspace()))
  expect(await deliver(targetOf('reader'))).toMatchObject({ code: 'access_denied', permanent: true })
  expect(await deliver(targetOf('writer', { bucket: 'others' }))).toMatchObject({ code: 'access_denied', permanent: true })
})

describe('the identity of the relay', () => {
  const names = [
    'AWS_CONTAINER_CREDENTIALS_FULL_URI',
    'AWS_EC2_METADATA_DISABLED',
    'AWS_SHARED_CREDENTIALS_FILE',
    'AWS_CONFIG_FILE',
  ] as const
  const before = names.map((name) => [name, process.env[name]] as const)
  afterEach(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
  const useEnvironment = (values: Partial<Record<(typeof names)[number], string>>) =>
    Object.assign(process.env, {
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
      AWS_CONFIG_FILE: '/nonexistent',
      ...values,
    })
  const deliver = () => createConnector({ endpoint }).deliver(payloadOf(Buffer.from('x')), targetOf('writer'), inWorkspace())

  test('is found as the SDK finds it, such as that of a container', async () => {
    const client = new STSClient({ endpoint: moto.endpoint, region: 'us-east-1', credentials: moto.relay })
    const { Credentials } = await client.send(new AssumeRoleCommand({ RoleArn: arnOf('container'), RoleSessionName: 'container' }))
    client.destroy()
    const metadata = http.createServer((_, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ ...Credentials, Token: Credentials!.SessionToken }))
    })
    metadata.listen(0, '127.0.0.1')
    await once(metadata, 'listening')
    useEnvironment({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${(metadata.address() as AddressInfo).port}/` })
    try {
      expect(await deliver()).toMatchObject({ bytesSent: 1 })
    } finally {
      metadata.closeAllConnections()
      metadata.close()
    }
  })

  test('that is missing is retried, since the operator gives it without a change of the destination', async () => {
    useEnvironment({})
    const error = await failure(deliver())
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: false })
    expect(error.message).toMatch(/^AssumeRole of arn:\S+: the relay has no AWS identity of its own/)
    expect(forms).toEqual([])
  })
})
