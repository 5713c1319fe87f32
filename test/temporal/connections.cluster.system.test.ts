import { createSign, generateKeyPairSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Client } from 'pg'
import { diagnose } from '../../src/cli/doctor/doctor.ts'
import { temporalServerVersion } from '../../src/temporal-server/find-programs.ts'
import { registerSearchAttributes } from '../../src/temporal/search-attributes.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { createRelayProcesses, relayVariables, routeToWebhook } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { historyShards, startService, temporalCluster, temporalVariables, type RunningService } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

// The connection of the relay to a cluster: by client certificate, by API key, and while a history service ends.

const cluster = temporalCluster()!
const testMs = 300_000

const [env, database, target] = await Promise.all([
  startTemporalServer().then(share),
  createTestDatabase().then(share),
  startHttpTarget().then(share),
])
const processes = share(createRelayProcesses({ ...relayVariables(database, { address: '' }), TEMPORAL_TLS: '' }))
afterEach(processes.killAll)

/** Starts an API and a worker that connect to Temporal with these variables. @returns a function that sends documents and waits until they are delivered */
const startRelay = async (temporal: Record<string, string>) => {
  const api = await processes.start('api', temporal)
  await processes.start('worker', temporal)
  const { send, untilDelivered } = await routeToWebhook(database, target.origin)
  return { send: (docId: string) => send(api, docId), untilDelivered }
}

const findingOf = async (name: string, temporal: Record<string, string>) => {
  const findings = await diagnose(testConfig({ DATABASE_URL: database.url, ...temporal, TEMPORAL_START_TIMEOUT_MS: '10000' }))
  return findings.find((finding) => finding.name === name)
}

/** Returns these variables without the client certificate. */
const withoutCertificate = (variables: Record<string, string>) =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !name.startsWith('TEMPORAL_TLS_CLIENT_')))

test('the cluster has the version, the stores and the shards of docker-compose.yml', async () => {
  const info = await env.connection.workflowService.getClusterInfo({})
  expect(info).toMatchObject({
    serverVersion: temporalServerVersion,
    // The name of both drivers of PostgreSQL.
    persistenceStore: 'postgres12',
    visibilityStore: 'postgres12',
    historyShardCount: historyShards,
  })
})

describe('with client certificates', () => {
  test(
    'an API and a worker deliver a document, with the certificates in files or in variables',
    async () => {
      const inFiles = temporalVariables(env)
      const first = await startRelay(inFiles)
      await first.send('FILES')
      expect(await first.untilDelivered(1)).toHaveLength(1)
      await processes.killAll()

      const read = (name: string) => readFile(inFiles[`TEMPORAL_TLS_${name}_PATH`]!, 'utf8')
      const { TEMPORAL_TLS_SERVER_CA_CERT_PATH: _, ...rest } = withoutCertificate(inFiles)
      const second = await startRelay({
        ...rest,
        TEMPORAL_TLS_SERVER_CA_CERT_DATA: await read('SERVER_CA_CERT'),
        TEMPORAL_TLS_CLIENT_CERT_DATA: await read('CLIENT_CERT'),
        TEMPORAL_TLS_CLIENT_KEY_DATA: await read('CLIENT_KEY'),
      })
      await second.send('DATA')
      expect(await second.untilDelivered(1)).toHaveLength(1)
    },
    testMs,
  )

  test('relay doctor finds Temporal, and without a client certificate it does not', async () => {
    expect(await findingOf('temporal', temporalVariables(env))).toMatchObject({ status: 'ok' })
    expect(await findingOf('Temporal encryption', temporalVariables(env))).toMatchObject({ status: 'ok' })
    expect(await findingOf('temporal', withoutCertificate(temporalVariables(env)))).toMatchObject({ status: 'failed' })
  })
})

describe('with an API key, at a frontend that takes no client certificates', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'ES256' }
  let keys: HttpTarget
  let frontend: RunningService

  // A server of one's own takes JSON Web Tokens as API keys.
  const apiKeyFor = (permissions: string[]) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part({ alg: 'ES256', typ: 'JWT', kid: 'test' })}.${part({ sub: 'relay', permissions })}`
    const signature = createSign('sha256').update(signed).sign({ key: privateKey, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }
  const variablesFor = (permissions: string[]) => ({
    ...withoutCertificate(temporalVariables(env)),
    TEMPORAL_ADDRESS: frontend.address,
    TEMPORAL_API_KEY: apiKeyFor(permissions),
  })

  beforeAll(async () => {
    keys = await startHttpTarget()
    keys.answerWith((_, response) => void response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [jwk] })))
    const authorization = {
      jwtKeyProvider: { keySourceURIs: [`${keys.origin}/keys`], refreshInterval: '1m' },
      permissionsClaimName: 'permissions',
      authorizer: 'default',
      claimMapper: 'default',
    }
    frontend = await startService(cluster, 'frontend', { global: { authorization }, requireClientAuth: false })
  }, testMs)
  afterAll(async () => {
    await frontend?.stop()
    await keys?.stop()
  })

  test(
    'an API and a worker whose key may write in the namespace deliver a document',
    async () => {
      const variables = variablesFor([`${env.namespace}:write`])
      const relay = await startRelay(variables)
      await relay.send('KEY')
      expect(await relay.untilDelivered(1)).toHaveLength(1)
      expect(await findingOf('temporal', variables)).toMatchObject({ status: 'ok' })
      expect(await findingOf('search attributes', variables)).toMatchObject({ status: 'ok' })
    },
    testMs,
  )

  test('a key of another namespace is refused, and relay doctor says so', async () => {
    const variables = variablesFor(['elsewhere:write'])
    expect(await findingOf('schedules', variables)).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('refuses the call'),
    })
    expect(await registerSearchAttributes(testConfig(variables))).toBe(
      `Temporal at ${frontend.address} refuses the call in namespace ${env.namespace}. Check the API key or the client certificate (TEMPORAL_*).`,
    )
  })
})

/** Returns the number of shards that a history service owns. It writes its address into a shard when it acquires it. */
const shardsOf = async ({ address }: RunningService): Promise<number> => {
  const url = new URL(cluster.serverUrl)
  url.pathname = `/${cluster.database}`
  const client = new Client({ connectionString: url.href })
  await client.connect()
  try {
    const { rows } = await client.query<{ count: number }>(
      'select count(*)::int as count from shards where position(convert_to($1, $2) in data) > 0',
      [`${address}-`, 'UTF8'],
    )
    return rows[0]!.count
  } finally {
    await client.end()
  }
}
const isAboutHalf = (shards: number) => shards > historyShards / 4 && shards < (historyShards * 3) / 4

test(
  'every document is delivered although a history service is killed while it owns about half of the shards',
  async () => {
    const relay = await startRelay(temporalVariables(env))
    const history = await startService(cluster, 'history')
    try {
      // Each of the two has 100 places on the ring, so their shares differ little.
      await until('the new history service owns about half of the shards', () => shardsOf(history), isAboutHalf)
      const documents = 40
      for (let index = 0; index < documents; index += 1) {
        await relay.send(`KILL${index}`)
        if (index !== documents / 2) continue
        expect(isAboutHalf(await shardsOf(history))).toBe(true)
        await history.kill()
      }
      expect(await relay.untilDelivered(documents)).toHaveLength(documents)
    } finally {
      await history.stop()
    }
  },
  testMs,
)
