import ipaddr from 'ipaddr.js'

/**
 * Returns the key by which clients are counted: for IPv6 the /64 network, which belongs to one customer, and IPv4 for a mapped address.
 */
export const sourceOf = (address: string): string => {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6' ? parsed.toNormalizedString().split(':').slice(0, 4).join(':') : parsed.toString()
}
