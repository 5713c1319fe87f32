// Outpost (https://github.com/hookdeck/outpost), another relay that accepts over HTTP and delivers to webhooks, as a peer of `accept`. It
// runs as one process with Redis and RabbitMQ, and keeps its log in the PostgreSQL server of the installation. An event of Outpost is JSON,
// so a document is sent in base64.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { request } from 'undici'
import { startWebhookSink } from '../../src/dev/demo/webhook-sink.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import type { Installation } from '../support/installation.ts'
import type { BenchRequest } from '../support/requests.ts'

const tenant = 'bench'
const topic = 'document'
const attemptsAtATime = 100

/** Starts RabbitMQ, which writes a message to disk before it confirms it. @returns its address */
const startRabbitMq = async ({ startProgram }: Installation, folder: string): Promise<{ url: string; stop(): Promise<unknown> }> => {
  const [port, distributionPort, epmdPort] = [await findFreePort(), await findFreePort(), await findFreePort()]
  const variables = {
    HOME: folder,
    ERL_EPMD_PORT: String(epmdPort),
    // `epmd -kill` otherwise fails as long as RabbitMQ runs.
    ERL_EPMD_RELAXED_COMMAND_CHECK: 'yes',
    RABBITMQ_NODENAME: 'bench@localhost',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distributionPort),
    RABBITMQ_MNESIA_BASE: folder,
    RABBITMQ_LOG_BASE: folder,
    RABBITMQ_PID_FILE: join(folder, 'rabbitmq.pid'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
  }
  await startProgram('rabbitmq-server', [], variables, port)
  return {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    // The port mapper of Erlang is a daemon.
    stop: () => startProgram('epmd', ['-kill'], variables),
  }
}

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

/**
 * Starts Outpost with a webhook of its own.
 * @param binary path of the program `outpost`, with `outpost-server` beside it. `redis-server`, `rabbitmq-server` and `epmd` are found on PATH. Debian's wrapper of
 * rabbitmq-server changes the user, who cannot write to the folder: put /usr/lib/rabbitmq/bin before it
 */
export const startOutpost = async (installation: Installation, binary: string) => {
  const [redisPort, apiPort] = [await findFreePort(), await findFreePort()]
  const folder = join(installation.folder, 'outpost')
  await mkdir(folder)
  const redisOptions = ['--port', String(redisPort), '--dir', folder, '--appendonly', 'yes', '--save', '']
  await installation.startProgram('redis-server', redisOptions, {}, redisPort)
  const rabbitMq = await startRabbitMq(installation, folder)

  const apiKey = randomBytes(16).toString('hex')
  const variables = {
    API_PORT: String(apiPort),
    API_KEY: apiKey,
    API_JWT_SECRET: apiKey,
    AES_ENCRYPTION_SECRET: randomBytes(16).toString('hex'),
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(redisPort),
    POSTGRES_URL: await createDatabase(installation, 'outpost'),
    RABBITMQ_SERVER_URL: rabbitMq.url,
    TOPICS: topic,
    DELIVERY_MAX_CONCURRENCY: String(attemptsAtATime),
    LOG_MAX_CONCURRENCY: String(attemptsAtATime),
    LOG_LEVEL: 'error',
    DISABLE_TELEMETRY: 'true',
  }
  const migration = await installation.startProgram(binary, ['migrate', 'apply', '--yes'], variables)
  await once(migration, 'exit')
  await installation.startProgram(binary, ['serve'], variables, apiPort)

  const baseUrl = `http://127.0.0.1:${apiPort}/api/v1`
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const send = async (method: 'PUT' | 'POST', path: string, body: object) => {
    const response = await request(`${baseUrl}${path}`, { method, headers, body: JSON.stringify(body) })
    if (response.statusCode >= 300) throw new Error(`Outpost answered ${response.statusCode}: ${await response.body.text()}`)
    await response.body.dump()
  }
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
    /** The programs that do its work, as `cpuTimes` names them. */
    programs: ['outpost-server', 'beam.smp', 'redis-server'],
    stop: async () => {
      await sink.stop()
      await rabbitMq.stop()
    },
  }
}
