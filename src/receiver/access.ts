import ipaddr from 'ipaddr.js'
import type { Source } from '../db/sources.ts'
import type { Command } from './command.ts'
import { Refusal } from './refusal.ts'

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
export const checkAccess = ({ workspace, repository }: Source, command: Command, sourceIp: string): void => {
  checkAddress(workspace.settings.receiverAllowedCidrs, sourceIp)
  if (repository.status !== 'active') throw new Refusal('repository_inactive', 'the repository is switched off')
  if (!repository.signatureVerification) return
  // what cannot be verified is never let through
  if (!command.find('secKey')) throw new Refusal('signature_missing', 'the repository takes signed requests only')
  throw new Refusal('signature_invalid', 'verification of signatures is not available in this version; switch it off for this repository')
}
