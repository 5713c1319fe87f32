import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOpenCredentials, credentialsOwner } from '../../src/connectors/target.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { createLateData } from '../../src/delivery/late-data.ts'
import { createBringBack } from '../../src/home/bring-back.ts'
import { createMoveHome } from '../../src/home/move.ts'
import { createSaveReplaced, createSaveUpdated } from '../../src/home/replaced.ts'
import { createHomeStore } from '../../src/home/store.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
import type { ApiOptions } from '../support/api.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'

/** A destination that can be a home. */
export interface HomeTarget {
  connector: string
  config: Record<string, unknown>
  credentials?: Record<string, unknown>
}

/** The key that seals credentials in the scene. */
export const keyOfScene = `test:${Buffer.alloc(32, 7).toString('base64')}`
const keyRing = createKeyRing([keyOfScene])
const policy = { maxRetries: 2, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }
const never = new AbortController().signal
const day = 86_400_000

/** Does work for each item, a few at a time. @returns the results, in the order of the items */
export const inTurns = async <Item, Result>(items: Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> => {
  const results: Result[] = []
  const queue = [...items.entries()]
  const next = async () => {
    for (let entry = queue.shift(); entry; entry = queue.shift()) results[entry[0]] = await work(entry[1])
  }
  await Promise.all(Array.from({ length: 8 }, next))
  return results
}

/** Starts an API and a worker's part in which repositories may have a home. @param roots directories below which destinations may write */
export const startHomeScene = async (roots: string[] = [], options: ApiOptions = {}) => {
  const variables = { RELAY_DIRECTORY_ROOTS: roots.join(':'), ...options.variables }
  const config = testConfig(variables)
  const { find } = createConnectors(config)
  const findConnector = options.findConnector ?? find
  const scene = await startScene({ ...options, variables, findConnector, keyRing })
  const { db } = scene
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const calling = {
    db,
    config,
    findConnector,
    outbound,
    installation: createInstallation(db),
    openCredentials: createOpenCredentials(keyRing),
  }
  const home = createHomeStore({ ...calling, log: createLog('silent'), ...options.limits?.home })
  const postgres = createPostgresStore(db)
  const stores = createSegmentedStores(db, { postgres, home })
  const bringBack = createBringBack({ db, home: stores.home!, writeTo: postgres })
  // The day of what a test has received is over.
  const saving = { db, bringBack, now: () => new Date(Date.now() + day) }
  const { attemptDelivery } = attemptActivities({
    ...calling,
    contents: stores,
    keyRing,
    saveReplaced: createSaveReplaced(saving),
  })
  const { onItsOwn } = createOnItsOwn()
  const log = createLog('silent')
  const { bringLateData } = createLateData({ ...calling, log, onItsOwn, saveUpdated: createSaveUpdated(saving) }, { lingerMs: 0 })
  const { moveHome } = createMoveHome({
    ...calling,
    home: stores.home!,
    onItsOwn,
    log,
    ...options.limits?.home,
  })

  /** Creates a workspace whose repository Z1 has a destination as its home. */
  const workspace = async (
    { connector, config: targetConfig, credentials = {} }: HomeTarget,
    more: { name: string; connector: string; config: object }[] = [],
  ) => {
    const found = await scene.workspace([{ name: 'home', connector, config: targetConfig }, ...more] as never)
    const destinationId = found.destinations['home']!
    const owner = { workspaceId: found.workspaceId, id: destinationId, config: targetConfig }
    const sealed = keyRing.seal(credentials, credentialsOwner(findConnector(connector)!, owner))
    await db('destinations').where({ id: destinationId }).update({ credentials_sealed: sealed })
    for (const { name, connector: kind, config: otherConfig } of more) {
      const id = found.destinations[name]!
      const other = { workspaceId: found.workspaceId, id, config: otherConfig as Record<string, unknown> }
      await db('destinations')
        .where({ id })
        .update({ credentials_sealed: keyRing.seal({}, credentialsOwner(findConnector(kind)!, other)) })
    }
    const setHome = (change: object = { home_destination_id: destinationId, home_after_days: 30 }) =>
      found.call('PATCH', `/repositories/${found.repositoryId}`, change)
    /** Attempts every delivery that is open. @returns the outcomes */
    const deliver = async (attemptTimeoutMs = 60_000) => {
      const open: { documentId: string; destinationId: string }[] = await db('deliveries')
        .select('document_id as documentId', 'destination_id as destinationId')
        .where({ workspace_id: found.workspaceId })
        .whereIn('status', ['pending', 'retrying'])
        .orderBy('document_id')
      await db('deliveries').where({ workspace_id: found.workspaceId }).update({ next_attempt_at: db.fn.now() })
      const attempt = (each: (typeof open)[number]) =>
        createActivityEnvironment().run(attemptDelivery, {
          ...each,
          policy,
          round: newId(),
          attemptTimeoutMs,
          workspace: found.name,
        })
      return inTurns(open, attempt)
    }
    /** Runs the job as it runs some days later, and removes what no document owns any more. */
    const move = async (days = 31) => {
      const now = new Date(Date.now() + days * day)
      await db('home_waiting').update({ due_at: db.fn.now() })
      const moved = await moveHome(now, never)
      await db('contents').where({ workspace_id: found.workspaceId }).update({ captured_on: null })
      await sweepOrphans(db, stores, now, never)
      return moved
    }
    const storeOf = async (docId: string, compId = 'data') =>
      (
        await db('documents')
          .join('contents', 'contents.id', 'content_id')
          .where({ doc_id: docId, comp_id: compId, 'documents.workspace_id': found.workspaceId })
          .whereNull('superseded_at')
          .first('store')
      )?.store as string | undefined
    /** Returns the bytes of contents that the relay itself has. */
    const bytesHere = async () =>
      Number(
        (
          await db('content_chunks')
            .join('contents', 'contents.id', 'content_id')
            .where({ workspace_id: found.workspaceId })
            .first(db.raw('coalesce(sum(octet_length(data)), 0) as bytes'))
        ).bytes,
      )
    const countOf = async (query: Promise<{ count?: unknown } | undefined>) => Number((await query)?.count)
    const movedCount = () => countOf(db('home_contents').where({ destination_id: destinationId }).count().first())
    const waitingCount = () => countOf(db('home_waiting').where({ repository_id: found.repositoryId }).count().first())
    return { ...found, movedCount, waitingCount, destinationId, setHome, deliver, move, storeOf, bytesHere }
  }

  const stop = async () => {
    await outbound.close()
    await scene.stop()
  }
  return { ...scene, homeStore: home, writeTo: postgres, moveHome, bringLateData, workspace, stop, [Symbol.asyncDispose]: stop }
}

export type HomeScene = Awaited<ReturnType<typeof startHomeScene>>
export type HomeWorkspace = Awaited<ReturnType<HomeScene['workspace']>>
