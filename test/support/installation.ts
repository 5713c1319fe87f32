import { createWorkspaceClient } from './client.ts'
import { openContract } from './contract.ts'
import { createTestDatabase } from './database.ts'
import { createRelayProcesses, relayVariables } from './relay-process.ts'
import { startTemporalServer } from './temporal-server.ts'

/** Creates a database and Temporal, on which `start` starts `relay api` or `relay worker` as a process with these variables. */
export const createInstallation = async (more: Record<string, string> = {}) => {
  const [database, env] = await Promise.all([createTestDatabase(), startTemporalServer()])
  const variables = { ...relayVariables(database, env), ...more }
  const processes = createRelayProcesses(variables)
  return {
    database,
    db: database.db,
    env,
    variables,
    start: processes.start,
    killAll: processes.killAll,
    [Symbol.asyncDispose]: async () => {
      await processes.killAll()
      await env[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Creates an installation and starts `relay api` and `relay worker`. Every answer to a client is checked against openapi.json. */
export const startInstallation = async (variables?: Record<string, string>) => {
  const [installation, contract] = await Promise.all([createInstallation(variables), openContract()])
  const { db, start } = installation
  const [api, worker] = await Promise.all([start('api'), start('worker')])
  return {
    ...installation,
    api,
    worker,
    baseUrl: api.baseUrl,
    /** Creates a workspace, and a client with a key of each level. @param name `user/workspace` */
    tenant: (name: string) => createWorkspaceClient(db, api.baseUrl, name, contract),
  }
}
