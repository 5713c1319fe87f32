import ipaddr from 'ipaddr.js'
import type { Config } from '../../config/config.ts'
import { readSecretKeys } from '../../security/seal.ts'

const keyDistinctBytesMin = 16
const dayMs = 86_400_000
const linkMaxDays = 30
const skewMaxMinutes = 15
// A network of 256 addresses, and one IPv6 network of a site.
const prefixMin = { ipv4: 24, ipv6: 64 }

/** Returns true for a host name or address of this machine. */
export const isLocalHost = (host: string): boolean => {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || (ipaddr.isValid(name) && ipaddr.process(name).range() === 'loopback')
}

const urlOf = (text: string | undefined) => (text !== undefined && URL.canParse(text) ? new URL(text) : undefined)

export const findWeakSealingKeys = ({ RELAY_SECRET_KEYS }: Pick<Config, 'RELAY_SECRET_KEYS'>): string[] =>
  readSecretKeys(RELAY_SECRET_KEYS)
    // 32 random bytes have about 30 distinct values, and never all of them are letters of a text.
    .filter(([, key]) => new Set(key).size < keyDistinctBytesMin || key.every((byte) => byte >= 0x20 && byte < 0x7f))
    .map(([id]) => `The key ${id} is a text or a pattern.`)

export const findPublicAddress = ({ RELAY_BASE_URL }: Pick<Config, 'RELAY_BASE_URL'>): string[] => {
  const url = urlOf(RELAY_BASE_URL)
  if (!url) return ['RELAY_BASE_URL is not set: links are made from the Host header of a request.']
  return url.protocol === 'https:' || isLocalHost(url.hostname) ? [] : ['API keys and documents travel in clear.']
}

export const findAddressRules = ({ RELAY_BASE_URL, RELAY_TRUST_PROXY }: Pick<Config, 'RELAY_BASE_URL' | 'RELAY_TRUST_PROXY'>): string[] => {
  const isBehindProxy = urlOf(RELAY_BASE_URL)?.protocol === 'https:'
  if (isBehindProxy && !RELAY_TRUST_PROXY) return ['The relay takes the address of the proxy for that of every client.']
  if (!isBehindProxy && RELAY_TRUST_PROXY) return ['RELAY_BASE_URL names no proxy, and without one every client can name any address.']
  return []
}

export const findUnencryptedTemporal = ({ temporal }: Pick<Config, 'temporal'>): string[] => {
  const { address = '127.0.0.1:7233', tls, apiKey } = temporal.connectionOptions
  if (isLocalHost(address.replace(/:\d+$/, ''))) return []
  // An API key turns TLS on, unless it is switched off.
  const isEncrypted = tls === undefined || tls === null ? apiKey !== undefined : tls !== false
  const hasCertificate = typeof tls === 'object' && tls?.clientCertPair !== undefined
  return [
    ...(isEncrypted ? [] : [`The connection to ${address} is not encrypted.`]),
    ...(apiKey !== undefined || hasCertificate ? [] : [`The relay shows ${address} neither an API key nor a certificate.`]),
  ]
}

export const findWideRanges = ({ RELAY_ALLOWED_PRIVATE_CIDRS }: Pick<Config, 'RELAY_ALLOWED_PRIVATE_CIDRS'>): string[] =>
  RELAY_ALLOWED_PRIVATE_CIDRS.flatMap((text) => {
    const [address, bits] = ipaddr.parseCIDR(text)
    if (address.range() === 'loopback') return [`${text} lets destinations connect to this machine.`]
    return bits < prefixMin[address.kind()] ? [`${text} is larger than a /${prefixMin[address.kind()]} network.`] : []
  })

export const findSignatureRules = ({
  RELAY_SIGNATURE_SCOPE,
  RELAY_SIGNATURE_SKEW_MS,
}: Pick<Config, 'RELAY_SIGNATURE_SCOPE' | 'RELAY_SIGNATURE_SKEW_MS'>): string[] => [
  ...(RELAY_SIGNATURE_SCOPE === 'all' ? [] : ['RELAY_SIGNATURE_SCOPE is doc_prot: who creates a document decides what needs a signature.']),
  ...(RELAY_SIGNATURE_SKEW_MS <= skewMaxMinutes * 60_000
    ? []
    : [`RELAY_SIGNATURE_SKEW_MS accepts URLs for ${RELAY_SIGNATURE_SKEW_MS / 60_000} minutes after their expiration.`]),
]

export const findMissingLimits = (
  config: Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES' | 'RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE' | 'DOWNLOAD_LINK_TTL_MS'>,
): string[] => [
  ...(['RELAY_WORKSPACE_MAX_BYTES', 'RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE'] as const)
    .filter((name) => config[name] === 0)
    .map((name) => `${name} is 0: one workspace can use up the resources of all.`),
  ...(config.DOWNLOAD_LINK_TTL_MS <= linkMaxDays * dayMs
    ? []
    : [`Download links are valid for ${Math.round(config.DOWNLOAD_LINK_TTL_MS / dayMs)} days.`]),
]

export const findInsecureOrigins = ({ RELAY_CORS_ORIGINS }: Pick<Config, 'RELAY_CORS_ORIGINS'>): string[] =>
  RELAY_CORS_ORIGINS.filter((origin) => origin.startsWith('http:') && !isLocalHost(new URL(origin).hostname)).map(
    (origin) => `A page of ${origin} can be replaced on its way to the browser, and then reads what the page may read.`,
  )

export const findLogLevel = ({ RELAY_LOG_LEVEL: level }: Pick<Config, 'RELAY_LOG_LEVEL'>): string[] => {
  if (level === 'info' || level === 'warn') return []
  const isVerbose = level === 'trace' || level === 'debug'
  return [isVerbose ? `The level ${level} logs more than operation needs.` : `The level ${level} hides warnings.`]
}
