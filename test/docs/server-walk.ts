import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readReady } from '../../src/programs/data-dir.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { result, startRfcSystem } from '../support/rfc-system.ts'
import { until } from '../support/until.ts'
import { runSteps, stepsOf, walkedPages } from './walk.ts'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const script = (name: string) => join(root, 'script', name)
const startTimeoutMs = 200_000

export const textOf = (page: string) => readFile(join(root, page), 'utf8')

interface Preparation {
  /** Commands that run before those of the page, in the same shell. */
  before?: string
  /** Files of the folder in which the commands run. */
  files?: Record<string, string>
  variables?: Record<string, string>
  /** Replacements for placeholders of the page. */
  replace?: Record<string, string>
  /** The headings whose commands are run. All by default. */
  under?: string[]
  /** Commands that run after those of the page. */
  after?: string
}

/** Starts script/server for the pages whose commands a file of tests runs. It ends after the tests. */
export const startServerWalk = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-walk-'))
  const erp = await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (parameters) => {
      const connection = '<item><SAP_OBJECT>BKPF</SAP_OBJECT><OBJECT_ID>100019000000012026</OBJECT_ID></item>'
      return result('ARCHIV_GET_CONNECTIONS', parameters, '<COUNT>1</COUNT>', { CONNECTIONS: connection })
    },
    RFC_PING: (parameters) => result('RFC_PING', parameters, `<ECHOTEXT>${String(parameters['REQUTEXT'])}</ECHOTEXT>`),
  })
  const dataDir = join(folder, 'data')
  const serverLog = join(folder, 'server.log')
  const logFile = await open(serverLog, 'a')
  const server = spawn(script('server'), {
    env: {
      ...process.env,
      RELAY_DATA_DIR: dataDir,
      RELAY_PORT: '0',
      RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN,
      // A limit for a busy machine.
      TEMPORAL_START_TIMEOUT_MS: '60000',
      RELAY_DIRECTORY_ROOTS: folder,
    },
    stdio: ['ignore', logFile.fd, logFile.fd],
  })
  await logFile.close()
  afterAll(async () => {
    const ended = once(server, 'exit')
    server.kill('SIGTERM')
    await ended
    await erp.stop()
    await rm(folder, { recursive: true, force: true })
  })
  const isReady = () => {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`)
    return readReady(dataDir)
  }
  const { base_url: baseUrl, variables: ready } = (await until('the server is ready', isReady, Boolean, startTimeoutMs))!

  /** The commands of all pages that were run. */
  const ran = new Set<string>()

  /** The folder in which the commands of a page run. */
  const workDirOf = (page: string) => join(folder, page.replaceAll('/', '-'))

  /** Runs the commands of a page against the server of this test instead of the one that the page starts. */
  const walk = async (page: string, { before = '', files = {}, variables = {}, replace = {}, under, after = '' }: Preparation = {}) => {
    const steps = stepsOf(await textOf(page)).filter(({ heading }) => under?.includes(heading) ?? true)
    for (const { commands } of steps) ran.add(commands)
    const targetPort = String(await findFreePort())
    const adapt = (commands: string) =>
      Object.entries(replace)
        .reduce((rest, [placeholder, value]) => rest.replaceAll(placeholder, value), commands)
        .replaceAll('script/relay', script('relay'))
        .replaceAll('http://127.0.0.1:8080', baseUrl)
        .replaceAll(/\b9000\b/g, targetPort)
        .replaceAll('https://erp.example.com:44300', erp.url)
    const workDir = workDirOf(page)
    await mkdir(workDir, { recursive: true })
    for (const [name, content] of Object.entries(files)) await writeFile(join(workDir, name), content)
    // Pages create temporary files.
    const environment = { ...process.env, RELAY_DATA_DIR: dataDir, TMPDIR: folder, ...variables }
    const [, ...answers] = await runSteps([before, ...steps.map(({ commands }) => commands), after].map(adapt), {
      folder: workDir,
      environment,
      timeoutMs: 200_000,
    }).catch(async (thrown: Error) => {
      // A step that failed does not show the answer that it could not use.
      thrown.message += `\nThe server wrote:\n${(await readFile(serverLog, 'utf8')).slice(-4_000)}`
      throw thrown
    })
    return steps.map(({ commands, answer }, index) => ({ commands, answer: answer && adapt(answer), output: answers[index]! }))
  }

  /** Returns the commands of the pages of a file of tests that were not run. */
  const findLeft = async (file: keyof typeof walkedPages) => {
    const steps = await Promise.all(walkedPages[file].map(async (page) => stepsOf(await textOf(page))))
    return steps.flat().filter(({ commands }) => !ran.has(commands))
  }

  return { folder, dataDir, baseUrl, temporalAddress: ready['TEMPORAL_ADDRESS']!, ran, workDirOf, walk, findLeft }
}
