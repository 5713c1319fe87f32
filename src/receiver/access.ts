import ipaddr from 'ipaddr.js'
import type { Config } from '../config.ts'
import type { ArchiveDocuments } from '../db/archive-documents.ts'
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

export interface AccessDeps extends SignatureDeps {
  findDocProt: ArchiveDocuments['findDocProt']
  config: SignatureDeps['config'] & Pick<Config, 'RELAY_SIGNATURE_SCOPE'>
}

/** @throws Refusal where this command may not be carried out on this repository, whatever it says */
export const checkAccess = async (
  source: Source,
  command: Command,
  { sourceIp, judgedAt }: Pick<Incoming, 'sourceIp' | 'judgedAt'>,
  deps: AccessDeps,
): Promise<void> => {
  checkAddress(source.workspace.settings.receiverAllowedCidrs, sourceIp)
  if (source.repository.status !== 'active') throw new Refusal('repository_inactive', 'the repository is switched off')
  // what a source system may not do unsigned is the repository's decision: its flag off, a secKey is not even looked at
  const { access } = command.rule
  if (!source.repository.signatureVerification || !access) return
  if (await isUnprotected(source.repository.id, command, access, deps)) return
  await checkSignature(source.repository.id, command, access, judgedAt, deps)
}

/**
 * Whether the document itself, by its docProt, lets this access go unsigned. Whoever signs is judged by the signature all the same, and
 * creating always needs one: the docProt of a document that is yet to come is a word of its sender.
 */
const isUnprotected = async (repositoryId: string, command: Command, access: string, { findDocProt, config }: AccessDeps) => {
  const docId = command.find('docId')
  if (config.RELAY_SIGNATURE_SCOPE === 'all' || access === 'c' || docId === undefined || command.find('secKey') !== undefined) return false
  const docProt = await findDocProt(repositoryId, docId)
  // not said, or no such document: protected in every way, and nobody learns which of the two it is
  return typeof docProt === 'string' && !docProt.includes(access)
}
