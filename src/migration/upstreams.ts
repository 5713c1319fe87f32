import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import { createTtlCache } from '../base/ttl-cache.ts'
import { unlessAborted } from '../base/unless-aborted.ts'
import { nameOf, type DocumentFacts, type MeasuredDocument } from '../content-server/answers.ts'
import { createContentServerClient, type ContentServerClient } from '../content-server/client.ts'
import { measureDocument } from '../content-server/measure.ts'
import { createRequestSigner } from '../content-server/sign.ts'
import type { Installation } from '../db/installation.ts'
import { hopsHeader } from '../domain/headers.ts'
import { loginOf, type StoredUpstream, type UpstreamSecrets } from '../domain/upstream.ts'
import type { Route } from '../security/dial.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import { SealError, upstreamSecretsOf, type KeyRing } from '../security/seal.ts'
import { toUpstreamFailure, UpstreamFailure } from './failure.ts'

/** A repository with what is needed to ask its upstream. */
export type UpstreamRepository = Pick<ReceivingRepository, 'id' | 'codePage' | 'upstreamSecretsSealed'> & {
  workspace: { id: string }
  upstream: StoredUpstream
}

export interface UpstreamsDeps {
  outbound: Pick<OutboundGuard, 'dispatcher'>
  keyRing: Pick<KeyRing, 'open'>
  installation: Installation
  limits?: Partial<typeof upstreamLimits>
}

// A person waits for the document, and the source system gives up after a minute or so.
export const upstreamLimits = {
  connectTimeoutMs: 5_000,
  /** Limit for the headers of an answer, and for the time between two pieces of its body. */
  idleTimeoutMs: 30_000,
}

// Number of repositories that one process serves at a time. A client holds a parsed key.
const maxClients = 1_000

/** What an upstream is asked. Failures are thrown as `UpstreamFailure`. */
export interface Asked {
  client: ContentServerClient
  /** @returns undefined if the upstream has no such document */
  describe(docId: string, signal?: AbortSignal): Promise<DocumentFacts | undefined>
  /** Asks for the sizes that the upstream has not told, and whether what it calls empty is empty. */
  measure(facts: DocumentFacts, signal?: AbortSignal): Promise<MeasuredDocument>
  /** Returns true if the upstream has a document and delivers its first bytes. */
  delivers(docId: string, signal?: AbortSignal): Promise<boolean>
}

// Bytes read of a document to show that the upstream delivers documents.
const sampleBytes = 1_024 * 1_024

export const createUpstreams = ({ outbound, keyRing, installation, limits }: UpstreamsDeps) => {
  const { connectTimeoutMs, idleTimeoutMs } = { ...upstreamLimits, ...limits }
  const known = createTtlCache<Asked>({ maxEntries: maxClients })

  const open = ({ id, codePage, workspace, upstream, upstreamSecretsSealed }: UpstreamRepository, installationId: string): Asked => {
    const { url, cont_rep: contRep, auth_id: authId, certificate, ca_certificate: caCertificate } = upstream
    const secrets = upstreamSecretsSealed ? openSecrets(keyRing, upstreamSecretsSealed, upstreamSecretsOf(workspace.id, id, upstream)) : {}
    const { private_key: privateKey } = secrets
    const isSigned = authId !== null && certificate !== null && privateKey !== undefined
    const signer = isSigned ? createRequestSigner({ authId, certificate, privateKey }) : undefined
    const route = routeOf(upstream, secrets)
    const client = createContentServerClient(
      { url, contRep, codePage, signer, caCertificate: caCertificate ?? undefined },
      // A relay whose upstream leads back to it refuses the request.
      {
        outbound: { dispatcher: (options) => outbound.dispatcher({ ...options, route }) },
        connectTimeoutMs,
        idleTimeoutMs,
        headers: { [hopsHeader]: installationId },
      },
    )
    return ask(client, contRep)
  }

  const ask = (client: ContentServerClient, contRep: string): Asked => {
    /** Checks that the upstream serves the repository now. */
    const requireServed = createShared(async () => {
      const outcome = await client.serverInfo()
      if (!outcome.ok) throw toUpstreamFailure(outcome.failure)
      const status = outcome.value.repository?.['contRepStatus']
      if (status !== 'running') {
        const problem = status === undefined ? 'does not serve' : `reports the status ${status} for`
        throw new UpstreamFailure(`upstream: the content server ${problem} the repository ${contRep}`)
      }
    })
    const describe: Asked['describe'] = async (docId, signal) => {
      const outcome = await client.info(docId, { signal })
      if (outcome.ok) return outcome.value
      if (outcome.failure.code !== 'not_found') throw toUpstreamFailure(outcome.failure)
      // A web server answers 404 as well, such as one whose content server is down, and a content server to a wrong name of the repository.
      await unlessAborted(requireServed, signal)
      return undefined
    }
    const measure: Asked['measure'] = async (facts, signal) => {
      const outcome = await measureDocument(client, facts, { signal })
      if (!outcome.ok) throw toUpstreamFailure(outcome.failure)
      return outcome.value
    }
    const delivers: Asked['delivers'] = async (docId, signal) => {
      const component = (await describe(docId, signal))?.components.find(({ sizeBytes }) => sizeBytes !== 0)
      if (!component) return false
      const outcome = await client.get(docId, { ...nameOf(component), signal })
      if (!outcome.ok) throw toUpstreamFailure(outcome.failure)
      let bytes = 0
      try {
        for await (const chunk of outcome.value.body as AsyncIterable<Buffer>) {
          bytes += chunk.length
          if (bytes >= sampleBytes) break
        }
      } catch (thrown) {
        throw toUpstreamFailure(thrown)
      }
      return bytes > 0
    }
    return { client, describe, measure, delivers }
  }

  return {
    /** @throws `UpstreamFailure` if the secrets cannot be opened */
    of: async (repository: UpstreamRepository): Promise<Asked> => {
      const key = JSON.stringify([
        repository.id,
        repository.codePage,
        repository.upstream,
        repository.upstreamSecretsSealed?.toString('base64'),
      ])
      const installationId = await installation.id()
      // Requests that arrive together get the same one.
      const found = known.get(key) ?? open(repository, installationId)
      known.set(key, found)
      return found
    },
  }
}

export type Upstreams = ReturnType<typeof createUpstreams>

/** Runs work once at a time. Calls that come while it runs share the next run: each gets the result of one that began after it. */
const createShared = (work: () => Promise<void>): (() => Promise<void>) => {
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  return () => {
    next ??= running
      .catch(() => {})
      .then(() => {
        running = next!
        next = undefined
        return work()
      })
    return next
  }
}

/** Returns how an upstream is reached, if the settings of the installation are not enough. @throws `UpstreamFailure` without the stored login */
const routeOf = ({ proxy_url: address, allowed_cidrs: cidrs }: StoredUpstream, secrets: UpstreamSecrets): Route | undefined => {
  if (!address && !cidrs) return undefined
  const proxyUrl = secrets.proxy_url ?? address ?? undefined
  if (proxyUrl !== undefined && loginOf(proxyUrl) === 'stored') {
    throw new UpstreamFailure('upstream: the user and the password of proxy_url are not stored: enter them again')
  }
  return { proxyUrl, allowedCidrs: cidrs ?? undefined }
}

const openSecrets = (keyRing: Pick<KeyRing, 'open'>, sealed: Buffer, owner: Parameters<KeyRing['open']>[1]): UpstreamSecrets => {
  try {
    return keyRing.open(sealed, owner) as UpstreamSecrets
  } catch (thrown) {
    if (!(thrown instanceof SealError)) throw thrown
    throw new UpstreamFailure('upstream: no key of RELAY_SECRET_KEYS opens the private key, or the password of the proxy', {
      cause: thrown,
    })
  }
}
