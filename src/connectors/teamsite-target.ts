import { z } from 'zod'
import { caCertificate } from './ca-certificate.ts'
import { entraCredentials } from './entra-token.ts'
import { plainText } from './fields.ts'
import { isSharePointFolder } from './teamsite-path.ts'

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

/** Microsoft's own, and the national ones that are kept apart from it. */
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
  .refine((text) => {
    if (!URL.canParse(text)) return true
    const { username, password, search, hash, port } = new URL(text)
    return `${username}${password}${search}${hash}${port}` === ''
  }, "must be the site's own address, like https://contoso.sharepoint.com/sites/Finance, without query or port")

export const teamsiteConfig = z.strictObject({
  site_url: siteUrl.describe(
    "The site's own address, like https://contoso.sharepoint.com/sites/Finance: without a library, a page or a query behind it",
  ),
  document_library: plainText(255).describe(
    'Name of the document library as the site shows it, like Documents; it must exist. Upper and lower case are one',
  ),
  folder: z
    .string()
    .max(255)
    .refine((folder) => folder === '' || isSharePointFolder(folder), 'is no folder path that SharePoint takes: names with / between them')
    .default('')
    .describe('Folder of the library that documents are put under, like Incoming/SAP; made as needed'),
  cloud: z
    .enum(Object.keys(microsoftClouds) as CloudName[])
    .default('global')
    .describe('The Microsoft cloud the tenant belongs to: usgov is GCC High, china 21Vianet; GCC belongs to global'),
  ca_certificate: caCertificate,
})

export const teamsiteCredentials = z.strictObject(entraCredentials)

export type TeamsiteConfig = z.output<typeof teamsiteConfig>
export type TeamsiteCredentials = z.output<typeof teamsiteCredentials>
