// Requests that are generated from openapi.json: hostile ones, and those that it allows. Each run sends the same ones, and others each day.
import type { Connector } from '../../../src/connectors/connector.ts'
import { createConnectors } from '../../../src/connectors/index.ts'
import { createAllowedRequests, createApiSurface } from '../../fuzz/api-surface.ts'
import { exchangeBytes, parseAnswers } from '../../fuzz/connection.ts'
import { createJudge } from '../../fuzz/judge.ts'
import { createRandom } from '../../fuzz/random.ts'
import { serialize, type FuzzRequest } from '../../fuzz/request.ts'
import type { World } from '../../fuzz/world.ts'
import { startApi } from '../../support/api.ts'
import { openContract, readOpenApi } from '../../support/contract.ts'
import { createTestDatabase } from '../../support/database.ts'
import { linesOfLevel } from '../../support/log-lines.ts'
import { share } from '../../support/share.ts'
import { wire } from '../objstore.ts'

const fixedSeed = 20261123
const seedOfDay = Number(process.env['TEST_SEED'] ?? new Date().toISOString().slice(0, 10).replaceAll('-', ''))
const seeds = [...new Set([fixedSeed, seedOfDay])]
const hostileCount = 300
const repeatedBy = (seed: number) => `repeated by TEST_SEED=${seed} script/test test/api/open-api/generated.release.test.ts`

const document = await readOpenApi()
const { find } = createConnectors()
/** Finds the real connectors, except that a test of a destination asks nothing: nothing may leave this machine. */
const findWithoutProbe = (kind: string): Connector | undefined => {
  const connector = find(kind)
  return connector && { ...connector, probe: async () => 'Nothing was asked.' }
}

const database = share(await createTestDatabase())
const api = share(
  await startApi(database.db, {
    variables: {
      RELAY_WRONG_KEYS_PER_MINUTE: '1000000',
      RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: '0',
    },
    findConnector: findWithoutProbe,
  }),
)
const [steady, changing, foreign] = [await api.tenant('acme/steady'), await api.tenant('acme/changing'), await api.tenant('other/prod')]
const { repositoryId, destinationId, connectionId } = await wire(steady, 'Z1')
const world: World = {
  steady: { name: 'acme/steady', keys: steady.keys },
  changing: { name: 'acme/changing', keys: changing.keys },
  foreignKey: foreign.keys.admin,
  foreignIds: Object.values(await wire(foreign, 'Z1')).flat(),
  ids: { repositories: [repositoryId], destinations: [destinationId], connections: [connectionId] },
  testable: [],
  signedQueries: [],
  links: [],
  canaries: { credential: 'secret', content: 'content' },
}

const judge = createJudge(document)
const generateHostile = createApiSurface(document)
const generateAllowed = createAllowedRequests(document, await openContract())

const judged = async (seed: number, request: FuzzRequest, check: (answer: { status: number; text: string }) => void) => {
  const received = await exchangeBytes(api.port, serialize(request), { isComplete: true })
  try {
    const answers = parseAnswers(received, request.method === 'HEAD')
    judge.check(request, answers)
    check({ status: answers[0]!.status, text: answers[0]!.body.toString() })
  } catch (thrown) {
    const [sent, answer] = [serialize(request), received].map((side) => JSON.stringify(side.subarray(0, 1_500).toString('latin1')))
    throw new Error(`${(thrown as Error).message}, ${repeatedBy(seed)}\nsent ${sent}\nanswer ${answer}`, { cause: thrown })
  }
}

// Rules about two parameters, which the descriptions of the operations state.
const rulesOfSeveral = /"message":"(cannot be combined with before|must not be later than date_to|must be at most 92 days before date_to)/

test.each(seeds)('hostile requests of seed %i are answered as openapi.json says', async (seed) => {
  process.stdout.write(`generated requests: ${repeatedBy(seed)}\n`)
  for (let index = 0; index < hostileCount; index += 1) await judged(seed, generateHostile(createRandom(seed, index), world), () => {})
  expect(linesOfLevel(api.log.join(''), ['error', 'fatal'])).toEqual([])
})

test.each(seeds)('no request of seed %i that openapi.json allows is refused as malformed', async (seed) => {
  for (const request of generateAllowed(createRandom(seed), world.changing)) {
    await judged(seed, request, ({ status, text }) => {
      if (status === 400 && !rulesOfSeveral.test(text)) throw new Error('refused as malformed')
    })
  }
  expect(linesOfLevel(api.log.join(''), ['error', 'fatal'])).toEqual([])
})
