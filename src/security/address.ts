import ipaddr from 'ipaddr.js'
import { UserError } from '../errors.ts'

type Address = ReturnType<typeof ipaddr.parse>
type Range = [Address, number]

// What an allow-list may open: an operator's own networks. Everything else that is not public stays shut for good.
const allowable = ['127.0.0.0/8', '::1/128', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'].map(
  (text): Range => ipaddr.parseCIDR(text),
)

// The only IPv6 block that is handed out: what lies beyond it (the deprecated ::a.b.c.d form, say) is nobody's server.
const globalUnicast: Range = ipaddr.parseCIDR('2000::/3')

// Metadata services outside of link-local space: AWS and Google over IPv6, Scaleway, Alibaba, and Azure's host agent, whose address is a public one.
const metadata = new Set(
  ['fd00:ec2::254', 'fd20:ce::254', 'fd00:42::42', '100.100.100.200', '168.63.129.16'].map((text) =>
    ipaddr.parse(text).toNormalizedString(),
  ),
)

const within = (address: Address, [network, bits]: Range) => address.kind() === network.kind() && address.match(network, bits)

/**
 * Whether a connection to an address may be opened: public ones may, loopback and private ones by the allow-list, all others
 * (link-local, metadata, multicast, reserved, and the IPv6 forms that carry an IPv4 address inside) never.
 * @throws UserError for an entry that is no range of loopback or private addresses
 */
export const createAddressJudge = (allowedCidrs: string[]) => {
  const allowed = allowedCidrs.map(parseAllowed)

  return (text: string): boolean => {
    if (!ipaddr.isValid(text)) return false
    const address = ipaddr.parse(text)
    if (metadata.has(address.toNormalizedString())) return false
    if (allowable.some((range) => within(address, range))) return allowed.some((range) => within(address, range))
    return address.range() === 'unicast' && (address.kind() === 'ipv4' || within(address, globalUnicast))
  }
}

const parseAllowed = (text: string): Range => {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`
  if (!ipaddr.isValidCIDR(range)) throw new UserError(`RELAY_ALLOWED_PRIVATE_CIDRS: ${text} is no address range like 10.1.0.0/16`)
  const [network, bits] = ipaddr.parseCIDR(range)
  if (!allowable.some((outer) => within(network, outer) && bits >= outer[1])) {
    throw new UserError(`RELAY_ALLOWED_PRIVATE_CIDRS: ${text} is not wholly loopback or private; public addresses need no entry`)
  }
  return [network, bits]
}
