import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readReady } from '../../src/embedded/ready.ts'
import { freePort } from '../support/free-port.ts'
import { result, startRfcSystem, type RfcSystem } from '../support/rfc-system.ts'
import { until } from '../support/until.ts'
import { comparable, runSteps, stepsOf } from './walk.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const startTimeoutMs = 100_000

let folder: string
let server: ReturnType<typeof spawn>
let baseUrl: string
let erp: RfcSystem

const startServer = async (dataDir: string) => {
  server = spawn(process.execPath, [main, 'server'], {
    env: {
      ...process.env,
      RELAY_DATA_DIR: dataDir,
      RELAY_PORT: '0',
      RELAY_HOST: '127.0.0.1',
      RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN,
    },
    stdio: 'ignore',
  })
  const isReady = () => {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`)
    return readReady(dataDir)
  }
  return (await until('the server is ready', isReady, Boolean, startTimeoutMs))!.base_url
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'relay-walk-'))
  erp = await startRfcSystem({ RFC_PING: (called) => result('RFC_PING', called, `<ECHOTEXT>${String(called['REQUTEXT'])}</ECHOTEXT>`) })
  baseUrl = await startServer(join(folder, 'data'))
})

afterAll(async () => {
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  await ended
  await erp.stop()
  await rm(folder, { recursive: true, force: true })
})

/** The commands of a page, against this server instead of the one that the page has started. */
const walk = async (page: string) => {
  const steps = stepsOf(await readFile(new URL(`../../${page}`, import.meta.url), 'utf8'))
  const targetPort = String(await freePort())
  // script/relay sees to Node and the packages, and then runs this
  const here = (commands: string) =>
    commands
      .replaceAll('script/relay', `node ${main}`)
      .replaceAll('http://127.0.0.1:8080', baseUrl)
      .replaceAll('9000', targetPort)
      .replaceAll('https://erp.example.com:44300', erp.url)
  const own = join(folder, page.replaceAll('/', '-'))
  await mkdir(own)
  const environment = { ...process.env, RELAY_DATA_DIR: join(folder, 'data') }
  const answers = await runSteps(
    steps.map(({ commands }) => here(commands)),
    { folder: own, environment, timeoutMs: 100_000 },
  )
  return steps.map(({ commands, answer }, index) => ({ commands, answer: answer && here(answer), said: answers[index]! }))
}

test.each(['docs/api.md', 'README.md'])('every command of %s does what the page says', async (page) => {
  const steps = await walk(page)
  expect(steps.filter(({ answer }) => answer !== undefined)).not.toEqual([])
  for (const { commands, answer, said } of steps) {
    if (answer !== undefined) expect({ commands, answer: comparable(said) }).toEqual({ commands, answer: comparable(answer) })
  }
})
