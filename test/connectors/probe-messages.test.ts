import { generateKeyPairSync } from 'node:crypto'
import { readConfig } from '../../src/config.ts'
import { createBlob } from '../../src/connectors/blob.ts'
import type { Connector } from '../../src/connectors/connector.ts'
import { email } from '../../src/connectors/email.ts'
import { createEntraTokens } from '../../src/connectors/entra-token.ts'
import { objstore } from '../../src/connectors/objstore.ts'
import { secretsIn } from '../../src/connectors/secrets.ts'
import { sftp } from '../../src/connectors/sftp.ts'
import { webhook } from '../../src/connectors/webhook.ts'
import { testTarget } from '../../src/http/targets.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { startAzurite } from '../support/azurite.ts'
import { freePort } from '../support/free-port.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startS3Server } from '../support/s3-server.ts'
import { startMailServer } from '../support/smtp-server.ts'
import { startSshd } from '../support/sshd.ts'
import { startDriveRig } from './drive-rig.ts'
import { startTeamsiteRig } from './teamsite-rig.ts'

type Given = Record<string, unknown>

/** A kind with what works there, what people get wrong, and what must then be found in the message. */
interface Kind {
  connector: Connector
  config: Given
  credentials: Given
  mistakes: [what: string, config: Given, credentials: Given, message: RegExp][]
  stop(): Promise<void>
}

const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

const kinds: Record<string, () => Promise<Kind>> = {
  objstore: async () => {
    const { endpoint, bucket, accessKeyId, secretAccessKey, stop } = await startS3Server()
    return {
      connector: objstore,
      config: { bucket, region: 'us-east-1', endpoint, path_style: true },
      credentials: { access_key_id: accessKeyId, secret_access_key: secretAccessKey },
      mistakes: [
        ['another secret', {}, { secret_access_key: 'canary-secret' }, /access_key_id and secret_access_key/],
        ['an unknown key', {}, { access_key_id: 'nobody' }, /access_key_id and secret_access_key/],
        ['a missing bucket', { bucket: 'not-there' }, {}, /no bucket not-there/],
        ['another port', { endpoint: `http://127.0.0.1:${await freePort()}` }, {}, /nothing listens/],
      ],
      stop,
    }
  },
  blob: async () => {
    const { accountUrl, accountKey, container, stop } = await startAzurite()
    return {
      connector: createBlob(createEntraTokens()),
      config: { account_url: accountUrl, container },
      credentials: { account_key: accountKey },
      mistakes: [
        ['another key', {}, { account_key: 'Y2FuYXJ5LWtleQ==' }, /account_key: is it the key of the account/],
        ['a missing container', { container: 'not-there' }, {}, /no container not-there/],
        ['a SAS token over http', {}, { account_key: undefined, sas_token: 'sp=cw&sig=canary' }, /https/],
        ['another port', { account_url: `http://127.0.0.1:${await freePort()}/acme` }, {}, /nothing listens/],
      ],
      stop,
    }
  },
  teamsite: async () => {
    const { connector, target, stop } = await startTeamsiteRig()
    const { config, credentials } = target()
    return {
      connector,
      config,
      credentials,
      mistakes: [
        ['another secret', {}, { client_secret: 'canary-secret' }, /client_secret is wrong: enter the value of a secret/],
        ['another application', {}, { client_id: 'client-2' }, /client_id names no application/],
        ['another site', { site_url: 'https://contoso.sharepoint.com/sites/Nowhere' }, {}, /no site .*Nowhere.*correct site_url/],
        ['another library', { document_library: 'Nowhere' }, {}, /no document library Nowhere; it has: Documents/],
        ['no authority', { ca_certificate: undefined }, {}, /certificate is not to be trusted/],
      ],
      stop,
    }
  },
  drive: async () => {
    const { double, connector, target, stop } = await startDriveRig()
    const { config, credentials } = target()
    const { service_account: account } = credentials as { service_account: Given }
    return {
      connector,
      config,
      credentials,
      mistakes: [
        ['another key', {}, { service_account: { ...account, private_key: otherKey } }, /make a new key file/],
        ['an account that is gone', {}, { service_account: { ...account, client_email: 'gone@project.example' } }, /gone or disabled/],
        ['a missing folder', { folder_id: 'not-there' }, {}, /folder not-there is not there, or not shared.*share it/],
        ['a folder to read', { folder_id: double.folders.readOnly }, {}, /not add to it: make it a contributor/],
        ['a folder of somebody', { folder_id: double.folders.personal }, {}, /owns no storage.*shared drive/],
        ['a user it may not act for', { subject: 'other@contoso.example' }, {}, /may not act for other@contoso\.example/],
      ],
      stop,
    }
  },
  sftp: async () => {
    const { port, username, privateKey, hostKeyFingerprint, stop } = await startSshd()
    const web = await startHttpTarget()
    return {
      connector: sftp,
      config: { host: '127.0.0.1', port, host_key_sha256: hostKeyFingerprint },
      credentials: { username, private_key: privateKey },
      mistakes: [
        ['a password', {}, { private_key: undefined, password: 'canary-password' }, /refused the user name and the password or key/],
        ['a missing folder', { directory: 'not-there' }, {}, /not-there/],
        ['another host key', { host_key_sha256: 'ab'.repeat(32) }, {}, /host key SHA256:.*host_key_sha256/],
        ['a port of something else', { port: web.port }, {}, /SSH/],
        ['another port', { port: await freePort() }, {}, /nothing listens/],
      ],
      stop: async () => {
        await web.stop()
        await stop()
      },
    }
  },
  email: async () => {
    const server = await startMailServer({
      disabledCommands: ['STARTTLS'],
      authOptional: true,
    })
    server.answerWith({
      onMailFrom: ({ address }, _session, done) =>
        address.startsWith('stranger') ? done(Object.assign(new Error('5.7.1 not you'), { responseCode: 550 })) : done(),
      onRcptTo: ({ address }, _session, done) =>
        address.startsWith('nobody') ? done(Object.assign(new Error('5.1.1 no such mailbox'), { responseCode: 550 })) : done(),
    })
    return {
      connector: email,
      config: { host: '127.0.0.1', port: server.port, tls: 'none', from: 'relay@acme.example', to: 'archive@acme.example' },
      credentials: {},
      mistakes: [
        ['a recipient nobody knows', { to: 'nobody@acme.example' }, {}, /refused nobody@acme\.example/],
        ['a sender it does not take', { from: 'stranger@acme.example' }, {}, /stranger@acme\.example/],
        ['TLS where there is none', { tls: 'starttls' }, {}, /TLS/],
        ['TLS from the beginning where there is none', { tls: 'implicit' }, {}, /TLS/],
        ['another port', { port: await freePort() }, {}, /nothing listens/],
      ],
      stop: server.stop,
    }
  },
  webhook: async () => {
    const server = await startHttpTarget()
    server.answerWith(({ url, headers }, response) => {
      const status = headers.authorization === 'Bearer right-token' ? (url === '/in' ? 200 : 404) : 401
      response.writeHead(status).end(`you said ${headers.authorization}`)
    })
    return {
      connector: webhook,
      config: { url: `${server.origin}/in` },
      credentials: { bearer_token: 'right-token' },
      mistakes: [
        ['another token', {}, { bearer_token: 'canary-token' }, /401.*does not take the credentials/],
        ['another path', { url: `${server.origin}/out` }, {}, /404/],
        ['https where there is http', { url: `https://127.0.0.1:${server.port}/in` }, {}, /TLS/],
        ['another port', { url: `http://127.0.0.1:${await freePort()}/` }, {}, /nothing listens/],
        ['a name nobody knows', { url: 'http://no-such-host.invalid/' }, {}, /host name is not known|name server did not answer/],
      ],
      stop: server.stop,
    }
  },
}

// an operator waits for it
const promptlyMs = 5_000

test.each(Object.entries(kinds))('a test of %s tells what to mend, within seconds and without a secret', async (_kind, start) => {
  const { connector, config, credentials, mistakes, stop } = await start()
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
  const deps = { outbound, config: readConfig({}) }
  const run = (more: Given, others: Given) =>
    testTarget(
      deps,
      connector,
      { config: { ...config, ...more }, credentials: { ...credentials, ...others } },
      new AbortController().signal,
    )

  expect(await run({}, {})).toMatchObject({ status: 'success' })
  for (const [what, more, others, message] of mistakes) {
    const begun = Date.now()
    const result = await run(more, others)
    expect({ what, ...result }).toEqual({ what, status: 'failed', message: expect.stringMatching(message) })
    expect(Date.now() - begun).toBeLessThan(promptlyMs)
    for (const secret of secretsIn(connector.credentials, { ...credentials, ...others })) expect(result.message).not.toContain(secret)
  }
  await outbound.close()
  await stop()
})
