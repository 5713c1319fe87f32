import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createTemporal } from '../../src/temporal/client.ts'
import { registerSearchAttributes } from '../../src/temporal/search-attributes.ts'
import { documentWorkflowId } from '../../workflows/ids.ts'
import type { DocumentInput } from '../../workflows/messages.ts'
import { searchAttributes } from '../../workflows/options.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

const database = share(await createTestDatabase())
const env = share(await startTemporalServer([], []))

/** Runs `relay migrate` in a child process. @returns its JSON output */
const migrate = async (): Promise<unknown> => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const variables = { PATH: process.env['PATH'], HOME: process.env['HOME'], DATABASE_URL: database.url, ...temporalVariables(env) }
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'migrate', '--json'], { env: variables })
  return JSON.parse(stdout)
}

/** Starts a document workflow. @returns its status and its search attribute */
const startDocument = async () => {
  const temporal = createTemporal(env.client, env.connection, testConfig())
  const input: DocumentInput = {
    documentId: randomUUID(),
    workspace: 'acme/invoices',
    repoId: 'Z1',
    docId: 'D1',
    compId: 'data',
    destinations: [{ id: 'archive', name: 'archive', connector: 'webhook' }],
    policy: { maxRetries: 1, ttlMs: 1_000, initialIntervalMs: 1_000, maxIntervalMs: 1_000 },
    retryWindowMs: 1_000,
    attemptTimeoutMs: 1_000,
    heartbeatTimeoutMs: 1_000,
  }
  await temporal.send({ kind: 'startDocument', input })
  const { status, typedSearchAttributes } = await env.client.workflow.getHandle(documentWorkflowId(input)).describe()
  return { status: status.name, workspace: typedSearchAttributes.get(searchAttributes.workspace) }
}

test('documents are started without search attributes until relay migrate registers them, and repeated registration succeeds', async () => {
  expect(await startDocument()).toEqual({ status: 'RUNNING', workspace: undefined })

  expect(await migrate()).toEqual({ applied: [], search_attributes: true })
  const config = testConfig(temporalVariables(env))
  expect(await registerSearchAttributes(config)).toBeUndefined()
  expect(await registerSearchAttributes(config)).toBeUndefined()

  // Each process checks the registration once, so a new client finds the attributes.
  expect(await startDocument()).toEqual({ status: 'RUNNING', workspace: 'acme/invoices' })
})

test('if the server is unreachable, registration tries again for a while, and then returns the reason', async () => {
  const config = {
    ...testConfig({ TEMPORAL_START_TIMEOUT_MS: '500' }),
    temporal: { connectionOptions: { address: '127.0.0.1:1' } },
  }
  expect(await registerSearchAttributes(config)).toEqual(expect.any(String))
})
