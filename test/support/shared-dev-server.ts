// One dev server of Temporal for all files of a run: each file takes a namespace. A server of its own would cost each file a second of
// processor time, and more while it idles.
import { mkdir, open, readdir, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Connection } from '@temporalio/client'
import { readConfig } from '../../src/config/config.ts'
import { databaseArguments } from '../../src/dev/temporal-dev-server.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { startProgram } from '../../src/programs/programs.ts'
import { stopServer, waitUntilReady } from '../../src/programs/server-process.ts'
import { dynamicConfig, garbageCollector } from '../../src/temporal-server/dynamic-config.ts'
import { searchAttributes } from '../../workflows/options.ts'

interface SharedDevServer {
  address: string
  /** Contains a file for each namespace that is free. */
  folder: string
}

// More than there are files. A namespace costs 10 ms at the start, and nothing while it is idle.
const namespaces = Array.from({ length: 64 }, (_, index) => `test-${index + 1}`)
const answerTimeoutMs = 2_000

/**
 * Starts the server with its namespaces, which have the search attributes of the relay, and with the settings of production.
 * @returns what tests need to use it, as text
 */
export const startSharedDevServer = async (program: string, folder: string): Promise<{ text: string; stop(): Promise<void> }> => {
  const logFile = `${folder}.log`
  await mkdir(folder)
  for (const namespace of namespaces) await writeFile(join(folder, namespace), '')
  const port = await findFreePort()
  const address = `127.0.0.1:${port}`
  const log = await open(logFile, 'w')
  const child = await startProgram(
    program,
    [
      'server',
      'start-dev',
      '--headless',
      '--ip=127.0.0.1',
      `--port=${port}`,
      '--log-level=error',
      ...databaseArguments(`${folder}.sqlite`),
      ...dynamicConfig.flatMap((setting) => ['--dynamic-config-value', setting]),
      ...namespaces.flatMap((namespace) => ['--namespace', namespace]),
      ...Object.values(searchAttributes).flatMap(({ name }) => ['--search-attribute', `${name}=Keyword`]),
    ],
    { env: { ...readConfig().childEnvironment, ...garbageCollector }, stdio: ['ignore', log.fd, log.fd] },
  )
  await log.close()
  const connection = Connection.lazy({ address, connectTimeout: answerTimeoutMs })
  const describeLast = () => connection.workflowService.describeNamespace({ namespace: namespaces.at(-1)! })
  const answers = () => connection.withDeadline(Date.now() + answerTimeoutMs, describeLast).then(Boolean, () => false)
  try {
    await waitUntilReady(child, { name: 'Temporal', logFile, isReady: answers })
  } catch (thrown) {
    await stopServer(child)
    throw thrown
  } finally {
    await connection.close()
  }
  return { text: JSON.stringify({ address, folder } satisfies SharedDevServer), stop: () => stopServer(child) }
}

/** Takes a namespace that no other file of the run uses. @returns undefined if the run has no such server, or none is left */
export const takeNamespace = async (): Promise<{ address: string; namespace: string } | undefined> => {
  const text = process.env['TEST_TEMPORAL_DEV_SERVER']
  if (!text) return undefined
  const { address, folder } = JSON.parse(text) as SharedDevServer
  for (const namespace of await readdir(folder)) {
    const isTaken = await unlink(join(folder, namespace)).then(
      () => true,
      () => false,
    )
    if (isTaken) return { address, namespace }
  }
  return undefined
}
