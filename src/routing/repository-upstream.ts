import { isDeepStrictEqual } from 'node:util'
import { validationFailed } from '../base/refusals.ts'
import { toSnakeCase } from '../domain/casing.ts'
import { loginOf, proxyAddressOf, upstreamFields, type StoredUpstream, type Upstream, type UpstreamSecrets } from '../domain/upstream.ts'
import { upstreamLimits } from '../migration/upstreams.ts'
import { signingKeyIssue } from '../security/cms-sign.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import { openOrUndefined, upstreamSecretsOf, type KeyRing } from '../security/seal.ts'

/** The upstream of a repository as people enter it. */
export type UpstreamInput = Upstream & {
  /** The private key in PEM. If absent, the stored one is kept, if it is still for the same address and certificate. */
  privateKey?: string | undefined
}

/** The upstream of a repository as it is stored. */
export interface SealedUpstream {
  upstream: Upstream | null
  upstreamSecretsSealed: Buffer | null
}

/** What is needed to store an upstream. */
export interface UpstreamDeps {
  keyRing: KeyRing
  outbound: Pick<OutboundGuard, 'refusalOfProxy'>
}

/** Returns an upstream as the column `repositories.upstream` has it. */
export const storedUpstream = (upstream: Upstream | null): StoredUpstream | null =>
  upstream && (toSnakeCase(upstreamFields, upstream) as StoredUpstream)

const refuse = (field: string, message: string) => validationFailed([{ path: `upstream.${field}`, message }])

/** Returns true if the secrets may go on being used: for the same repository of the same address, reached and trusted in the same way, in the same name. */
const isSameTarget = (one: Upstream | null, other: Upstream): boolean =>
  one?.url === other.url &&
  one.contRep === other.contRep &&
  one.authId === other.authId &&
  one.certificate === other.certificate &&
  one.caCertificate === other.caCertificate &&
  one.proxyUrl === other.proxyUrl

/** Returns true if a change sets another upstream than the stored one, or secrets of it. */
export const changesUpstream = (current: Upstream | null, change: UpstreamInput | null): boolean => {
  if (current === null || change === null) return current !== change
  const { privateKey, ...others } = change
  return privateKey !== undefined || !isDeepStrictEqual(others, current)
}

/** Refuses a proxy if it is known, without asking it, that the relay would not use it. @throws AppError 422 */
export const requireUsableProxy = async (
  { outbound }: Pick<UpstreamDeps, 'outbound'>,
  upstream: UpstreamInput | null | undefined,
): Promise<void> => {
  if (!upstream?.proxyUrl) return
  const target = new URL(upstream.url).hostname.replace(/^\[|\]$/g, '')
  const refusal = await outbound.refusalOfProxy(upstream.proxyUrl, target, upstreamLimits.connectTimeoutMs)
  if (refusal !== undefined) throw refuse('proxy_url', refusal)
}

/**
 * Returns what to store of an upstream.
 * @param owner of the sealed secrets
 * @param current what is stored; a new repository has none
 * @throws AppError 422 if requests cannot be signed with the certificate, or the stored secrets would be used for another address
 */
export const sealUpstream = (
  keyRing: KeyRing,
  { workspaceId, repositoryId }: { workspaceId: string; repositoryId: string },
  current: SealedUpstream,
  input: UpstreamInput | null,
): SealedUpstream => {
  if (input === null) return { upstream: null, upstreamSecretsSealed: null }
  const { privateKey, proxyUrl, ...others } = input
  const upstream = { ...others, proxyUrl: proxyUrl && proxyAddressOf(proxyUrl) }
  const { certificate, authId } = upstream
  if (certificate === null) {
    if (authId !== null) throw refuse('certificate', 'required, because auth_id is given')
    if (privateKey !== undefined) throw refuse('certificate', 'required, because private_key is given')
  } else if (authId === null) throw refuse('auth_id', 'required, because certificate is given')

  const isSame = isSameTarget(current.upstream, upstream)
  const hasNewLogin = proxyUrl !== null && loginOf(proxyUrl) === 'given'
  // Also if no key opens them.
  if (isSame && privateKey === undefined && !hasNewLogin) return { upstream, upstreamSecretsSealed: current.upstreamSecretsSealed }

  const stored = openUpstreamSecrets(keyRing, workspaceId, { id: repositoryId, ...current })
  const key = privateKey ?? (isSame ? stored.private_key : undefined)
  if (certificate !== null && key === undefined) {
    throw refuse('private_key', 'required with a new certificate, auth_id, cont_rep, url, ca_certificate or proxy_url')
  }
  if (certificate !== null && privateKey !== undefined) {
    const issue = signingKeyIssue({ certificate, privateKey })
    if (issue !== undefined) throw refuse(issue.includes('private key') ? 'private_key' : 'certificate', `cannot be used: ${issue}`)
  }
  const secrets: UpstreamSecrets = {
    ...(key !== undefined && { private_key: key }),
    ...loginOfProxy(proxyUrl, current.upstream?.proxyUrl === upstream.proxyUrl ? stored : {}),
  }
  // The same secrets are sealed differently each time, and would look like others.
  if (isSame && isDeepStrictEqual(secrets, stored)) return { upstream, upstreamSecretsSealed: current.upstreamSecretsSealed }
  const owner = upstreamSecretsOf(workspaceId, repositoryId, storedUpstream(upstream)!)
  return { upstream, upstreamSecretsSealed: Object.keys(secrets).length === 0 ? null : keyRing.seal(secrets, owner) }
}

/** @param stored the secrets that are stored for the same proxy @throws AppError 422 if they have no login, and it is meant */
const loginOfProxy = (proxyUrl: string | null, stored: UpstreamSecrets): Pick<UpstreamSecrets, 'proxy_url'> => {
  const login = proxyUrl === null ? 'none' : loginOf(proxyUrl)
  if (login === 'none') return {}
  if (login === 'given') return { proxy_url: new URL(proxyUrl!).href }
  if (stored.proxy_url === undefined)
    throw refuse('proxy_url', '*** stands for the user and the password that are stored for this proxy: enter them')
  return { proxy_url: stored.proxy_url }
}

/** Opens the secrets of an upstream. @returns nothing if there are none, or no key opens them */
export const openUpstreamSecrets = (
  keyRing: KeyRing,
  workspaceId: string,
  { id, upstream, upstreamSecretsSealed }: SealedUpstream & { id: string },
): UpstreamSecrets => {
  if (!upstream || !upstreamSecretsSealed) return {}
  const owner = upstreamSecretsOf(workspaceId, id, storedUpstream(upstream)!)
  return (openOrUndefined(keyRing, upstreamSecretsSealed, owner) as UpstreamSecrets | undefined) ?? {}
}
