import { createWorkspaceClient } from './client.ts'
import { createContract, readOpenApi } from './contract.ts'
import { createTestDatabase } from './database.ts'
import { relayVariables, startRelayProcesses } from './relay-process.ts'
import { startTemporalServer } from './temporal-server.ts'

/** Starts a database, Temporal, `relay api` and `relay worker`. Every answer to a client is checked against openapi.json. */
export const startInstallation = async (variables: Record<string, string> = {}) => {
  const [database, env, openApi] = await Promise.all([createTestDatabase(), startTemporalServer(), readOpenApi()])
  const { api, worker, stop } = await startRelayProcesses({ ...relayVariables(database, env), ...variables })
  const contract = createContract(openApi)
  return {
    database,
    db: database.db,
    env,
    api,
    worker,
    baseUrl: api.baseUrl,
    /** Creates a workspace, and a client with a key of each level. @param name `user/workspace` */
    tenant: (name: string) => createWorkspaceClient(database.db, api.baseUrl, name, contract),
    stop: async () => {
      await stop()
      await env.teardown()
      await database.drop()
    },
  }
}
