import { spawn } from 'node:child_process'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Connection } from '@temporalio/client'
import { Client } from 'pg'
import type { Stack } from '../../src/app/server.ts'
import { UserError } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import { startStack } from '../../src/dev/stack.ts'
import { identifyProcess, readPidFile } from '../../src/programs/orphaned-processes.ts'
import { searchAttributes } from '../../workflows/options.ts'
import { configOf, makeDirectory } from './support.ts'

const log = createLog('silent')

/** Creates a data directory for stacks. */
const createPlace = async () => {
  const directory = await makeDirectory()
  const { path: dataDir } = directory
  const printed: string[] = []
  return {
    ...directory,
    dataDir,
    printed,
    start: (variables: Record<string, string> = {}, signal?: AbortSignal): Promise<Stack> =>
      startStack({ dataDir, config: configOf(variables), log, say: (line) => printed.push(line), fast: true, signal }),
    /** Returns the processes that the stack has noted. */
    pids: async () => {
      const files = [join(dataDir, 'postgres', 'postmaster.pid'), join(dataDir, 'temporal.pid')]
      return (await Promise.all(files.map(readPidFile))).filter((pid) => pid !== undefined)
    },
  }
}

const query = async (url: string, sql: string): Promise<unknown[]> => {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 60_000 })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

const registeredAttributes = async (address: string): Promise<string[]> => {
  const connection = await Connection.connect({ address })
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace: 'default' })
    return Object.keys(customAttributes)
  } finally {
    await connection.close()
  }
}

const running = async (candidates: number[]) => {
  const found = await Promise.all(candidates.map(identifyProcess))
  return found.filter((identity) => identity !== undefined).length
}

test('a stack answers, and its data, addresses and password survive a restart', async () => {
  await using place = await createPlace()
  const { start, pids } = place
  const first = await start()
  const servers = await pids()
  try {
    expect(await query(first.databaseUrl, 'create table kept as select 42 as answer')).toEqual([])
    const rights = 'select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls from pg_roles where rolname = current_user'
    expect(await query(first.databaseUrl, rights)).toEqual([
      { rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolbypassrls: false },
    ])
    expect((await registeredAttributes(first.temporalAddress)).toSorted()).toEqual(
      expect.arrayContaining(Object.values(searchAttributes).map(({ name }) => name)),
    )
    expect((await fetch(first.temporalUiUrl!)).status).toBe(200)
    expect(servers).toHaveLength(2)
    expect(await running(servers)).toBe(2)
  } finally {
    await first.stop()
  }
  expect(await running(servers)).toBe(0)

  const second = await start()
  try {
    expect(await query(second.databaseUrl, 'select answer from kept')).toEqual([{ answer: 42 }])
    expect({ ...second, stop: undefined }).toEqual({ ...first, stop: undefined })
  } finally {
    await second.stop()
  }
})

test('a second stack on the same data directory is refused, and the first one keeps running', async () => {
  await using place = await createPlace()
  const { start } = place
  const first = await start({ TEMPORAL_ADDRESS: 'temporal.invalid:7233' })
  try {
    await expect(start()).rejects.toThrow(/^Another server \(process \d+\) is using /)
    expect(await query(first.databaseUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  } finally {
    await first.stop()
  }
})

test('a start without the password of the PostgreSQL that it finds fails at once, and says what to do', async () => {
  await using place = await createPlace()
  const { dataDir, start } = place
  const variables = { TEMPORAL_ADDRESS: 'temporal.invalid:7233' }
  await (await start(variables)).stop()
  await rm(join(dataDir, 'postgres.admin-password'))
  await expect(start(variables)).rejects.toThrow(
    new UserError('postgres.admin-password is not the password of this PostgreSQL. Restore the file, or start with a new data directory.'),
  )
})

test('configured addresses are used unchanged and no server is started', async () => {
  await using place = await createPlace()
  const { printed, start } = place
  const stack = await start({ DATABASE_URL: 'postgres://elsewhere/relay', TEMPORAL_ADDRESS: 'elsewhere:7233' })
  await stack.stop()
  expect(stack).toMatchObject({ databaseUrl: 'postgres://elsewhere/relay', temporalAddress: 'elsewhere:7233', temporalUiUrl: null })
  expect(printed).toEqual([])
})

test('if one server cannot be started, the other is stopped and the data directory is unlocked', async () => {
  await using place = await createPlace()
  const { dataDir, start, pids } = place
  await expect(start({ RELAY_TEMPORAL_BIN: join(dataDir, 'missing') })).rejects.toThrow(UserError)
  expect(await running(await pids())).toBe(0)
  const stack = await start({ DATABASE_URL: 'postgres://elsewhere/relay', TEMPORAL_ADDRESS: 'elsewhere:7233' })
  await stack.stop()
})

test('an aborted start leaves no process running', async () => {
  await using place = await createPlace()
  const { start, pids } = place
  const interruption = new AbortController()
  const starting = start({}, interruption.signal)
  setTimeout(() => interruption.abort(new UserError('Interrupted.')), 300)
  await expect(starting).rejects.toThrow('Interrupted.')
  expect(await running(await pids())).toBe(0)
})

test('after a kill -9, the next start stops the orphaned servers and finds the committed data', async () => {
  await using place = await createPlace()
  const { dataDir, printed, start, pids } = place
  const script = fileURLToPath(new URL('./hold-stack.ts', import.meta.url))
  // A PATH without setpriv, as on macOS. The kernel then does not end the child processes.
  const env = { HOME: process.env.HOME, DATA_DIR: dataDir, RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN, SEARCH_PATH: '/nowhere' }
  const server = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const databaseUrl = await new Promise<string>((resolve, reject) => {
    server.stdout.once('data', (line: Buffer) => resolve(line.toString().trim()))
    server.once('exit', (code) => reject(new Error(`ended with ${code}`)))
  })
  await query(databaseUrl, 'create table kept as select 42 as answer')
  const orphans = await pids()
  server.kill('SIGKILL')
  expect(orphans).toHaveLength(2)
  expect(await running(orphans)).toBe(2)

  const stack = await start()
  try {
    expect(await running(orphans)).toBe(0)
    expect(printed.filter((line) => line.includes('a crashed process had left running'))).toHaveLength(2)
    expect(await query(stack.databaseUrl, 'select answer from kept')).toEqual([{ answer: 42 }])
  } finally {
    await stack.stop()
  }
})

test('the password is not in the log file, and only the user of the data directory can read both', async () => {
  await using place = await createPlace()
  const { dataDir, start } = place
  const stack = await start({ TEMPORAL_ADDRESS: 'elsewhere:7233' })
  await stack.stop()
  const password = new URL(stack.databaseUrl).password
  expect(password).toHaveLength(32)
  expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).not.toContain(password)
  for (const file of ['postgres.password', 'postgres.admin-password', 'postgres.log']) {
    expect([file, (await stat(join(dataDir, file))).mode & 0o777]).toEqual([file, 0o600])
  }
})
