import ipaddr from 'ipaddr.js'
import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import type { Config } from '../config/config.ts'
import type { Command } from './command.ts'
import type { ReceiverRequest } from './exchange.ts'
import { Refusal } from './refusal.ts'
import { checkSignature, type SignatureDeps } from './signature.ts'

/** @throws `Refusal` if the workspace restricts source addresses and this one is not allowed */
export const checkAddress = (allowedCidrs: string[], sourceIp: string): void => {
  if (allowedCidrs.length === 0) return
  // The address of an IPv4 client on an IPv6 listener has the form ::ffff:a.b.c.d.
  const address = ipaddr.isValid(sourceIp) ? ipaddr.process(sourceIp) : undefined
  const allowed = allowedCidrs.some((cidr) => {
    const [network, bits] = ipaddr.parseCIDR(cidr)
    return address?.kind() === network.kind() && address.match(network, bits)
  })
  if (!allowed) throw new Refusal('address_not_allowed', 'this workspace does not accept requests from your address')
}

export interface AccessDeps extends SignatureDeps {
  config: SignatureDeps['config'] & Pick<Config, 'RELAY_SIGNATURE_SCOPE'>
}

/** @throws `Refusal` if the command must not be executed on this repository */
export const checkAccess = async (
  repository: ReceivingRepository,
  command: Command,
  { sourceIp, signatureTime }: Pick<ReceiverRequest, 'sourceIp' | 'signatureTime'>,
  deps: AccessDeps,
): Promise<void> => {
  checkAddress(repository.workspace.settings.receiverAllowedCidrs, sourceIp)
  if (repository.status !== 'active') throw new Refusal('repository_inactive', 'the repository is inactive')
  // Without signature_verification, the repository ignores any secKey.
  const { access } = command.rule
  if (!repository.signatureVerification || !access) return
  if (await isUnprotected(repository.id, command, access, deps)) return
  await checkSignature(repository, command, access, signatureTime, deps)
}

/**
 * Returns true if the docProt of the document allows this access without a signature. A request with a secKey is judged by its signature
 * anyway. Creating always requires a signature, because the docProt of a new document is chosen by its sender.
 */
const isUnprotected = async (repositoryId: string, command: Command, access: string, { findDocProts, config }: AccessDeps) => {
  const docId = command.find('docId')
  if (config.RELAY_SIGNATURE_SCOPE === 'all' || access === 'c' || docId === undefined || command.find('secKey') !== undefined) return false
  const docProt = (await findDocProts(repositoryId, [docId])).get(docId)
  // A document without docProt is fully protected, and so is one that does not exist: the answer must not tell them apart.
  return typeof docProt === 'string' && !docProt.includes(access)
}
