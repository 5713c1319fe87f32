import { validationFailed } from '../base/refusals.ts'
import { toSnakeCase } from '../domain/casing.ts'
import { upstreamFields, type StoredUpstream, type Upstream } from '../domain/upstream.ts'
import { signingKeyIssue } from '../security/cms-sign.ts'
import { upstreamKeyOf, type KeyRing } from '../security/seal.ts'
import { openOrUndefined } from './stored-credentials.ts'

/** The upstream of a repository as people enter it. */
export type UpstreamInput = Upstream & {
  /** In PEM. Without it, the stored one is kept, if it is still for the same address and certificate. */
  privateKey?: string | undefined
}

/** The upstream of a repository as it is stored. */
export interface SealedUpstream {
  upstream: Upstream | null
  upstreamKeySealed: Buffer | null
}

/** Returns an upstream as the column `repositories.upstream` has it. */
export const storedUpstream = (upstream: Upstream | null): StoredUpstream | null =>
  upstream && (toSnakeCase(upstreamFields, upstream) as StoredUpstream)

const refuse = (field: string, message: string) => validationFailed([{ path: `upstream.${field}`, message }])

/** Returns true if the key may go on signing: for the same address, which is trusted in the same way, with the same certificate. */
const isSameTarget = (one: Upstream | null, other: Upstream): boolean =>
  one?.url === other.url && one.certificate === other.certificate && one.caCertificate === other.caCertificate

/**
 * Returns what to store of an upstream.
 * @param owner of the sealed key
 * @param current what is stored; a new repository has none
 * @throws AppError 422 if requests cannot be signed with the certificate, or the stored key would sign for another address
 */
export const sealUpstream = (
  keyRing: KeyRing,
  owner: { workspaceId: string; repositoryId: string },
  current: SealedUpstream,
  input: UpstreamInput | null,
): SealedUpstream => {
  if (input === null) return { upstream: null, upstreamKeySealed: null }
  const { privateKey, ...upstream } = input
  const { certificate, authId } = upstream
  if (certificate === null) {
    if (authId !== null) throw refuse('certificate', 'required, because auth_id is given')
    if (privateKey !== undefined) throw refuse('certificate', 'required, because private_key is given')
    return { upstream, upstreamKeySealed: null }
  }
  if (authId === null) throw refuse('auth_id', 'required, because certificate is given')
  const { workspaceId, repositoryId } = owner
  const { upstreamKeySealed } = current
  const isKept = upstreamKeySealed !== null && isSameTarget(current.upstream, upstream)
  // The same key is sealed differently each time, and would look like another one.
  if (isKept && [undefined, openUpstreamKey(keyRing, workspaceId, { id: repositoryId, ...current })].includes(privateKey)) {
    return { upstream, upstreamKeySealed }
  }
  if (privateKey === undefined) {
    throw refuse('private_key', 'required with a new certificate, url or ca_certificate')
  }
  const issue = signingKeyIssue({ certificate, privateKey })
  if (issue !== undefined) throw refuse(issue.includes('private key') ? 'private_key' : 'certificate', `cannot be used: ${issue}`)
  return { upstream, upstreamKeySealed: keyRing.seal(privateKey, upstreamKeyOf(workspaceId, repositoryId, storedUpstream(upstream)!)) }
}

/** Opens the private key of an upstream. @returns undefined if there is none, or no key opens it */
export const openUpstreamKey = (
  keyRing: KeyRing,
  workspaceId: string,
  { id, upstream, upstreamKeySealed }: SealedUpstream & { id: string },
): string | undefined =>
  upstream && upstreamKeySealed
    ? (openOrUndefined(keyRing, upstreamKeySealed, upstreamKeyOf(workspaceId, id, storedUpstream(upstream)!)) as string | undefined)
    : undefined
