import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openDatabase } from '../../src/db/database.ts'
import { databaseConfig } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { insertManyDocuments } from './many-documents.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Starts the demo with its sample data. @returns the address of the console that signs in, once */
export const startDemo = async () => {
  const folder = await createFolder()
  const demo = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main, 'demo'], {
    env: { ...process.env, RELAY_DATA_DIR: folder.path, RELAY_PORT: '0', RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let consoleUrl: string | undefined
  for await (const line of createInterface(demo.stdout)) {
    consoleUrl ??= /Console +(\S+)/.exec(line)?.[1]
    if (line.includes('Documentation')) break
  }
  if (consoleUrl === undefined) throw new Error('The demo has not started')
  const { variables } = JSON.parse(await readFile(join(folder.path, 'ready.json'), 'utf8')) as { variables: { DATABASE_URL: string } }
  const db = openDatabase(databaseConfig(variables.DATABASE_URL), 'test demo')

  /** Adds documents of the last 30 days to those that the demo has sent. */
  const addTraffic = async (count: number) => {
    const workspace = await db('workspaces').where({ user_slug: 'demo' }).first('id', 'workspace_slug as slug')
    const repository = await db('repositories').where({ workspace_id: workspace.id, repo_id: 'Z1' }).first('id')
    const destinations = await db('destinations').where({ workspace_id: workspace.id }).select('id', 'name')
    const connection = await db('connections').where({ workspace_id: workspace.id }).orderBy('id').first('id')
    const byName = <Value>(value: (row: { id: string; name: string }) => Value) =>
      Object.fromEntries(destinations.map((row) => [row.name as string, value(row)]))
    const routes = {
      workspaceId: workspace.id as string,
      repositoryId: repository.id as string,
      destinations: byName(({ id }) => id),
      connections: byName(() => connection.id as string),
    }
    await insertManyDocuments(db, routes, 'Archive', count)
  }

  return {
    consoleUrl,
    addTraffic,
    [Symbol.asyncDispose]: async () => {
      await db.destroy()
      const exited = once(demo, 'exit')
      demo.kill('SIGTERM')
      await exited
      await folder[Symbol.asyncDispose]()
    },
  }
}
