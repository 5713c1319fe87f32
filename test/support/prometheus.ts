import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { findFreePort } from '../../src/programs/ports.ts'
import { runProgram } from '../../src/programs/programs.ts'
import { startServer } from './server-program.ts'

const deploy = fileURLToPath(new URL('../../deploy/monitoring/', import.meta.url))
export const rulesFile = join(deploy, 'relay.rules.yml')
export const prometheusConfigFile = join(deploy, 'prometheus.yml')
export const dashboardFile = join(deploy, 'relay-dashboard.json')

// One run of promtool takes a second. A busy machine may need much longer.
const timeoutMs = 120_000

const programsDir = () => {
  const dir = process.env.TEST_PROMETHEUS_DIR
  if (!dir) throw new Error('Prometheus was not found. The set-up of the tests says why.')
  return dir
}

/** Runs promtool. @returns its output @throws with the end of its output if it finds a mistake */
export const promtool = (...args: string[]): Promise<string> =>
  runProgram(join(programsDir(), 'promtool'), args, { env: { PATH: process.env.PATH! }, timeoutMs })

/** Runs promtool on a file with this content, and removes the file. */
export const promtoolOn = async (command: [string, string], content: string): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'relay-promtool-'))
  try {
    const file = join(dir, 'content.yml')
    await writeFile(file, content)
    return await promtool(...command, file)
  } finally {
    await rm(dir, { recursive: true })
  }
}

export interface Prometheus extends AsyncDisposable {
  /** Calls the HTTP API, and returns `data` of the answer. */
  get<Data>(path: string): Promise<Data>
  stop(): Promise<void>
}

/** The example configuration with the addresses of a test, and so quick that the test need not wait. */
const configFor = async (hosts: Record<string, string>): Promise<string> => {
  const config = parse(await readFile(prometheusConfigFile, 'utf8')) as {
    global: Record<string, string>
    rule_files: string[]
    scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[]
  }
  config.global = { scrape_interval: '1s', evaluation_interval: '1s' }
  expect(config.rule_files).toEqual([basename(rulesFile)])
  expect(config.scrape_configs.map(({ job_name }) => job_name)).toEqual(Object.keys(hosts))
  for (const scrape of config.scrape_configs) scrape.static_configs = [{ targets: [hosts[scrape.job_name]!] }]
  return stringify(config)
}

/**
 * Starts Prometheus with the example configuration and the rules.
 * @param hosts host and port of each job
 * @param adapt changes the rules
 */
export const startPrometheus = async (hosts: Record<string, string>, adapt = (rules: string) => rules): Promise<Prometheus> => {
  const dir = await mkdtemp(join(tmpdir(), 'relay-prometheus-'))
  await writeFile(join(dir, 'prometheus.yml'), await configFor(hosts))
  await writeFile(join(dir, basename(rulesFile)), adapt(await readFile(rulesFile, 'utf8')))
  const port = await findFreePort()
  const server = await startServer(
    join(programsDir(), 'prometheus'),
    [`--config.file=${join(dir, 'prometheus.yml')}`, `--storage.tsdb.path=${join(dir, 'data')}`, `--web.listen-address=127.0.0.1:${port}`],
    { name: 'Prometheus', port, logFile: join(dir, 'log') },
  )
  const stop = async () => {
    await server.stop()
    await rm(dir, { recursive: true })
  }
  return {
    get: async <Data>(path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
      // It answers 503 until it has read its storage.
      if (!response.ok) return {} as Data
      return ((await response.json()) as { data: Data }).data
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
