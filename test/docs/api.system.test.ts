import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readReady } from '../../src/embedded/data-dir.ts'
import { freePort } from '../support/free-port.ts'
import { result, startRfcSystem, type RfcSystem } from '../support/rfc-system.ts'
import { until } from '../support/until.ts'
import { comparable, runSteps, stepsOf } from './walk.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const startTimeoutMs = 200_000

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
  erp = await startRfcSystem({
    RFC_PING: (parameters) => result('RFC_PING', parameters, `<ECHOTEXT>${String(parameters['REQUTEXT'])}</ECHOTEXT>`),
  })
  baseUrl = await startServer(join(folder, 'data'))
})

afterAll(async () => {
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  await ended
  await erp.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Runs the commands of a page against the server of this test instead of the one that the page starts. */
const walk = async (page: string) => {
  const steps = stepsOf(await readFile(new URL(`../../${page}`, import.meta.url), 'utf8'))
  const targetPort = String(await freePort())
  // script/relay installs Node and the packages, then runs main.ts.
  const adapt = (commands: string) =>
    commands
      .replaceAll('script/relay', `node ${main}`)
      .replaceAll('http://127.0.0.1:8080', baseUrl)
      .replaceAll('9000', targetPort)
      .replaceAll('https://erp.example.com:44300', erp.url)
  const workDir = join(folder, page.replaceAll('/', '-'))
  await mkdir(workDir)
  const environment = { ...process.env, RELAY_DATA_DIR: join(folder, 'data') }
  const answers = await runSteps(
    steps.map(({ commands }) => adapt(commands)),
    { folder: workDir, environment, timeoutMs: 200_000 },
  )
  return steps.map(({ commands, answer }, index) => ({ commands, answer: answer && adapt(answer), output: answers[index]! }))
}

test('script/server is reached at 127.0.0.1 only', async () => {
  expect((await fetch(`${baseUrl}/healthz`)).status).toBe(200)
  // Another loopback address, at which a server that listens on all addresses would answer.
  await expect(fetch(`${baseUrl.replace('127.0.0.1', '127.0.0.2')}/healthz`)).rejects.toThrow('fetch failed')
})

test.each(['docs/api.md', 'README.md'])(
  'every command of %s prints what the page promises',
  async (page) => {
    const steps = await walk(page)
    expect(steps.filter(({ answer }) => answer !== undefined)).not.toEqual([])
    for (const { commands, answer, output } of steps) {
      if (answer !== undefined) expect({ commands, answer: comparable(output) }).toEqual({ commands, answer: comparable(answer) })
    }
  },
  300_000,
)
