import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { UserError } from '../base/errors.ts'

type Address = ReturnType<typeof ipaddr.parse>
type Range = [Address, number]

// Loopback and private networks, which RELAY_ALLOWED_PRIVATE_CIDRS can allow. All other non-public addresses are always
// blocked.
export const allowableCidrs = ['127.0.0.0/8', '::1/128', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']
const allowableRanges = allowableCidrs.map((text): Range => ipaddr.parseCIDR(text))

// The only IPv6 block in which addresses are assigned. Addresses outside it, such as the deprecated ::a.b.c.d, are
// blocked.
const globalUnicast: Range = ipaddr.parseCIDR('2000::/3')

// Cloud metadata services outside the link-local range: AWS and Google over IPv6, Scaleway, Alibaba, and Azure's host
// agent, which has a public address.
const metadataAddresses = new Set(
  ['fd00:ec2::254', 'fd20:ce::254', 'fd00:42::42', '100.100.100.200', '168.63.129.16'].map((text) =>
    ipaddr.parse(text).toNormalizedString(),
  ),
)

const isInRange = (address: Address, [network, bits]: Range) => address.kind() === network.kind() && address.match(network, bits)

/**
 * Creates a filter of addresses. Public addresses are allowed. Loopback and
 * private addresses are allowed if one of the ranges contains them. All other addresses are blocked: link-local,
 * metadata services, multicast, reserved, and IPv6 forms that embed an IPv4 address.
 * @throws `UserError` if a range is not a range of loopback or private addresses
 */
export const createAddressFilter = (allowedCidrs: string[]) => {
  const allowed = allowedCidrs.map(parseAllowedRange)

  /** @returns the kind of an allowed address, or undefined */
  const kindOf = (text: string): 'private' | 'public' | undefined => {
    if (!ipaddr.isValid(text)) return undefined
    const address = ipaddr.parse(text)
    if (metadataAddresses.has(address.toNormalizedString())) return undefined
    if (allowableRanges.some((range) => isInRange(address, range))) {
      return allowed.some((range) => isInRange(address, range)) ? 'private' : undefined
    }
    const isPublic = address.range() === 'unicast' && (address.kind() === 'ipv4' || isInRange(address, globalUnicast))
    return isPublic ? 'public' : undefined
  }
  return {
    /** Returns true if connections to an address are allowed. */
    isAllowed: (text: string): boolean => kindOf(text) !== undefined,
    /** Returns true if an address is allowed, and is loopback or private: connections to it do not leave networks that the operator named. */
    isAllowedPrivate: (text: string): boolean => kindOf(text) === 'private',
  }
}

const parseAllowedRange = (text: string): Range => {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`
  if (!ipaddr.isValidCIDR(range))
    throw new UserError(`RELAY_ALLOWED_PRIVATE_CIDRS: ${text} is not an address range. Example of a range: 10.1.0.0/16`)
  const [network, bits] = ipaddr.parseCIDR(range)
  if (!allowableRanges.some((outer) => isInRange(network, outer) && bits >= outer[1])) {
    throw new UserError(
      `RELAY_ALLOWED_PRIVATE_CIDRS: ${text} contains addresses that are neither loopback nor private. Public addresses need no entry.`,
    )
  }
  return [network, bits]
}

/** Returns true if one of the ranges contains an address. An IPv4 address may have the form of a mapped one, `::ffff:a.b.c.d`. */
export const isInAnyRange = (cidrs: readonly string[], address: string): boolean => {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return cidrs.some((cidr) => isInRange(parsed, ipaddr.parseCIDR(cidr)))
}

export const isLoopback = (address: string): boolean => ipaddr.process(address).range() === 'loopback'

/**
 * Returns the key by which clients are counted: for IPv6 the /64 network, which belongs to one customer, and IPv4 for a mapped address.
 */
export const sourceOf = (address: string): string => {
  // Most addresses, and each of them several times for a request.
  if (isIPv4(address)) return address
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6' ? parsed.toNormalizedString().split(':').slice(0, 4).join(':') : parsed.toString()
}
