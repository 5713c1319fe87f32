import { isDeepStrictEqual } from 'node:util'
import { UserError, type ErrorDetail } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { createConnectors } from '../../connectors/index.ts'
import { systemActor } from '../../db/audit.ts'
import { inTransaction, type Database, type Transaction } from '../../db/database.ts'
import { isLostRace } from '../../db/errors.ts'
import { toCamelCase } from '../../domain/casing.ts'
import { rfcBoundKeys } from '../../domain/rfc-settings.ts'
import { rfcBoundValues, settingsPatchFields } from '../../domain/settings.ts'
import { openOutboundGuard } from '../../security/outbound.ts'
import { createKeyRing } from '../../security/seal.ts'
import { readWorkspaceName } from '../../workspace/administration.ts'
import { createWorkspaces, lockRouting, settingsChange } from '../../workspace/workspaces.ts'
import {
  connectionsOfFile,
  destinationsOfFile,
  enrichmentsOfFile,
  eventSubscriptionsOfFile,
  keysOfFile,
  membersOfFile,
  notificationsOfFile,
  repositoriesOfFile,
} from './apply-kinds.ts'
import type { ApplyOptions, Change } from './change.ts'
import { applyKind, listDifferences, type ApplyDeps, type Run, type Target } from './kind.ts'
import { issuesOf, readWorkspacesFile } from './read-workspaces-file.ts'
import { readState } from './workspace-state.ts'
import type { WantedWorkspace } from './workspaces-file.ts'

/** Opens what `relay apply` and `relay export` need beside the database for one piece of work, and closes it afterwards. */
export const withApplyDeps = async <T>(config: Config, variables: NodeJS.ProcessEnv, work: (deps: ApplyDeps) => Promise<T>): Promise<T> => {
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const findConnector = createConnectors(config).find
  const outbound = openOutboundGuard(config)
  try {
    return await work({ config, variables, keyRing, findConnector, outbound })
  } finally {
    await outbound.close()
  }
}

/**
 * `relay apply`. Creates and changes what the file describes, all in one transaction. A dry run does the same and rolls the transaction
 * back. Messages to Temporal are sent by the maintenance job `sweep-outbox`.
 * @throws `UserError` with every issue of the file, in which case nothing was changed
 */
export const applyFile = async (db: Database, file: string, deps: ApplyDeps, options: ApplyOptions): Promise<Change[]> => {
  const { workspaces, refuse } = await readWorkspacesFile(file, deps)
  try {
    return await inTransaction<Change[]>(db, async (trx, rollback) => {
      const changes: Change[] = []
      const issues: ErrorDetail[] = []
      for (const [index, workspace] of workspaces.entries()) {
        await applyWorkspace(trx, workspace, { ...deps, ...options, at: `workspaces.${index}`, changes, issues })
      }
      if (issues.length > 0) throw refuse(issues)
      return options.dryRun ? rollback(changes) : changes
    })
  } catch (thrown) {
    if (!isLostRace(thrown)) throw thrown
    throw new UserError('The workspaces were changed at the same time, and nothing was applied. Try again.', { cause: thrown })
  }
}

const applyWorkspace = async (trx: Transaction, wanted: WantedWorkspace, run: Run): Promise<void> => {
  const { slug } = wanted
  const { userSlug, workspaceSlug } = readWorkspaceName(slug)
  const workspaces = createWorkspaces(trx)
  const existing = await workspaces.find(userSlug, workspaceSlug)
  const found = existing ?? (await workspaces.insert(userSlug, workspaceSlug))
  run.changes.push({ workspace: slug, kind: 'workspace', name: slug, action: existing ? 'unchanged' : 'create' })
  await lockRouting(trx, found.id)
  const state = await readState(trx, found.id, run)
  const target: Target = { trx, workspaceId: found.id, wanted, state, run }
  await applySettings(target)
  const pruneMembers = await applyKind(target, membersOfFile(target))
  const pruneKeys = await applyKind(target, keysOfFile(target))
  const pruneDestinations = await applyKind(target, destinationsOfFile(target))
  const homed: Target = { ...target, state: await readState(trx, found.id, run) }
  const pruneRepositories = await applyKind(homed, repositoriesOfFile(homed))
  // Their ids are known now, of new ones too.
  const linked: Target = { ...target, state: await readState(trx, found.id, run) }
  const pruneConnections = await applyKind(linked, connectionsOfFile(linked))
  const pruneEnrichments = await applyKind(linked, enrichmentsOfFile(linked))
  const pruneNotifications = await applyKind(linked, notificationsOfFile(linked))
  const pruneSubscriptions = await applyKind(linked, eventSubscriptionsOfFile(linked))
  // A deletion also deletes what refers to the object. Deleted first, those objects are part of the result.
  const prunes = [
    pruneSubscriptions,
    pruneNotifications,
    pruneEnrichments,
    pruneConnections,
    pruneDestinations,
    pruneRepositories,
    pruneKeys,
    pruneMembers,
  ]
  for (const prune of prunes) await prune()
}

/** Applies the tier and the settings. Omitted ones are not changed. */
const applySettings = async ({ trx, workspaceId: id, wanted: { slug, tier, settings }, state, run }: Target): Promise<void> => {
  const workspaces = createWorkspaces(trx)
  const { stored, rfcCredentials } = state
  if (tier !== undefined) {
    const change = { workspace: slug, kind: 'tier', name: tier } as const
    const fields = listDifferences({ tier: stored.tier }, { tier })
    run.changes.push(fields.length > 0 ? { ...change, action: 'update', fields } : { ...change, action: 'unchanged' })
    await workspaces.setTier(id, tier, systemActor)
  }
  if (Object.keys(settings).length === 0) return
  const { rfc, ...others } = settings
  // Settings count credentials as changed if they are given.
  const { credentials, ...bridge } = rfc ?? {}
  const storedValues: Record<string, unknown> = Object.fromEntries(rfcBoundValues(stored.settings))
  const isSame =
    isDeepStrictEqual(credentials, rfcCredentials) &&
    rfcBoundKeys.every((key) => bridge[key] === undefined || bridge[key] === storedValues[key])
  const patch = toCamelCase(settingsPatchFields, { ...others, ...(rfc !== undefined && { rfc: rfc && isSame ? bridge : rfc }) })
  const changeOf = (current: typeof stored) => settingsChange(id, current, patch, run.keyRing)
  try {
    const { before, after } = changeOf(await workspaces.findSettings(id)).difference
    const fields = Object.keys(after).map((name) =>
      name === 'rfc.credentials' ? { name } : { name, before: before[name], after: after[name] },
    )
    const change = { workspace: slug, kind: 'settings', name: slug } as const
    run.changes.push(fields.length > 0 ? { ...change, action: 'update', fields } : { ...change, action: 'unchanged' })
    if (fields.length > 0) await workspaces.updateSettings(id, changeOf, systemActor)
  } catch (thrown) {
    run.issues.push(...issuesOf(thrown, `${run.at}.settings`))
  }
}
