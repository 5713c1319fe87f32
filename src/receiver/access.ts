import ipaddr from 'ipaddr.js'
import type { Source } from '../db/sources.ts'
import type { Command } from './command.ts'
import type { Incoming } from './incoming.ts'
import { Refusal } from './refusal.ts'
import { checkSignature, type SignatureDeps } from './signature.ts'

/** @throws Refusal where the workspace names the addresses it is sent to from, and this is none of them */
export const checkAddress = (allowedCidrs: string[], sourceIp: string): void => {
  if (allowedCidrs.length === 0) return
  // an IPv4 client of an IPv6 listener comes as ::ffff:a.b.c.d
  const address = ipaddr.isValid(sourceIp) ? ipaddr.process(sourceIp) : undefined
  const allowed = allowedCidrs.some((cidr) => {
    const [network, bits] = ipaddr.parseCIDR(cidr)
    return address?.kind() === network.kind() && address.match(network, bits)
  })
  if (!allowed) throw new Refusal('address_not_allowed', 'this workspace does not take requests from your address')
}

/** @throws Refusal where this command may not be carried out on this repository, whatever it says */
export const checkAccess = async (
  source: Source,
  command: Command,
  { sourceIp, judgedAt }: Pick<Incoming, 'sourceIp' | 'judgedAt'>,
  deps: SignatureDeps,
): Promise<void> => {
  checkAddress(source.workspace.settings.receiverAllowedCidrs, sourceIp)
  if (source.repository.status !== 'active') throw new Refusal('repository_inactive', 'the repository is switched off')
  // what a source system may not do unsigned is the repository's decision: its flag off, a secKey is not even looked at
  const { access } = command.rule
  if (source.repository.signatureVerification && access) await checkSignature(source.repository.id, command, access, judgedAt, deps)
}
