// Programs that tests run against. A program that is not found is downloaded or built once into the cache of the embedded stack.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../src/config.ts'
import { buildWithGo, cacheDirOf, downloadFromSdk, installInto } from '../../src/embedded/install-program.ts'
import { findProgram, isExecutable, runProgram } from '../../src/embedded/programs.ts'
import { messageOf, UserError } from '../../src/errors.ts'

export interface ToolOptions {
  config: Config
  say: (line: string) => void
}

const programFrom = async (variable: string): Promise<string | undefined> => {
  const path = process.env[variable]
  if (!path || (await isExecutable(path))) return path || undefined
  throw new UserError(`${variable} (${path}) is not an executable file.`)
}

/** Returns the time-skipping server: RELAY_TEST_SERVER_BIN, the cache, a download by the SDK, or Maven, in this order. */
export const findTimeSkippingServer = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = await programFrom('RELAY_TEST_SERVER_BIN')
  if (named) return named
  const target = join(cacheDirOf(config), 'test-server', '1.32.1')
  const cached = join(target, 'temporal-test-server')
  if (await isExecutable(cached)) return cached
  const downloaded = join(cacheDirOf(config), 'test-server', 'sdk')
  if (await isExecutable(downloaded)) return downloaded

  say("Downloading Temporal's time-skipping test server, once.")
  try {
    return await downloadFromSdk('time-skipping', downloaded, config)
  } catch (thrown) {
    say(`The download failed (${messageOf(thrown)}).`)
  }
  await fromMaven(target, { config, say })
  return cached
}

const buildFile = (name: string) => fileURLToPath(new URL(`./temporal-test-server/${name}`, import.meta.url))

const fromMaven = async (target: string, { config, say }: ToolOptions): Promise<void> => {
  const { childEnvironment: env, EMBEDDED_BUILD_TIMEOUT_MS: timeoutMs } = config
  const [java, maven] = await Promise.all([findProgram('java', env.PATH), findProgram('mvn', env.PATH)])
  const remedy = 'Install Java 17 or newer and Maven, or set RELAY_TEST_SERVER_BIN to a temporal-test-server.'
  if (!java || !maven)
    throw new UserError(
      `The time-skipping test server was not found, and ${java ? 'Maven' : 'Java'} is not installed to download it. ${remedy}`,
    )
  say('Downloading the time-skipping test server with Maven: less than a minute, once.')
  try {
    await installInto(target, async (workDir) => {
      const server = join(workDir, 'server')
      await mkdir(server)
      // Maven writes files next to its pom.xml.
      await copyFile(buildFile('pom.xml'), join(workDir, 'pom.xml'))
      const options = [
        '-q',
        '-B',
        '-f',
        join(workDir, 'pom.xml'),
        'dependency:copy-dependencies',
        `-DoutputDirectory=${join(server, 'lib')}`,
      ]
      await runProgram(maven, options, { env, timeoutMs, onWait: (seconds) => say(`Still downloading the test server (${seconds} s).`) })
      await copyFile(buildFile('temporal-test-server'), join(server, 'temporal-test-server'))
      return server
    })
  } catch (thrown) {
    throw new UserError(`Maven could not download the time-skipping test server. ${remedy} Output of Maven: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
}

/** Returns the S3 server: VERSITYGW_BIN, PATH, the cache, or a build with Go, in this order. */
export const findVersitygw = async ({ config, say }: ToolOptions): Promise<string> => {
  const found = (await programFrom('VERSITYGW_BIN')) ?? (await findProgram('versitygw', config.childEnvironment.PATH))
  if (found) return found
  const target = join(cacheDirOf(config), 'bin', 'versitygw')
  if (await isExecutable(target)) return target
  return buildWithGo({
    name: 'versitygw, the S3 server of the tests,',
    module: 'github.com/versity/versitygw/cmd/versitygw@v1.8.0',
    flags: ['-ldflags=-s -w'],
    duration: 'about 3 minutes on 2 cores',
    target,
    remedy: 'Install versitygw (on PATH, or set VERSITYGW_BIN) or Go 1.24 or newer.',
    config,
    say,
  })
}

// Not 3.37.0: its telemetry requires a package version that some registries lack.
const azuriteVersion = '3.36.0'

/**
 * Returns the Blob storage server: RELAY_AZURITE_BIN, the cache, or npm, in this order. It is no dependency of the project, because it
 * brings 370 packages.
 */
export const findAzurite = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = await programFrom('RELAY_AZURITE_BIN')
  if (named) return named
  const { childEnvironment: env, EMBEDDED_BUILD_TIMEOUT_MS: timeoutMs } = config
  const target = join(cacheDirOf(config), 'azurite', azuriteVersion)
  const program = join(target, 'node_modules', '.bin', 'azurite-blob')
  if (await isExecutable(program)) return program
  const remedy = 'Set RELAY_AZURITE_BIN to an azurite-blob.'
  const npm = await findProgram('npm', env.PATH)
  if (!npm)
    throw new UserError(`azurite, the Blob storage server of the tests, was not found, and npm is not installed to download it. ${remedy}`)
  say('Installing azurite, the Blob storage server of the tests, with npm: about 2 minutes, once.')
  try {
    await installInto(target, async (workDir) => {
      const options = ['install', '--prefix', workDir, '--no-audit', '--no-fund', '--ignore-scripts', `azurite@${azuriteVersion}`]
      await runProgram(npm, options, { env, timeoutMs, onWait: (seconds) => say(`Still installing azurite (${seconds} s).`) })
      return workDir
    })
  } catch (thrown) {
    throw new UserError(`npm could not install azurite. ${remedy} Output of npm: ${messageOf(thrown)}`, { cause: thrown })
  }
  return program
}

const browserNames = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
// Not a dependency of the project, because it is a browser of 67 MB that most machines do not need.
const browserPackage = { name: '@sparticuz/chromium', version: '153.0.0' }
const unpackBrowser = `import('${browserPackage.name}').then(({ default: chromium }) => chromium.executablePath())`

/** Returns a Chromium: RELAY_BROWSER_BIN, PATH, the cache, or the one in an npm package for Linux, in this order. */
export const findBrowser = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = await programFrom('RELAY_BROWSER_BIN')
  if (named) return named
  const { childEnvironment: env, EMBEDDED_BUILD_TIMEOUT_MS: timeoutMs } = config
  for (const name of browserNames) {
    const found = await findProgram(name, env.PATH)
    if (found) return found
  }
  const target = join(cacheDirOf(config), 'browser', browserPackage.version)
  const program = join(target, 'chromium')
  if (await isExecutable(program)) return program
  const remedy = 'Install Chromium or Chrome (on PATH, or set RELAY_BROWSER_BIN).'
  const npm = await findProgram('npm', env.PATH)
  if (!npm) throw new UserError(`The browser of the tests was not found, and npm is not installed to download one. ${remedy}`)
  say('Installing Chromium for the tests of the console with npm: about a minute, once.')
  try {
    await installInto(target, async (workDir) => {
      const onWait = (seconds: number) => say(`Still installing Chromium (${seconds} s).`)
      const { name, version } = browserPackage
      await runProgram(npm, ['install', '--prefix', workDir, '--no-audit', '--no-fund', `${name}@${version}`], { env, timeoutMs, onWait })
      // The package unpacks the browser into the directory for temporary files.
      const nodeOptions = { env: { ...env, TMPDIR: workDir }, timeoutMs, cwd: workDir, onWait }
      await runProgram(process.execPath, ['--eval', unpackBrowser], nodeOptions)
      return workDir
    })
  } catch (thrown) {
    throw new UserError(`npm could not install Chromium. ${remedy} Output of npm: ${messageOf(thrown)}`, { cause: thrown })
  }
  return program
}

const requirements = fileURLToPath(new URL('./api-tools/requirements.txt', import.meta.url))

/**
 * Returns the folder of Python packages that check openapi.json from outside: RELAY_API_TOOLS_DIR, the cache, or an installation with pip,
 * in this order. Run them with `python3 -m NAME` and the folder as PYTHONPATH.
 */
export const findApiTools = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = process.env['RELAY_API_TOOLS_DIR']
  if (named) return named
  const { childEnvironment: env, EMBEDDED_BUILD_TIMEOUT_MS: timeoutMs } = config
  const remedy = 'Install Python 3.10 or newer with pip, or set RELAY_API_TOOLS_DIR to a folder with the packages of requirements.txt.'
  const python = await findProgram('python3', env.PATH)
  if (!python) throw new UserError(`The checks of the API description need Python. ${remedy}`)
  const version = await runProgram(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], { env, timeoutMs })
  const digest = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex')
    .slice(0, 12)
  const target = join(cacheDirOf(config), 'api-tools', `${digest}-python${version.trim()}`)
  if (existsSync(target)) return target
  say('Installing the checks of the API description (schemathesis and others) with pip: less than a minute, once.')
  const options = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-warn-conflicts', '--retries', '5', '--no-deps']
  const install = () =>
    installInto(target, async (workDir) => {
      const packages = join(workDir, 'packages')
      const onWait = (seconds: number) => say(`Still installing the checks of the API description (${seconds} s).`)
      await runProgram(python, [...options, '--target', packages, '--requirement', requirements], { env, timeoutMs, onWait })
      return packages
    })
  try {
    return await install().catch(install)
  } catch (thrown) {
    throw new UserError(`pip could not install the checks of the API description. ${remedy} Output of pip: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
}

/** Returns sshd: from PATH, from /usr/sbin, or from Debian's package if this process may install it. */
export const findSshd = async ({ config, say }: ToolOptions): Promise<string> => {
  const { childEnvironment: env } = config
  const lookUp = () => findProgram('sshd', `/usr/sbin:${env.PATH}`)
  const found = await lookUp()
  if (found) return found
  const aptGet = await findProgram('apt-get', env.PATH)
  if (!aptGet || process.getuid?.() !== 0)
    throw new UserError('sshd, the SFTP server of the tests, was not found. Install openssh-server (it need not be running).')
  say('Installing openssh-server for the tests (the service is not started).')
  try {
    await withoutStartingServices(async () => {
      const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' }, timeoutMs: config.EMBEDDED_BUILD_TIMEOUT_MS }
      const lock = ['-o', 'DPkg::Lock::Timeout=120']
      await runProgram(aptGet, [...lock, 'update'], options)
      await runProgram(aptGet, [...lock, 'install', '-y', '--no-install-recommends', 'openssh-server'], options)
    })
  } catch (thrown) {
    throw new UserError(`openssh-server could not be installed: ${messageOf(thrown)}`, { cause: thrown })
  }
  const installed = await lookUp()
  if (!installed) throw new UserError('openssh-server is installed, but sshd was not found.')
  return installed
}

const policyFile = '/usr/sbin/policy-rc.d'

// Debian runs this program to decide if a package may start its service; 101 means no. An existing one is kept: an administrator made it.
const withoutStartingServices = async (work: () => Promise<void>): Promise<void> => {
  const isCreated = await writeFile(policyFile, '#!/bin/sh\nexit 101\n', { flag: 'wx', mode: 0o755 }).then(
    () => true,
    () => false,
  )
  try {
    await work()
  } finally {
    if (isCreated) await rm(policyFile, { force: true })
  }
}

/**
 * Returns the folder with the programs prometheus and promtool: RELAY_PROMETHEUS_DIR, a folder of PATH, the cache, or the files of Debian's
 * package, in this order. The package is unpacked and not installed, so no service is started and no rights are needed.
 */
export const findPrometheus = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = process.env['RELAY_PROMETHEUS_DIR']
  if (named) return named
  const { childEnvironment: env, EMBEDDED_DOWNLOAD_TIMEOUT_MS: timeoutMs } = config
  const [prometheus, promtool] = await Promise.all([findProgram('prometheus', env.PATH), findProgram('promtool', env.PATH)])
  if (prometheus && promtool && dirname(prometheus) === dirname(promtool)) return dirname(promtool)
  const target = join(cacheDirOf(config), 'prometheus', 'debian')
  if (await isExecutable(join(target, 'promtool'))) return target

  const remedy = 'Install Prometheus (prometheus and promtool on PATH), or set RELAY_PROMETHEUS_DIR to the folder with both programs.'
  const [aptGet, dpkgDeb] = await Promise.all([findProgram('apt-get', env.PATH), findProgram('dpkg-deb', env.PATH)])
  if (!aptGet || !dpkgDeb) throw new UserError(`Prometheus, which checks the alert rules, was not found. ${remedy}`)
  say("Downloading Debian's package of Prometheus (19 MB) to check the alert rules: a few seconds, once.")
  const download = (cwd: string) => runProgram(aptGet, ['download', 'prometheus'], { env, timeoutMs, cwd })
  try {
    await installInto(target, async (workDir) => {
      await download(workDir).catch(async (thrown: unknown) => {
        // The list of packages may be missing or older than the package. Only root may fetch it.
        if (process.getuid?.() !== 0) throw thrown
        await runProgram(aptGet, ['-o', 'DPkg::Lock::Timeout=120', 'update'], { env, timeoutMs: config.EMBEDDED_BUILD_TIMEOUT_MS })
        await download(workDir)
      })
      const packages = (await readdir(workDir)).filter((name) => name.endsWith('.deb'))
      for (const name of packages) await runProgram(dpkgDeb, ['--extract', join(workDir, name), join(workDir, 'files')], { env, timeoutMs })
      return join(workDir, 'files', 'usr', 'bin')
    })
  } catch (thrown) {
    throw new UserError(`Debian's package of Prometheus could not be downloaded. ${remedy} Output: ${messageOf(thrown)}`, { cause: thrown })
  }
  return target
}
