import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { makeDirectory } from '../dev/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { relayVariables } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

// A start that fails leaves its reason on standard error, and no process. Each row fails at another step, in the order of the steps.

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
// The relay limits a failing start to 10 seconds. A process that does not end never does.
const endTimeoutMs = 90_000

const env = share(await startTemporalServer())
const database = share(await createTestDatabase())
const dataDir = share(await makeDirectory())
/** Accepts connections and never answers, as a path does that drops packets. */
const silent = share(disposable(createServer(), (server) => server.close())).listen(0, '127.0.0.1')
await once(silent, 'listening')
const takenPort = String((silent.address() as AddressInfo).port)
const silentAddress = `127.0.0.1:${takenPort}`

interface Start {
  step: string
  verb: string
  /** Returns variables in addition to those of a start that succeeds. */
  variables: () => Record<string, string>
  reason: RegExp
}

const databaseNamed = (name: string) => {
  const url = new URL(database.url)
  url.pathname = `/${name}`
  return url.href
}

// What is the same for both services is tried with one of them.
const starts: Start[] = [
  {
    step: 'the configuration is invalid',
    verb: 'api',
    variables: () => ({ DELIVERY_ATTEMPT_TIMEOUT_MS: 'soon' }),
    reason: /relay: .*DELIVERY_ATTEMPT_TIMEOUT_MS/s,
  },
  { step: 'no database is configured', verb: 'worker', variables: () => ({ DATABASE_URL: '' }), reason: /relay: DATABASE_URL is not set/ },
  {
    step: 'the database has no schema',
    verb: 'api',
    variables: () => ({ DATABASE_URL: databaseNamed('postgres') }),
    reason: /^relay: The database lacks \d+ migrations of this version, the first is \w+\. Run: relay migrate\n$/,
  },
  {
    step: 'its port is taken',
    verb: 'api',
    variables: () => ({ RELAY_PORT: takenPort }),
    reason: /^relay: Port \d+ is already in use\. Set RELAY_PORT to a free port\.\n$/,
  },
  {
    step: 'its port is taken',
    verb: 'worker',
    variables: () => ({ RELAY_WORKER_PORT: takenPort }),
    reason: /^relay: Port \d+ is already in use\. Set RELAY_WORKER_PORT to a free port\.\n$/,
  },
  {
    step: 'the file of the sign-in does not exist',
    verb: 'api',
    variables: () => ({ RELAY_OIDC_FILE: `${dataDir.path}/none.yaml` }),
    reason: /^relay: RELAY_OIDC_FILE: .*none\.yaml cannot be read: ENOENT/,
  },
  {
    step: 'the port of its probes is taken',
    verb: 'api',
    variables: () => ({ RELAY_PROBES_PORT: takenPort }),
    reason: /^relay: Port \d+ is already in use\. Set RELAY_PROBES_PORT to a free port\.\n$/,
  },
  {
    step: 'Temporal refuses connections',
    verb: 'worker',
    variables: () => ({ TEMPORAL_ADDRESS: '127.0.0.1:1' }),
    reason: /^relay: Cannot connect to Temporal at 127\.0\.0\.1:1: /,
  },
  {
    step: 'Temporal is silent',
    verb: 'worker',
    variables: () => ({ TEMPORAL_ADDRESS: silentAddress }),
    reason: /relay: Cannot connect to Temporal at 127\.0\.0\.1:\d+: no answer/,
  },
  {
    step: 'the namespace does not exist',
    verb: 'worker',
    variables: () => ({ TEMPORAL_NAMESPACE: 'elsewhere' }),
    reason: /relay: .*no namespace elsewhere/,
  },
  {
    step: 'PostgreSQL refuses connections',
    verb: 'migrate',
    variables: () => ({ DATABASE_URL: 'postgres://relay@127.0.0.1:1/relay' }),
    reason: /ECONNREFUSED/,
  },
  {
    step: 'PostgreSQL is silent',
    verb: 'workspace list',
    variables: () => ({ DATABASE_URL: `postgres://relay@${silentAddress}/relay` }),
    reason: /timeout/i,
  },
  {
    step: 'the port of the API is taken',
    verb: 'server',
    variables: () => ({ RELAY_PORT: takenPort, RELAY_DATA_DIR: `${dataDir.path}/server` }),
    reason: /relay: Port \d+ is already in use\. Set RELAY_PORT to a free port\./,
  },
  {
    step: 'the port of the worker is taken',
    verb: 'server',
    variables: () => ({ RELAY_WORKER_PORT: takenPort, RELAY_DATA_DIR: `${dataDir.path}/server` }),
    reason: /relay: Port \d+ is already in use\. Set RELAY_WORKER_PORT.*The worker ended before it was ready/s,
  },
]

const run = async (verb: string, variables: Record<string, string>) => {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [main, ...verb.split(' ')], {
    env: {
      PATH,
      HOME,
      NODE_COMPILE_CACHE,
      RELAY_DATA_DIR: dataDir.path,
      RELAY_LOG_LEVEL: 'silent',
      RELAY_HOST: '127.0.0.1',
      RELAY_PORT: '0',
      RELAY_PROBES_PORT: '0',
      RELAY_WORKER_PORT: '0',
      ...relayVariables(database, env),
      ...variables,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs)
  const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number | null]>])
  clearTimeout(timer)
  return { status, stderr }
}

test.each(starts)(
  'relay $verb ends with a reason if $step',
  async ({ verb, variables, reason }) => {
    expect(await run(verb, variables())).toEqual({ status: 1, stderr: expect.stringMatching(reason) })
  },
  2 * endTimeoutMs,
)
