import { z } from 'zod'
import type { CamelCasedOutput } from './casing.ts'
import { addressRanges } from './settings.ts'

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

/** Returns true if a text is the address of an HTTP proxy: scheme, host and port, also with user and password. */
const isProxyUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, pathname, search, hash } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && pathname + search + hash === '/' && loginOf(text) !== undefined
}

// No server demands this as a user without a password.
const storedLogin = '***'

/**
 * Returns what the address of a proxy says about the user and the password: that there are none, that the stored ones are meant, or that it
 * contains them. @returns undefined if they cannot be decoded
 */
export const loginOf = (proxyUrl: string): 'none' | 'stored' | 'given' | undefined => {
  const { username, password } = new URL(proxyUrl)
  if (username + password === '') return 'none'
  if (username === storedLogin && password === '') return 'stored'
  try {
    // One by one, as they are sent: a character must not begin in the user and end in the password.
    for (const text of [username, password]) decodeURIComponent(text)
    return 'given'
  } catch {
    return undefined
  }
}

/** Returns the address of a proxy as it is stored and returned: with `***` in place of user and password. */
export const proxyAddressOf = (proxyUrl: string): string => {
  const { protocol, host } = new URL(proxyUrl)
  return `${protocol}//${loginOf(proxyUrl) === 'none' ? '' : `${storedLogin}@`}${host}`
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
  proxy_url: z
    .string()
    .max(urlMaxCharacters)
    .refine(
      isProxyUrl,
      'must be an http or https address of a proxy, as http://user:password@host:port; write %25 for a % in user and password',
    )
    .nullable()
    .default(null)
    .describe(
      'The HTTP proxy through which the content server is asked, such as `http://user:password@outgoing.example:3128`. User and password are ' +
        'returned as `***`; sent back like that, the stored ones are kept. Null if there is none: the settings of the installation apply.',
    )
    .meta({ examples: ['http://***@outgoing.example:3128'] }),
  allowed_cidrs: addressRanges
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Address ranges of which one must contain the address of the content server. What the operator forbids stays forbidden. Null restricts ' +
        'nothing more.',
    ),
  delivers: z
    .boolean()
    .default(false)
    .describe('Whether documents that are fetched are delivered to the destinations of the repository, as if they had arrived now.'),
})

export type Upstream = CamelCasedOutput<typeof upstreamFields>

/** What is sealed of an upstream. `proxy_url` is the whole address, if it contains a user and a password. */
export interface UpstreamSecrets {
  private_key?: string
  proxy_url?: string
}

/** The stored (snake_case) form. */
export type StoredUpstream = z.output<typeof upstreamFields>
