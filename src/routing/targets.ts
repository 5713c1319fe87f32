import type { z } from 'zod'
import { messageOf } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { detailsOf, validationFailed } from '../base/refusals.ts'
import { withoutSecrets } from '../base/secrets.ts'
import { plainText } from '../base/text.ts'
import { DeliveryError, type AttemptContext, type Connector, type FindConnector, type Target } from '../connectors/connector.ts'
import { connectorTypes } from '../connectors/index.ts'
import { secretsIn } from '../connectors/shared/errors.ts'
import { contextOf, unencryptedAddress, type AttemptDeps } from '../connectors/target.ts'

export type OpenObject = Record<string, unknown>

// A person waits for the result of a test.
const probeMaxMs = 30_000

export interface ProbeDeps extends AttemptDeps {
  probeTimeoutMs?: number
}

/** Finds the connector of a type. @throws AppError 422 if the type is unknown or not available in this installation */
export const connectorOf = (findConnector: FindConnector, type: string): Connector => {
  if (!connectorTypes.includes(type)) {
    throw validationFailed([{ path: 'connector_type', message: `must be one of ${connectorTypes.join(', ')}` }])
  }
  const connector = findConnector(type)
  if (!connector) throw validationFailed([{ path: 'connector_type', message: `${type} is not available in this installation` }])
  return connector
}

const issuesOf = (schema: z.ZodType, value: unknown, path: string) => {
  const parsed = schema.safeParse(value, plainMessages)
  return parsed.success ? [] : detailsOf(parsed.error.issues, [path])
}

/**
 * Validates config and credentials, if present, against the schemas of the connector and what the operator allows to the workspace.
 * @param workspace `{userSlug}/{workspaceSlug}`
 * @throws AppError 422
 */
export const checkTarget = (
  connector: Connector,
  { config, credentials }: { config?: unknown; credentials?: unknown },
  workspace: string,
): void => {
  const issues = [
    ...(config === undefined ? [] : issuesOf(connector.config, config, 'config')),
    ...(credentials === undefined ? [] : issuesOf(connector.credentials, credentials, 'credentials')),
  ]
  if (issues.length === 0) issues.push(...(connector.notAllowed?.({ config, credentials }, workspace) ?? []))
  if (issues.length > 0) throw validationFailed(issues)
}

/**
 * Refuses a target that would get its credentials unencrypted outside of the private networks that the operator allows. A delivery checks
 * that again, for the address to which it connects.
 * @throws AppError 422
 */
export const requireEncryption = async (
  { outbound, config }: Pick<ProbeDeps, 'outbound' | 'config'>,
  connector: Connector,
  target: { config: OpenObject; credentials: OpenObject },
): Promise<void> => {
  const unencrypted = unencryptedAddress(connector, target)
  if (unencrypted) await requirePrivate({ outbound, config }, unencrypted.host, `config.${unencrypted.key}`)
}

/** Refuses a system that would get the credentials of the bridge unencrypted outside of these networks. @throws AppError 422 */
export const requireEncryptedBridge = async (deps: Pick<ProbeDeps, 'outbound' | 'config'>, url: string | undefined): Promise<void> => {
  if (url === undefined || new URL(url).protocol !== 'http:') return
  await requirePrivate(deps, hostOf(url), 'rfc.url')
}

/** Refuses a system of an enrichment that would get credentials unencrypted outside of these networks. @throws AppError 422 */
export const requireEncryptedHttp = async (deps: Pick<ProbeDeps, 'outbound' | 'config'>, url: string): Promise<void> => {
  if (new URL(url).protocol === 'http:') await requirePrivate(deps, hostOf(url), 'http.url')
}

const hostOf = (url: string) => new URL(url).hostname.replace(/^\[|\]$/g, '')

const requirePrivate = async ({ outbound, config }: Pick<ProbeDeps, 'outbound' | 'config'>, host: string, path: string): Promise<void> => {
  if (await outbound.isAllowedPrivate(host, config.DELIVERY_CONNECT_TIMEOUT_MS)) return
  const message =
    'would send the credentials unencrypted: use TLS. Without it, they may be sent to loopback and private addresses only that the operator ' +
    'of this relay allows (RELAY_ALLOWED_PRIVATE_CIDRS)'
  throw validationFailed([{ path, message }])
}

/** Merges a patch into a config as in JSON Merge Patch (RFC 7396), one level deep: null removes a key. */
export const mergeConfig = (current: OpenObject, patch: OpenObject): OpenObject =>
  Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([, value]) => value !== null))

const rejectOnAbort = (signal: AbortSignal, timeoutMs: number) =>
  new Promise<never>((_, reject) => {
    const fail = () => reject(new DeliveryError('probe_timeout', `the test took longer than ${timeoutMs / 1_000} s`))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })

export interface TestResult {
  status: 'success' | 'failed'
  message: string
  /** Code of a `DeliveryError`. */
  errorCode?: string
  /** Values for the config of a stored destination, see `AttemptContext`. */
  pinned?: Record<string, string>
}

/** What a test does at a target. It returns a sentence that says what has succeeded. */
export type Try = (connector: Connector, target: Target<unknown, unknown>, context: AttemptContext) => Promise<string>

const probe: Try = (connector, target, context) => connector.probe(target, context)

/**
 * Tests whether the relay can write to a target.
 * @param attempt what to do at the target instead of its probe
 * @returns `failed` with a message for the operator if it cannot
 */
export const testTarget = async (
  { probeTimeoutMs: timeoutMs = probeMaxMs, ...deps }: ProbeDeps,
  connector: Connector,
  target: Target<unknown, unknown>,
  { workspace, disconnected }: { workspace: string; disconnected: AbortSignal },
  attempt: Try = probe,
): Promise<TestResult> => {
  const signal = AbortSignal.any([disconnected, AbortSignal.timeout(timeoutMs)])
  const pinned: Record<string, string> = {}
  const installationId = await deps.installation.id()
  const context = contextOf(deps, connector, target, { signal, installationId, workspace, pin: (values) => Object.assign(pinned, values) })
  const parsed = { config: connector.config.parse(target.config), credentials: connector.credentials.parse(target.credentials) }
  try {
    const message = await Promise.race([attempt(connector, parsed, context), rejectOnAbort(signal, timeoutMs)])
    return { status: 'success', message: plainText(message), pinned }
  } catch (thrown) {
    // A target may quote the credentials in its error message.
    const message = plainText(withoutSecrets(messageOf(thrown), secretsIn(connector.credentials, parsed.credentials)))
    return { status: 'failed', message, ...(thrown instanceof DeliveryError && { errorCode: thrown.code }) }
  }
}
