import type { z } from 'zod'
import type { Config } from '../config.ts'
import { DeliveryError, type AttemptContext, type Connector, type Target } from '../connectors/connector.ts'
import { withoutSecrets } from '../connectors/http-answer.ts'
import { secretsIn } from '../connectors/secrets.ts'
import { connectorTypes, type ConnectorType } from '../domain/connector-type.ts'
import { messageOf } from '../errors.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import { detailsOf, validationFailed } from './faults.ts'

export type OpenObject = Record<string, unknown>

export type FindConnector = (kind: ConnectorType) => Connector | undefined

export interface ProbeDeps {
  outbound: OutboundGuard
  config: Pick<Config, 'RELAY_PROBE_TIMEOUT_MS' | 'DELIVERY_CONNECT_TIMEOUT_MS' | 'DELIVERY_IDLE_TIMEOUT_MS' | 'DELIVERY_ANSWER_MAX_BYTES'>
}

const isConnectorType = (text: string): text is ConnectorType => (connectorTypes as readonly string[]).includes(text)

/** @throws AppError 422 where the type is unknown, or known but not served by this installation */
export const connectorOf = (findConnector: FindConnector, type: string): Connector => {
  if (!isConnectorType(type)) {
    throw validationFailed([{ path: 'connector_type', message: `must be one of ${connectorTypes.join(', ')}` }])
  }
  const connector = findConnector(type)
  if (!connector) throw validationFailed([{ path: 'connector_type', message: `this installation has no connector of type ${type}` }])
  return connector
}

const faultsIn = (schema: z.ZodType, value: unknown, at: string) => {
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : detailsOf(parsed.error.issues, [at])
}

/** Holds config and credentials, those that are given, against what the connector takes. @throws AppError 422 */
export const checkTarget = (connector: Connector, { config, credentials }: { config?: unknown; credentials?: unknown }): void => {
  const faults = [
    ...(config === undefined ? [] : faultsIn(connector.config, config, 'config')),
    ...(credentials === undefined ? [] : faultsIn(connector.credentials, credentials, 'credentials')),
  ]
  if (faults.length > 0) throw validationFailed(faults)
}

/** A merge as JSON Merge Patch (RFC 7396) has it, one level deep: null removes a key. */
export const mergeConfig = (current: OpenObject, patch: OpenObject): OpenObject =>
  Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([, value]) => value !== null))

const abortion = (signal: AbortSignal, timeoutMs: number) =>
  new Promise<never>((_, reject) => {
    const fail = () => reject(new DeliveryError('probe_timeout', `the test took longer than ${timeoutMs} ms`))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })

export interface TestResult {
  status: 'success' | 'failed'
  message: string
}

/** Tries a target out. What goes wrong there is a result, in words for the operator. */
export const testTarget = async (
  { outbound, config }: ProbeDeps,
  connector: Connector,
  target: Target<unknown, unknown>,
  hangUp: AbortSignal,
): Promise<TestResult> => {
  const timeoutMs = config.RELAY_PROBE_TIMEOUT_MS
  const signal = AbortSignal.any([hangUp, AbortSignal.timeout(timeoutMs)])
  const context: AttemptContext = {
    signal,
    onProgress: () => {},
    outbound,
    connectTimeoutMs: config.DELIVERY_CONNECT_TIMEOUT_MS,
    idleTimeoutMs: config.DELIVERY_IDLE_TIMEOUT_MS,
    answerMaxBytes: config.DELIVERY_ANSWER_MAX_BYTES,
    saved: undefined,
    save: () => {},
  }
  const parsed = { config: connector.config.parse(target.config), credentials: connector.credentials.parse(target.credentials) }
  try {
    await Promise.race([connector.probe(parsed, context), abortion(signal, timeoutMs)])
    return { status: 'success', message: 'The target took a test object; nothing was left behind.' }
  } catch (thrown) {
    // a target may quote what it was sent
    return { status: 'failed', message: withoutSecrets(messageOf(thrown), secretsIn(connector.credentials, parsed.credentials)) }
  }
}
