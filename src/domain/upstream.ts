import { z } from 'zod'
import type { CamelCasedOutput } from './casing.ts'

export const documentOrigins = ['source', 'upstream'] as const
export type DocumentOrigin = (typeof documentOrigins)[number]

const urlMaxCharacters = 2_048
const nameMaxCharacters = 255
const pemMaxCharacters = 16_384

/** Returns true if a text is the address of a content server, as source systems have it: without query, fragment, user and password. */
const isServerUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, search, hash, username, password } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && search + hash + username + password === '' && !text.endsWith('?')
}

/** The content server that a source system used before, as the column `repositories.upstream` and the API have it. */
export const upstreamFields = z.strictObject({
  url: z
    .string()
    .max(urlMaxCharacters)
    .refine(isServerUrl, 'must be an http or https address without query, user and password')
    .describe('The address of the content server without the query, such as `https://archive.example/archive`.')
    .meta({ examples: ['https://archive.example/archive'] }),
  cont_rep: z
    .string()
    .min(1)
    .max(nameMaxCharacters)
    .describe('The name of the repository there (`contRep`).')
    .meta({ examples: ['Z1'] }),
  auth_id: z
    .string()
    .min(1)
    .max(nameMaxCharacters)
    .nullable()
    .default(null)
    .describe('The `authId` under which the content server knows the certificate. Null if requests are not signed.'),
  certificate: z
    .string()
    .max(pemMaxCharacters)
    .nullable()
    .default(null)
    .describe('The certificate with which requests are signed, in PEM. Null if they are not signed.'),
  ca_certificate: z
    .string()
    .max(pemMaxCharacters)
    .nullable()
    .default(null)
    .describe('The authority that is trusted for the TLS connection, in PEM, in place of the public ones.'),
  delivers: z
    .boolean()
    .default(false)
    .describe('Whether documents that are fetched are delivered to the destinations of the repository, as if they had arrived now.'),
})

export type Upstream = CamelCasedOutput<typeof upstreamFields>

/** As the column has it. */
export type StoredUpstream = z.output<typeof upstreamFields>
