import { z } from 'zod'
import { checkEntraCertificate, entraCredentials, entraSignIns } from '../shared/entra-tokens.ts'
import { caCertificate, plainText, urlWithout } from '../shared/schema-fields.ts'
import { checkOneSignIn, withSignIns } from '../shared/sign-in.ts'
import { isSharePointFolder } from './library.ts'

export interface MicrosoftCloud {
  authorityHost: string
  graphRoot: string
  scope: string
}

const cloud = (authority: string, graph: string): MicrosoftCloud => ({
  authorityHost: `https://${authority}`,
  graphRoot: `https://${graph}`,
  scope: `https://${graph}/.default`,
})

/** The global cloud of Microsoft and the separate national clouds. */
export const microsoftClouds = {
  global: cloud('login.microsoftonline.com', 'graph.microsoft.com'),
  usgov: cloud('login.microsoftonline.us', 'graph.microsoft.us'),
  'usgov-dod': cloud('login.microsoftonline.us', 'dod-graph.microsoft.us'),
  china: cloud('login.chinacloudapi.cn', 'microsoftgraph.chinacloudapi.cn'),
}

export type CloudName = keyof typeof microsoftClouds

const siteUrl = z
  .url({ protocol: /^https$/ })
  .max(1_024)
  .refine(
    urlWithout('username', 'password', 'search', 'hash', 'port'),
    'must be the address of the site itself, for example https://contoso.sharepoint.com/sites/Finance, without query or port',
  )

export const teamsiteConfig = z.strictObject({
  site_url: siteUrl.describe(
    'Address of the site itself, for example https://contoso.sharepoint.com/sites/Finance, without a library, page or query after it',
  ),
  document_library: plainText(255).describe(
    'Name of the document library as the site shows it, for example Documents; it must exist. Not case-sensitive',
  ),
  folder: z
    .string()
    .max(255)
    .refine((folder) => folder === '' || isSharePointFolder(folder), 'must be a folder path that SharePoint accepts: names separated by /')
    .default('')
    .describe('Folder of the library to store documents in, for example Incoming/SAP; created if it does not exist'),
  cloud: z
    .enum(Object.keys(microsoftClouds) as CloudName[])
    .default('global')
    .describe('Microsoft cloud that the tenant belongs to: usgov is GCC High, china is 21Vianet; GCC belongs to global'),
  ca_certificate: caCertificate,
})

const credentials = z.strictObject(entraCredentials).superRefine((values, context) => {
  checkOneSignIn(
    entraSignIns,
    values,
    context,
    'must contain exactly one of client_secret, client_certificate with client_key, or federated_token_file',
  )
  checkEntraCertificate(values, context)
})

export const teamsiteCredentials = withSignIns(credentials, entraSignIns)

/** A plausible destination, for documentation. */
export const teamsiteExample = {
  config: { site_url: 'https://contoso.sharepoint.com/sites/Finance', document_library: 'Documents', folder: 'Incoming/SAP' },
  credentials: {
    tenant_id: '72f988bf-86f1-41af-91ab-2d7cd011db47',
    client_id: '11111111-2222-3333-4444-555555555555',
    client_secret: 'fictitious~client.secret-of-an-example',
  },
}

export type TeamsiteConfig = z.output<typeof teamsiteConfig>
export type TeamsiteCredentials = z.output<typeof teamsiteCredentials>
