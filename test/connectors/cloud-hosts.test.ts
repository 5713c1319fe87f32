import { generateKeyPairSync } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import type { Connector } from '../../src/connectors/connector.ts'
import { createDrive } from '../../src/connectors/drive/index.ts'
import { createEmail } from '../../src/connectors/email/index.ts'
import { createEntraTokens } from '../../src/connectors/shared/entra-tokens.ts'
import { createTeamsite } from '../../src/connectors/teamsite/index.ts'
import { microsoftClouds, type CloudName } from '../../src/connectors/teamsite/schema.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, failure } from './payloads.ts'

// Without a double, to test which hosts the product itself contacts. The resolver records the names and resolves none.
const contactedHosts = async (connector: Connector, config: object, credentials: object) => {
  const names: string[] = []
  const lookup: LookupFunction = (host, _options, done) => {
    names.push(host)
    done(Object.assign(new Error(`${host} is not known`), { code: 'ENOTFOUND' }), [])
  }
  const outbound = createOutboundGuard({ allowedCidrs: [], lookup })
  const target = { config: connector.config.parse(config), credentials: connector.credentials.parse(credentials) }
  expect(await failure(connector.probe(target, contextOf(outbound)))).toMatchObject({ code: 'host_not_found', permanent: false })
  await outbound.close()
  return names
}

test.each<[CloudName, string, string]>([
  ['global', 'login.microsoftonline.com', 'graph.microsoft.com'],
  ['usgov', 'login.microsoftonline.us', 'graph.microsoft.us'],
  ['usgov-dod', 'login.microsoftonline.us', 'dod-graph.microsoft.us'],
  ['china', 'login.chinacloudapi.cn', 'microsoftgraph.chinacloudapi.cn'],
])('teamsite signs in to the cloud %s at %s, and uses %s', async (cloud, authority, graph) => {
  const config = { site_url: 'https://contoso.sharepoint.com/sites/Finance', document_library: 'Documents', cloud }
  const credentials = { tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the-secret' }
  expect(await contactedHosts(createTeamsite(createEntraTokens()), config, credentials)).toEqual([authority])
  expect(microsoftClouds[cloud]).toMatchObject({ graphRoot: `https://${graph}`, scope: `https://${graph}/.default` })
})

test('email asks the global cloud for a token of Exchange Online, before it connects to the mail server', async () => {
  const credentials = { username: 'a@contoso.example', tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the-secret' }
  const config = { host: 'smtp.office365.com', from: 'a@contoso.example', to: 'b@contoso.example' }
  expect(await contactedHosts(createEmail(), config, credentials)).toEqual(['login.microsoftonline.com'])
})

test('drive signs in at the token_uri of the key file, or at Google by default', async () => {
  const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const account = { type: 'service_account', client_email: 'relay@project.example', private_key: privateKey }
  const hostsFor = (more: object) => contactedHosts(createDrive(), { folder_id: 'f' }, { service_account: { ...account, ...more } })
  expect(await hostsFor({})).toEqual(['oauth2.googleapis.com'])
  expect(await hostsFor({ token_uri: 'https://tokens.example/token' })).toEqual(['tokens.example'])
})
