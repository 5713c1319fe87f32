// Outpost (https://github.com/hookdeck/outpost), another relay that accepts over HTTP and delivers to webhooks, as a peer of `accept`. It
// runs as one process with Redis and NATS JetStream, which syncs each message to disk before Outpost answers, and keeps its log in the
// PostgreSQL server of the installation. An event of Outpost is JSON, so a document is sent in base64.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { request } from 'undici'
import { startWebhookSink } from '../../src/demo/webhook-sink.ts'
import { freePort, listening } from '../../test/support/free-port.ts'
import type { Installation } from '../support/installation.ts'
import type { BenchRequest } from '../support/requests.ts'

const tenant = 'bench'
const topic = 'document'
const attemptsAtATime = 100

const natsConfig = (port: number, folder: string) => `
listen: 127.0.0.1:${port}
max_payload: 8MB
jetstream { store_dir: "${folder}", sync_interval: always }
`

/** Creates a database on the server of the installation. @returns its address, with the superuser */
const createDatabase = async ({ config, folder }: Installation, name: string): Promise<string> => {
  const url = new URL(config.DATABASE_URL)
  url.username = 'postgres'
  url.password = (await readFile(join(folder, 'postgres.admin-password'), 'utf8')).trim()
  url.pathname = '/postgres'
  const client = new Client({ connectionString: url.href })
  await client.connect()
  await client.query(`create database ${client.escapeIdentifier(name)}`)
  await client.end()
  url.pathname = `/${name}`
  url.search = 'sslmode=disable'
  return url.href
}

/** Starts Outpost with a webhook of its own. @param binary path of the program; `redis-server` and `nats-server` are found on PATH */
export const startOutpost = async (installation: Installation, binary: string) => {
  const [redisPort, natsPort, apiPort] = [await freePort(), await freePort(), await freePort()]
  const folder = join(installation.folder, 'outpost')
  await mkdir(folder)
  const natsConfigFile = join(folder, 'nats.conf')
  await writeFile(natsConfigFile, natsConfig(natsPort, join(folder, 'jetstream')))
  const redisOptions = ['--port', String(redisPort), '--dir', folder, '--appendonly', 'yes', '--save', '']
  await installation.startProgram('redis-server', redisOptions)
  await installation.startProgram('nats-server', ['-c', natsConfigFile])
  await Promise.all([listening(redisPort), listening(natsPort)])

  const apiKey = randomBytes(16).toString('hex')
  const variables = {
    API_PORT: String(apiPort),
    API_KEY: apiKey,
    API_JWT_SECRET: apiKey,
    AES_ENCRYPTION_SECRET: randomBytes(16).toString('hex'),
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(redisPort),
    POSTGRES_URL: await createDatabase(installation, 'outpost'),
    NATS_SERVER_URL: `nats://127.0.0.1:${natsPort}`,
    TOPICS: topic,
    DELIVERY_MAX_CONCURRENCY: String(attemptsAtATime),
    LOG_MAX_CONCURRENCY: String(attemptsAtATime),
    LOG_LEVEL: 'error',
    DISABLE_TELEMETRY: 'true',
  }
  const migration = await installation.startProgram(binary, ['migrate', 'apply', '--yes'], variables)
  await once(migration, 'exit')
  await installation.startProgram(binary, ['serve'], variables)

  const baseUrl = `http://127.0.0.1:${apiPort}/api/v1`
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const send = async (method: 'PUT' | 'POST', path: string, body: object) => {
    const response = await request(`${baseUrl}${path}`, { method, headers, body: JSON.stringify(body) })
    if (response.statusCode >= 300) throw new Error(`Outpost answered ${response.statusCode}: ${await response.body.text()}`)
    await response.body.dump()
  }
  await listening(apiPort)
  const sink = await startWebhookSink()
  await send('PUT', `/tenants/${tenant}`, {})
  await send('POST', `/tenants/${tenant}/destinations`, { type: 'webhook', topics: [topic], config: { url: sink.url } })
  // A new destination is found by the next events only after a moment.
  await delay(1_000)
  return {
    /** Returns the request that publishes a document. */
    publish: (body: Buffer): BenchRequest => ({
      method: 'POST',
      url: `${baseUrl}/publish`,
      headers,
      body: Buffer.from(JSON.stringify({ tenant_id: tenant, topic, data: { content: body.toString('base64') } })),
    }),
    arrived: () => sink.calls.length,
    stop: sink.stop,
  }
}
