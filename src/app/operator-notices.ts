import { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import { logFailure } from '../base/failure-log.ts'
import { reference } from '../config/references.ts'
import { callTarget } from '../connectors/call-target.ts'
import { DeliveryError, type NoticeMessage } from '../connectors/connector.ts'
import { parseTarget } from '../connectors/target.ts'
import { createInstallation } from '../db/installation.ts'
import { createStallCheck } from '../notifications/stalled.ts'
import type { RelayWatch } from '../observe/relay-watch.ts'
import type { Runtime } from './runtime.ts'

/** The file of RELAY_NOTICES_FILE: a destination as in the file of `relay apply`, to which the relay tells its operator what concerns the whole installation. */
const noticesFile = z.strictObject({
  connector_type: z.string(),
  config: z.record(z.string(), z.unknown()),
  credentials: z.record(z.string(), reference).default({}),
})

const variable = 'RELAY_NOTICES_FILE'
const intervalMs = 30_000
const attemptTimeoutMs = 30_000

type Deps = Pick<Runtime, 'db' | 'config' | 'log' | 'outbound' | 'findConnector' | 'onClose'>

/** @throws `UserError` that says what is wrong with the file, without a secret */
const readDestination = async (path: string, { findConnector }: Pick<Deps, 'findConnector'>, variables: NodeJS.ProcessEnv) => {
  // Only an installation with this file needs a parser of YAML.
  const { readReferencesOf, readSettingsFile } = await import('./settings-file.ts')
  const { content, refuse, folder } = await readSettingsFile(variable, path, noticesFile)
  const connector = findConnector(content.connector_type)
  if (!connector?.sendNotice)
    throw refuse(`is invalid: connector_type must be a kind of destination that takes notices, such as email or webhook`)
  const credentials = await readReferencesOf(content.credentials, { folder, variables, refuse })
  const parsed = parseTarget(connector, { config: content.config, credentials })
  if ('issues' in parsed) throw refuse(`is invalid: ${parsed.issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ')}`)
  return { connector: content.connector_type, config: content.config, credentials }
}

type TargetDeps = Omit<Deps, 'log' | 'onClose'>

/** Returns what calls the destination of the operator, and its config. */
const openTarget = async (path: string, deps: TargetDeps, variables: NodeJS.ProcessEnv) => {
  const { credentials, ...destination } = await readDestination(path, deps, variables)
  const installation = createInstallation(deps.db)
  // It belongs to no workspace.
  const stored = { workspaceId: '', workspace: '', destination: { id: 'operator', ...destination }, credentialsSealed: Buffer.alloc(0) }
  const callDeps = { ...deps, installation, openCredentials: () => credentials }
  const call = <Result>(cancelled: AbortSignal, act: Parameters<typeof callTarget<Result>>[3]) =>
    callTarget(callDeps, stored, { timeoutMs: attemptTimeoutMs, cancelled }, act)
  return { call, config: destination.config }
}

/** Returns what sends a notice to the destination of the operator. */
export const openOperatorTarget = async (path: string, deps: TargetDeps, variables: NodeJS.ProcessEnv = process.env) => {
  const { call } = await openTarget(path, deps, variables)
  return (message: NoticeMessage, cancelled: AbortSignal): Promise<DeliveryError | undefined> =>
    call(cancelled, async (connector, target, context) => {
      await connector.sendNotice!(message, target, context)
      return undefined
    })
}

/**
 * Tests the destination of the operator as any other one. A chat has no request that its readers would not see: of it, only the file is checked.
 * @returns what was found out, or why notices cannot be sent
 * @throws `UserError` if the file is invalid
 */
export const testOperatorTarget = async (
  path: string,
  deps: TargetDeps,
  variables: NodeJS.ProcessEnv = process.env,
): Promise<string | DeliveryError> => {
  const { call, config } = await openTarget(path, deps, variables)
  const { notice_format: form = 'standard_webhooks' } = config
  if (form !== 'standard_webhooks') return 'the file is valid. The chat was not asked, because every test is a message for its readers'
  return call(new AbortController().signal, (connector, target, context) => connector.probe(target, context))
}

/**
 * Tells the operator from now on when deliveries stop, if RELAY_NOTICES_FILE is set.
 * @throws `UserError` if the file is invalid
 */
export const openStallNotices = async (deps: Deps, relayWatch: Pick<RelayWatch, 'read'>): Promise<void> => {
  const { db, config, log, onClose } = deps
  if (config.RELAY_NOTICES_FILE === undefined) return
  const sendTo = await openOperatorTarget(config.RELAY_NOTICES_FILE, deps)
  const closed = new AbortController()
  const send = async (message: NoticeMessage) => {
    try {
      return await sendTo(message, closed.signal)
    } catch (thrown) {
      if (thrown instanceof UserError || closed.signal.aborted) throw thrown
      return new DeliveryError('unexpected', messageOf(thrown), { cause: thrown })
    }
  }
  const check = createStallCheck({ db, relayWatch, installation: createInstallation(db), send, config, log })
  let running = Promise.resolve()
  let isRunning = false
  const timer = setInterval(() => {
    if (isRunning) return
    isRunning = true
    running = check()
      .catch((thrown: unknown) => {
        if (!closed.signal.aborted) logFailure(log, thrown, 'failed to check if deliveries are made, the next check tries again')
      })
      .finally(() => {
        isRunning = false
      })
  }, intervalMs)
  onClose(async () => {
    clearInterval(timer)
    closed.abort()
    await running
  })
}
