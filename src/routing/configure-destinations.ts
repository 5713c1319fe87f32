import { newId } from '../base/ids.ts'
import type { FindConnector, NoticeMessage } from '../connectors/connector.ts'
import { credentialsOwner } from '../connectors/target.ts'
import type { AuditActor } from '../db/audit.ts'
import { SealError, type KeyRing } from '../security/seal.ts'
import { changedNames, type Destinations, type Destination } from './destinations.ts'
import type { PinConfig } from './pin-config.ts'
import { factsOf, replacementOf, resealCredentials, storedCredentialsFor } from './stored-credentials.ts'
import {
  checkTarget,
  connectorOf,
  mergeConfig,
  requireEncryption,
  testTarget,
  type OpenObject,
  type ProbeDeps,
  type TestResult,
  type Try,
} from './targets.ts'

export interface NewTarget {
  connectorType: string
  config: OpenObject
  credentials: OpenObject
}

/** A change of a destination. `config` is merged into the current config. */
export interface TargetChange {
  config?: OpenObject | undefined
  credentials?: OpenObject | undefined
}

export type ConfigureDeps = Pick<ProbeDeps, 'outbound' | 'config'> & {
  destinations: Destinations
  keyRing: KeyRing
  findConnector: FindConnector
}

/** @throws AppError 422 if the target is invalid, or would get its credentials unencrypted */
const checkNew = async (deps: ConfigureDeps, target: NewTarget, workspace: string) => {
  const connector = connectorOf(deps.findConnector, target.connectorType)
  checkTarget(connector, target, workspace)
  await requireEncryption(deps, connector, target)
  return connector
}

/** Creates the use cases that write destinations: the checks, the sealing of credentials, and the change. */
export const createConfigureDestinations = (deps: ConfigureDeps) => {
  const { destinations, keyRing, findConnector } = deps
  /** Adds a destination whose target has been checked, in a transaction for example: the check resolves a host name. */
  const addChecked = (workspaceId: string, { name, ...target }: NewTarget & { name: string }, actor: AuditActor) => {
    const { connectorType, config, credentials } = target
    const id = newId()
    const connector = connectorOf(findConnector, connectorType)
    const sealed = {
      credentialsSealed: keyRing.seal(credentials, credentialsOwner(connector, { workspaceId, id, config })),
      ...factsOf(connector, credentials),
    }
    return destinations.insert(workspaceId, { id, name, connectorType, config, ...sealed }, actor)
  }
  const replacement = (workspaceId: string, current: Destination, stored: unknown, wanted: NewTarget) =>
    replacementOf(keyRing, connectorOf(findConnector, wanted.connectorType), { ...current, workspaceId }, stored, wanted)
  return {
    addChecked,

    /** @throws AppError 422 */
    add: async (workspaceId: string, destination: NewTarget & { name: string }, actor: AuditActor) => {
      await checkNew(deps, destination, await destinations.workspaceName(workspaceId))
      return addChecked(workspaceId, destination, actor)
    },

    /**
     * Changes a destination. Stored credentials are kept if the change does not alter where they are sent.
     * @param check throws if the destination must not be changed as it is
     * @throws AppError 404 or 422
     */
    change: async (
      workspaceId: string,
      id: string,
      { name, config: patch, credentials }: TargetChange & { name?: string | undefined },
      actor: AuditActor,
      check: (current: Destination) => void,
    ) => {
      // Before the row is locked, because it resolves a host name.
      if (credentials) {
        const current = await destinations.find(workspaceId, id)
        const config = mergeConfig(current.config, patch ?? {})
        await requireEncryption(deps, connectorOf(findConnector, current.connectorType), { config, credentials })
      }
      const workspace = await destinations.workspaceName(workspaceId)
      const changeOf = (current: Destination) => {
        check(current)
        const connector = connectorOf(findConnector, current.connectorType)
        const config = patch && mergeConfig(current.config, patch)
        checkTarget(connector, { config, credentials }, workspace)
        return { name, config, credentials: resealCredentials(keyRing, connector, { ...current, workspaceId }, { config, credentials }) }
      }
      return destinations.update(workspaceId, id, changeOf, actor)
    },

    /** Returns the names of the values that `replace` would change. */
    compare: (workspaceId: string, current: Destination, stored: unknown, wanted: NewTarget) =>
      changedNames(current, replacement(workspaceId, current, stored, wanted)),

    /** Gives a destination a target that has been checked, as a whole. @param stored its current credentials */
    replace: (workspaceId: string, id: string, stored: unknown, wanted: NewTarget, actor: AuditActor) =>
      destinations.update(workspaceId, id, (locked) => replacement(workspaceId, locked, stored, wanted), actor),
  }
}

export type TestDeps = ConfigureDeps & ProbeDeps & { pinConfig: PinConfig }

const undecryptable = (why = ''): TestResult => ({
  status: 'failed',
  message: `The stored credentials cannot be decrypted${why}. Save the credentials again.`,
})

/** Creates the use cases that test whether the relay can write to the target of a destination. */
export const createTestDestinations = (deps: TestDeps) => {
  const { destinations, findConnector, keyRing } = deps
  /** Has the target of a stored destination tested, with its stored credentials. */
  const tryStored = async (workspaceId: string, destination: Destination, signal: AbortSignal, attempt?: Try): Promise<TestResult> => {
    const { id, connectorType, config, credentialsSealed } = destination
    const connector = connectorOf(findConnector, connectorType)
    let credentials: unknown
    try {
      credentials = keyRing.open(credentialsSealed, credentialsOwner(connector, { workspaceId, id, config }))
    } catch (thrown) {
      if (!(thrown instanceof SealError)) throw thrown
      return undecryptable(`: ${thrown.message}`)
    }
    const workspace = await destinations.workspaceName(workspaceId)
    checkTarget(connector, { config, credentials }, workspace)
    return testTarget(deps, connector, { config, credentials }, { workspace, disconnected: signal }, attempt)
  }
  return {
    /** Tests a target before a destination with it is created. @throws AppError 422 */
    testNew: async (workspaceId: string, target: NewTarget, signal: AbortSignal): Promise<TestResult> => {
      const workspace = await destinations.workspaceName(workspaceId)
      return testTarget(deps, await checkNew(deps, target, workspace), target, { workspace, disconnected: signal })
    },

    /**
     * Tests a destination. A success marks it as connected, and pins what the target has presented.
     * @throws AppError 404 or 422
     */
    test: async (workspaceId: string, id: string, signal: AbortSignal): Promise<TestResult> => {
      const stored = await destinations.find(workspaceId, id)
      const { connectorType, config, credentialsSealed } = stored
      const result = await tryStored(workspaceId, stored, signal, await destinations.probeHome(id))
      if (result.status === 'success') await destinations.markConnected(workspaceId, id)
      const { pinned = {} } = result
      if (Object.keys(pinned).length > 0) {
        await deps.pinConfig({ workspaceId, id, connector: connectorType, config, credentialsSealed }, pinned)
      }
      return result
    },

    /** Sends a message to the destination of a notification. @throws AppError 404 or 422 */
    testNotice: async (workspaceId: string, id: string, message: NoticeMessage, signal: AbortSignal): Promise<TestResult> => {
      const destination = await destinations.find(workspaceId, id)
      return tryStored(workspaceId, destination, signal, async (connector, target, context) => {
        await connector.sendNotice!(message, target, context)
        return `Destination ${destination.name} has accepted the test message.`
      })
    },

    /** Tests a destination as a change would leave it. @throws AppError 404 or 422 */
    testChange: async (workspaceId: string, id: string, change: TargetChange, signal: AbortSignal): Promise<TestResult> => {
      const current = await destinations.find(workspaceId, id)
      const connector = connectorOf(findConnector, current.connectorType)
      const config = mergeConfig(current.config, change.config ?? {})
      const workspace = await destinations.workspaceName(workspaceId)
      checkTarget(connector, { config, credentials: change.credentials }, workspace)
      const credentials = change.credentials ?? storedCredentialsFor(keyRing, connector, { ...current, workspaceId }, config)
      if (credentials === undefined) return undecryptable()
      const changed = { config, credentials: credentials as OpenObject }
      checkTarget(connector, changed, workspace)
      await requireEncryption(deps, connector, changed)
      return testTarget(deps, connector, changed, { workspace, disconnected: signal }, await destinations.probeHome(id))
    },
  }
}
