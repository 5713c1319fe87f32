// Sends generated requests to every surface of a relay process: valid, hostile and damaged ones. No request may be answered with an
// undeclared server error or in an undocumented form, reveal a secret, or leave memory, connections or sockets behind.
//
// A full run (`TEST_FULL=1`) sends 100,000 requests. TEST_SEED sends others.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { createCertificates } from '../../src/access/certificates.ts'
import { newId } from '../../src/base/ids.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { rfcBoundValues } from '../../src/domain/settings.ts'
import { readCertificate } from '../../src/security/certificate.ts'
import { createDownloadLinks } from '../../src/security/download-link.ts'
import { createKeyRing, rfcCredentialsOf } from '../../src/security/seal.ts'
import { insertDocument } from '../api/insert-document.ts'
import { apiKeyParts } from '../support/api-key.ts'
import { createKeys } from '../support/client.ts'
import { readOpenApi } from '../support/contract.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { fullOr } from '../support/full-run.ts'
import { linesOfLevel } from '../support/log-lines.ts'
import { relayVariables, saveTarget, startRelayProcess } from '../support/relay-process.ts'
import { exception, fault, result, startRfcSystem } from '../support/rfc-system.ts'
import { expirationIn, signedQuery, type RawParameter } from '../support/signed-query.ts'
import { createSigner } from '../support/signer.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { createApiSurface } from './api-surface.ts'
import { exchangeBytes, parseAnswers, type RawAnswer } from './connection.ts'
import { damaged } from './damage.ts'
import { createJudge } from './judge.ts'
import { bridgeRequest, downloadRequest, functions, probeRequest, referenceRequest, strayRequest } from './other-surfaces.ts'
import { createRandom, type Random } from './random.ts'
import { receiverRequest } from './receiver-surface.ts'
import { serialize, type FuzzRequest } from './request.ts'
import type { World } from './world.ts'

const seed = Number(process.env['TEST_SEED'] ?? 20261123)
const requestCount = Number(process.env['FUZZ_REQUESTS'] ?? fullOr(100_000, 2_500))
const concurrency = 16
// Those before the warm-up ends, which loads code and fills caches, and all.
const [warmUps, measurements] = [fullOr(4, 2), fullOr(20, 4)]
const MiB = 1024 * 1024
// Code that is compiled late and caches that have limits grow the heap a little. A leak of 1 KiB per request would grow it by 80 MiB in a
// full run.
const heapGrowthMaxBytes = 24 * MiB
const rssGrowthMaxBytes = 160 * MiB

const database = await createTestDatabase()
const { db } = database
const secretKeys = testConfig().RELAY_SECRET_KEYS
const canaries = { credential: 'canary-credential-7f3a', content: 'canary-content-91bc' }
const document = await readOpenApi()
const judge = createJudge(document)
const apiRequest = createApiSurface(document)

const system = await startRfcSystem({
  Z_OK: (called) => result('Z_OK', called, '<A>1</A>', { T: '<item><A>1</A></item>' }),
  Z_FAULT: () => fault('NOTHING_FOUND'),
  Z_EXCEPTION: () => exception('Z_EXCEPTION', 'NO_AUTHORITY', 'Not allowed'),
  Z_BROKEN: () => ({ body: '<SOAP-ENV:Envelope><open' }),
  Z_SLOW: () => ({ body: '', delayMs: 60_000 }),
  ARCHIV_CONNECTION_INSERT: (called) => result('ARCHIV_CONNECTION_INSERT', called, ''),
})

const signer = await createSigner('RSA 2048')
const logProblems: string[] = []
/** Ids of objects of the test itself. Requests must not change them. */
const protectedIds = new Set<string>()

/** Makes the repository Z2 require signatures. @returns queries that are signed for it */
const signRepository = async (workspaceId: string): Promise<string[]> => {
  const repositoryId = newId()
  await db('repositories').insert({
    id: repositoryId,
    workspace_id: workspaceId,
    repo_id: 'Z2',
    name: 'Signed',
    signature_verification: true,
  })
  const certificates = createCertificates(db)
  const actor = { type: 'system', userId: null } as const
  const facts = readCertificate(signer.der)!
  const received = await certificates.receive(
    { workspaceId, repositoryId, authId: 'CN=TST', received: signer.der, facts, actor, sentFrom: '192.0.2.1' },
    10,
  )
  await certificates.setStatus({ workspaceId, repositoryId, actor }, (received as { certificate: { id: string } }).certificate.id, 'active')

  const signed = ['contRep', 'docId', 'compId', 'docProt', 'accessMode', 'authId', 'expiration']
  const queries: string[] = []
  for (const [command, accessMode] of [
    ['create', 'c'],
    ['get', 'r'],
    ['info', 'r'],
    ['update', 'u'],
    ['append', 'u'],
    ['delete', 'd'],
  ] as const) {
    for (const [docId, seconds] of [
      ['D1', 100_000],
      ['D2', 100_000],
      ['D3', -3_600],
    ] as const) {
      const compId: RawParameter[] = command === 'info' ? [] : [['compId', 'data']]
      const parameters: RawParameter[] = [
        ['pVersion', '0047'],
        ['contRep', 'Z2'],
        ['docId', docId],
        ...compId,
        ['accessMode', accessMode],
        ['authId', 'CN%3DTST'],
        ['expiration', expirationIn(seconds)],
      ]
      const covered = command === 'get' || command === 'info' ? signed.filter((name) => name !== 'compId') : signed
      queries.push(await signedQuery(signer, command, parameters, { signed: covered }))
    }
  }
  return queries
}

const routes = await createRoutes(db, [{ name: 'files', connector: 'sftp' }, { name: 'hook' }])
const { workspaceId, repositoryId, repoId, destinations, connections } = routes
const files = { workspaceId, id: destinations['files']! }
const hook = { workspaceId, id: destinations['hook']! }
await saveTarget(db, files, 'sftp', { host: '127.0.0.1', port: 1 }, { username: 'relay', password: canaries.credential })
await saveTarget(db, hook, 'webhook', { url: 'http://127.0.0.1:1/' }, { bearer_token: canaries.credential })
await db('repositories').insert({ id: newId(), workspace_id: workspaceId, repo_id: 'Z3', name: 'Wired to nothing' })
const rfc = { url: system.url, client: '100', allowed_functions: functions.filter((name) => name !== 'Z_FORBIDDEN') }
const rfcCredentials = createKeyRing(secretKeys).seal(system.logon, rfcCredentialsOf(workspaceId, rfcBoundValues({ rfc })))
await db('workspaces')
  .where({ id: workspaceId })
  .update({ settings: JSON.stringify({ rfc }), rfc_credentials_sealed: rfcCredentials })
const signedQueries = await signRepository(workspaceId)

const contents = createPostgresStore(db)
const documents: string[] = []
for (const status of ['failed', 'failed', 'delivered', 'retrying', 'pending', 'discarded'] as const) {
  const delivery = {
    destinationId: hook.id,
    connectionId: connections['hook']!,
    status: status === 'discarded' ? ('held' as const) : status,
  }
  const content = await contents.write(workspaceId, Readable.from([Buffer.from('hello')]))
  await db.transaction((trx) => content.own(trx))
  const row = { workspaceId, repositoryId, repoId, status, deliveries: status === 'discarded' ? [] : [delivery] }
  const id = await insertDocument(db, { ...row, ...(status !== 'discarded' && { contentId: content.id }) })
  documents.push(id)
}
const changing = await createRoutes(db, [])
const foreign = await createRoutes(db, [{ name: 'other' }])
const [steadyName, changingName] = [`acme/${routes.workspaceSlug}`, `acme/${changing.workspaceSlug}`]
const world: World = {
  steady: { name: steadyName, keys: await createKeys(db, steadyName) },
  changing: { name: changingName, keys: await createKeys(db, changingName) },
  foreignKey: (await createKeys(db, `acme/${foreign.workspaceSlug}`)).admin,
  foreignIds: [foreign.repositoryId, foreign.destinations['other']!, foreign.connections['other']!],
  ids: {
    documents,
    destinations: [hook.id],
    repositories: [],
    connections: [],
    requests: [],
    certificates: [],
    'bulk-retries': [],
    'api-keys': [],
  },
  testable: [files.id],
  signedQueries,
  links: [],
  canaries,
}
/** World of damaged requests, in which the damaged name of a header or parameter no longer tells that its value is secret. */
const worldOfDamaged: World = {
  ...world,
  steady: { name: steadyName, keys: await createKeys(db, steadyName) },
  changing: { name: changingName, keys: await createKeys(db, changingName) },
  canaries: { credential: 'no-canary', content: 'no-canary' },
}
const secrets = [
  canaries.credential,
  system.logon.password,
  secretKeys[0]!.split(':')[1]!,
  new URL(database.url).password,
  ...[...Object.values(world.steady.keys), ...Object.values(world.changing.keys), world.foreignKey].map((key) => apiKeyParts(key).secret),
].filter((secret) => secret.length >= 10)

const relay = await startRelayProcess(
  'api',
  {
    ...relayVariables(database, { address: '127.0.0.1:1' }),
    RELAY_TRUST_PROXY: 'true',
    RELAY_CORS_ORIGINS: 'https://console.example',
    RELAY_WRONG_KEYS_PER_MINUTE: '1000000',
    RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: '0',
    DELIVERY_CONNECT_TIMEOUT_MS: '500',
    RFC_TIMEOUT_MS: '1000',
    TEMPORAL_START_TIMEOUT_MS: '500',
  },
  { preload: new URL('./probe.ts', import.meta.url).href },
)

/** Creates a document that no request changes, and download links for it: valid and expired. */
const createLinks = async (): Promise<string[]> => {
  const source = createSourceSystem(`${relay.baseUrl}/receiver/${steadyName}`)
  await source.create('LINKED', 'hello')
  await source.close()
  const documentId = (await db('documents').where({ doc_id: 'LINKED' }).first('id')).id as string
  protectedIds.add(documentId)
  const { pathOf } = createDownloadLinks(secretKeys)
  return [86_400_000, -1_000].map((ms) =>
    pathOf({ workspaceId, documentId, destinationId: files.id, version: 1, expiresAt: new Date(Date.now() + ms) }),
  )
}

for (const table of ['repositories', 'destinations', 'connections'])
  for (const id of (await db(table).pluck('id')) as string[]) protectedIds.add(id)
world.links.push(...(await createLinks()))
let line = ''
relay.child.stderr!.on('data', (chunk: Buffer) => {
  const lines = (line + chunk.toString('utf8')).split('\n')
  line = lines.pop()!
  for (const each of lines) {
    logProblems.push(...linesOfLevel(each, ['error', 'fatal']))
    for (const secret of [...secrets, canaries.content]) if (each.includes(secret)) logProblems.push(`logs the secret ${secret}: ${each}`)
  }
})

afterAll(async () => {
  await relay.kill()
  await signer.remove()
  await system.stop()
  await database.drop()
})

const generate = (random: Random, from: World): FuzzRequest => {
  const lot = random.below(100)
  if (lot < 42) return receiverRequest(random, from)
  if (lot < 80) return apiRequest(random, from)
  if (lot < 88) return bridgeRequest(random, from)
  if (lot < 92) return downloadRequest(random, from)
  if (lot < 94) return referenceRequest(random)
  if (lot < 96) return probeRequest(random)
  return strayRequest(random)
}

const resources: Record<string, string> = {
  destination: 'destinations',
  repository: 'repositories',
  document: 'documents',
  captured_request: 'requests',
  certificate: 'certificates',
  bulk_retry: 'bulk-retries',
}
const idsMax = 200

/** Lets later requests name what this answer names. */
const harvest = (random: Random, { target, method }: FuzzRequest, { status, body, headers }: RawAnswer) => {
  if (status >= 300 || body.length > MiB || headers['content-encoding'] !== undefined || !target.startsWith(`/api/${world.steady.name}/`))
    return
  if (!headers['content-type']?.startsWith('application/json')) return
  const { data } = JSON.parse(body.toString('utf8') || '{}') as { data?: unknown }
  for (const each of [data].flat() as ({ id?: string; type?: string } | undefined)[]) {
    // A list of keys contains those of the test, which must not be revoked.
    const isNewKey = each?.type === 'api_key' && method === 'POST'
    const name = isNewKey ? 'api-keys' : (resources[each?.type ?? ''] ?? (target.includes('/connections') ? 'connections' : undefined))
    if (name === undefined || each?.id === undefined || protectedIds.has(each.id)) continue
    const ids = world.ids[name]!
    if (ids.length < idsMax) ids.push(each.id)
    else ids[random.below(idsMax)] = each.id
  }
}

/** Commands and endpoints that return contents of documents, which may contain anything. */
const returnsContent = /[?](?:get|docget)\b|\/content(?:$|\?)|^\/download\/|\/body\//i

const portOf = (url: string) => Number(new URL(url).port)
/** The probes have a port of their own; the public one also answers some of them. */
const portFor = (random: Random, { surface }: FuzzRequest) =>
  portOf(surface === 'probes' && random.chance(0.7) ? relay.probesUrl : relay.baseUrl)

const surfaces: ((random: Random) => FuzzRequest)[] = [
  (random) => receiverRequest(random, world),
  (random) => apiRequest(random, world),
  (random) => bridgeRequest(random, world),
  (random) => downloadRequest(random, world),
  referenceRequest,
  probeRequest,
  strayRequest,
]

/** Sends several requests to one surface on one connection, and waits for no answer. @returns what was wrong with the answers */
const sendPipelined = async (random: Random, index: number, count: (surface: string, status: number | string) => void) => {
  const one = random.pick(surfaces)
  const requests = Array.from({ length: 1 + random.below(random.chance(0.7) ? 16 : 60) }, () => one(random))
    // The answer to a HEAD has no body, whatever its headers say.
    .map((each) => (each.method === 'HEAD' ? { ...each, method: 'GET' } : each))
  const [first] = requests as [FuzzRequest]
  const bytes = Buffer.concat(requests.map((each, at) => serialize(each, at === requests.length - 1)))
  let received: Buffer = Buffer.alloc(0)
  try {
    received = await exchangeBytes(portFor(random, first), bytes, { isComplete: true })
    const answers = parseAnswers(received, false, true)
    for (const { status } of answers) count(`pipelined ${first.surface}`, status)
    if (answers.length < requests.length) count(`pipelined ${first.surface}`, 'closed')
    judge.checkPipelined(requests, answers)
    return undefined
  } catch (thrown) {
    const answer = JSON.stringify(received.subarray(0, 700).toString('latin1'))
    const targets = requests.map(({ method, target }) => `${method} ${target.slice(0, 120)}`).join('\n')
    return `request ${index} of seed ${seed} (${requests.length} pipelined): ${(thrown as Error).message}\nsent ${targets}\nanswer ${answer}`
  }
}

/** Sends the request with this index. @returns what was wrong with its answer */
const send = async (index: number, count: (surface: string, status: number | string) => void): Promise<string | undefined> => {
  const random = createRandom(seed, index)
  if (random.chance(0.02)) return sendPipelined(random, index, count)
  const isDamaged = random.chance(0.2)
  const request = generate(random, isDamaged ? worldOfDamaged : world)
  const { name, bytes } = isDamaged ? damaged(random, request) : { name: 'intact', bytes: serialize(request) }
  let received: Buffer = Buffer.alloc(0)
  try {
    received = await exchangeBytes(portFor(random, request), bytes, { isComplete: !isDamaged })
    const answers = parseAnswers(received, request.method === 'HEAD' && name !== 'another protocol')
    for (const { status } of answers) count(isDamaged ? 'damaged' : request.surface, status)
    if (answers.length === 0) count(isDamaged ? 'damaged' : request.surface, 'closed')
    if (isDamaged) judge.checkDamaged(answers)
    else judge.check(request, answers)
    if (returnsContent.test(request.target)) return undefined
    if (!isDamaged) harvest(random, request, answers[0]!)
    const revealed = secrets.find((secret) => received.includes(secret))
    if (revealed !== undefined) throw new Error(`reveals the secret ${revealed}`)
    return undefined
  } catch (thrown) {
    const [sent, answer] = [bytes, received].map((side) => JSON.stringify(side.subarray(0, 700).toString('latin1')))
    return `request ${index} of seed ${seed} (${name}): ${(thrown as Error).message}\nsent ${sent}\nanswer ${answer}`
  }
}

interface Measurement {
  heapUsed: number
  external: number
  rss: number
  sockets: number
}

/** Waits until the relay has finished its work, and measures it. */
const measure = async (): Promise<Measurement> => {
  await until('all requests are captured', async () =>
    /^relay_captures_waiting 0$/m.test(await (await fetch(`${relay.probesUrl}/metrics`, { headers: { connection: 'close' } })).text()),
  )
  const measured = once(relay.child, 'message') as Promise<[Measurement]>
  relay.child.send('measure')
  return (await measured)[0]
}

// Connections of clients whose requests were damaged are closed by timeouts of the relay, which are 5 seconds long.
const untilSocketsClosed = (max: number) => until('the sockets of the clients are closed', measure, ({ sockets }) => sockets <= max)

test(
  `${requestCount} generated requests find no undeclared error, no leak and no secret`,
  async () => {
    const counts = new Map<string, number>()
    const count = (surface: string, status: number | string) => {
      const key = `${surface} ${status}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    const problems: string[] = []
    const curve: Measurement[] = []
    const startedAt = Date.now()
    let index = 0
    const sendUpTo = async (end: number) => {
      while (index < end && problems.length < 20) {
        index += 1
        const problem = await send(index, count)
        if (problem !== undefined) problems.push(problem)
      }
    }
    for (let step = 1; step <= measurements; step += 1) {
      const end = Math.floor((requestCount * step) / measurements)
      await Promise.all(Array.from({ length: concurrency }, () => sendUpTo(end)))
      curve.push(await measure())
    }
    const seconds = (Date.now() - startedAt) / 1_000
    const table = [...counts].toSorted(([one], [other]) => one.localeCompare(other)).map(([key, number]) => `${key}: ${number}`)
    const megabytes = (bytes: number) => (bytes / MiB).toFixed(1)
    const memory = curve.map(({ heapUsed, external, rss, sockets }) =>
      [heapUsed, external, rss].map(megabytes).concat(String(sockets)).join(' '),
    )
    process.stdout.write(
      `fuzz: seed ${seed}, ${index} requests, ${(index / seconds).toFixed(0)} per second\n${table.join('\n')}\n` +
        `heap, external, resident (MiB), sockets:\n${memory.join('\n')}\n`,
    )
    expect(problems.join('\n\n')).toBe('')
    expect(logProblems.slice(0, 20)).toEqual([])

    // Each surface was reached, and not only refused.
    for (const key of [
      'receiver 200',
      'receiver 201',
      'receiver 401',
      'api 200',
      'api 201',
      'api 422',
      'bridge 200',
      'bridge 502',
      'download 200',
      'damaged 400',
      'probes 200',
      'pipelined receiver 200',
      'pipelined receiver closed',
      'pipelined api 200',
      'pipelined bridge 200',
      'pipelined download 410',
      'pipelined probes 200',
    ])
      expect(`${key}: ${counts.get(key) ?? 0}`).not.toBe(`${key}: 0`)

    const [warm, end] = [curve[warmUps - 1]!, curve.at(-1)!]
    expect(end.heapUsed + end.external - warm.heapUsed - warm.external).toBeLessThan(heapGrowthMaxBytes)
    expect(end.rss - warm.rss).toBeLessThan(rssGrowthMaxBytes)

    const pool = await until(
      'every database connection of the relay is idle',
      async () => {
        const { rows } = await db.raw<{ rows: { state: string; count: number }[] }>(
          "select state, count(*)::int as count from pg_stat_activity where datname = current_database() and application_name = 'relay api' group by state",
        )
        return rows
      },
      (rows) => rows.every(({ state }) => state === 'idle'),
    )
    const databaseSockets = pool[0]?.count ?? 0
    expect(databaseSockets).toBeLessThanOrEqual(10)
    // Beside those to the database: the connection of the measurement and one that gRPC opens to Temporal.
    await untilSocketsClosed(databaseSockets + 2)

    const source = createSourceSystem(`${relay.baseUrl}/receiver/${world.steady.name}`)
    const docId = `AFTER${newId()}`
    expect((await source.create(docId, 'still alive')).status).toBe(201)
    expect(String((await source.get(docId, '&compId=data')).body)).toBe('still alive')
    await source.close()
  },
  fullOr(3_600_000, 600_000),
)
