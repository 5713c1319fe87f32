import type { TestWorkflowEnvironment } from '@temporalio/testing'
import type { Database } from '../../src/db/database.ts'
import { createContract, readOpenApi } from '../api/contract.ts'
import { createWorkspaceClient, type WorkspaceClient } from '../support/client.ts'
import { createTestDatabase } from '../support/database.ts'
import { startHttpTarget, type Arrival, type HttpTarget } from '../support/http-target.ts'
import { relayVariables, startRelayProcess } from '../support/relay-process.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

export interface Relay {
  db: Database
  baseUrl: string
  /** The delivery target: `/accepting` answers 200, `/down` 503, `/refusing` 400, `/switchable` as set by `switchTo`. */
  target: HttpTarget
  switchTo(status: number): void
  /** Returns the documents of a repository that have arrived at the target. */
  arrivalsOf(repoId: string): Arrival[]
  workspace(name: string): Promise<WorkspaceClient>
  stop(): Promise<void>
}

/** Starts `relay api` and `relay worker` as separate processes, with PostgreSQL, Temporal and a target. */
export const startRelay = async (): Promise<Relay> => {
  const database = await createTestDatabase()
  const [env, target]: [TestWorkflowEnvironment, HttpTarget] = await Promise.all([startTemporalServer(), startHttpTarget()])
  const variables = { ...relayVariables(database, env), RELAY_WRONG_KEYS_PER_MINUTE: '1000', CAPTURE_BODY_MAX_BYTES: '100000' }
  const [api, worker] = await Promise.all([startRelayProcess('api', variables), startRelayProcess('worker', variables)])
  const contract = createContract(await readOpenApi())
  let switchable = 400
  target.answerWith(({ url }, response) => {
    const statuses: Record<string, number> = { '/down': 503, '/refusing': 400, '/switchable': switchable }
    response.writeHead(statuses[url] ?? 200).end('test response')
  })
  return {
    db: database.db,
    baseUrl: api.baseUrl,
    target,
    switchTo: (status) => {
      switchable = status
    },
    arrivalsOf: (repoId) => target.arrivals.filter(({ headers }) => headers['x-relay-repo-id'] === repoId),
    workspace: (name) => createWorkspaceClient(database.db, api.baseUrl, name, contract),
    stop: async () => {
      await Promise.all([api.stop(), worker.stop()])
      await target.stop()
      await env.teardown()
      await database.drop()
    },
  }
}
