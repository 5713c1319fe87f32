// The programs that tests run against. Each is looked for, then fetched or built once into the cache of the embedded stack.
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../src/config.ts'
import { cacheDirOf, installInto } from '../../src/embedded/cache.ts'
import { goInstall } from '../../src/embedded/go-install.ts'
import { findProgram, isExecutable, runProgram } from '../../src/embedded/programs.ts'
import { sdkDownload } from '../../src/embedded/sdk-download.ts'
import { messageOf, UserError } from '../../src/errors.ts'

export interface ToolOptions {
  config: Config
  say: (line: string) => void
}

const given = async (variable: string): Promise<string | undefined> => {
  const path = process.env[variable]
  if (!path || (await isExecutable(path))) return path || undefined
  throw new UserError(`${variable} (${path}) is no program that can be run.`)
}

/** RELAY_TEST_SERVER_BIN, then our cache, the SDK's download, Maven. */
export const findTimeSkippingServer = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = await given('RELAY_TEST_SERVER_BIN')
  if (named) return named
  const target = join(cacheDirOf(config), 'test-server', '1.32.1')
  const cached = join(target, 'temporal-test-server')
  if (await isExecutable(cached)) return cached
  const downloaded = join(cacheDirOf(config), 'test-server', 'sdk')
  if (await isExecutable(downloaded)) return downloaded

  say("Fetching Temporal's time-skipping test server, once.")
  try {
    return await sdkDownload('time-skipping', downloaded, config)
  } catch (thrown) {
    say(`It cannot be fetched from here (${messageOf(thrown)}).`)
  }
  await fromMaven(target, { config, say })
  return cached
}

const recipe = (name: string) => fileURLToPath(new URL(`./temporal-test-server/${name}`, import.meta.url))

const fromMaven = async (target: string, { config, say }: ToolOptions): Promise<void> => {
  const { childEnvironment: env, EMBEDDED_BUILD_TIMEOUT_MS: timeoutMs } = config
  const [java, maven] = await Promise.all([findProgram('java', env.PATH), findProgram('mvn', env.PATH)])
  const otherwise = 'Install Java 17 or newer and Maven, or name a temporal-test-server in RELAY_TEST_SERVER_BIN.'
  if (!java || !maven)
    throw new UserError(`The time-skipping test server was not found, and there is no ${java ? 'Maven' : 'Java'} for it. ${otherwise}`)
  say('Taking the time-skipping test server from Maven: less than a minute, once.')
  try {
    await installInto(target, async (workDir) => {
      const server = join(workDir, 'server')
      await mkdir(server)
      // Maven writes beside the pom it is given
      await copyFile(recipe('pom.xml'), join(workDir, 'pom.xml'))
      const words = ['-q', '-B', '-f', join(workDir, 'pom.xml'), 'dependency:copy-dependencies', `-DoutputDirectory=${join(server, 'lib')}`]
      await runProgram(maven, words, { env, timeoutMs, onWait: (seconds) => say(`Still fetching the test server (${seconds} s).`) })
      await copyFile(recipe('temporal-test-server'), join(server, 'temporal-test-server'))
      return server
    })
  } catch (thrown) {
    throw new UserError(`The time-skipping test server cannot be had from Maven. ${otherwise} Maven said: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
}

/** An S3 server: VERSITYGW_BIN, then PATH, our cache, a build with Go. */
export const findVersitygw = async ({ config, say }: ToolOptions): Promise<string> => {
  const found = (await given('VERSITYGW_BIN')) ?? (await findProgram('versitygw', config.childEnvironment.PATH))
  if (found) return found
  const target = join(cacheDirOf(config), 'bin', 'versitygw')
  if (await isExecutable(target)) return target
  return goInstall({
    name: 'versitygw, the S3 server of the tests,',
    module: 'github.com/versity/versitygw/cmd/versitygw@v1.8.0',
    flags: ['-ldflags=-s -w'],
    duration: 'about 3 minutes on 2 cores',
    target,
    otherwise: 'Install versitygw (and put it on PATH or name it in VERSITYGW_BIN) or Go 1.24 or newer.',
    config,
    say,
  })
}

// not 3.37.0: its telemetry asks for a package newer than some registries have
const azuriteVersion = '3.36.0'

/** The Blob storage server of the tests: RELAY_AZURITE_BIN, then our cache, then npm. Installed apart from the project: its 370 packages are no concern of ours. */
export const findAzurite = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = await given('RELAY_AZURITE_BIN')
  if (named) return named
  const { childEnvironment: env, EMBEDDED_BUILD_TIMEOUT_MS: timeoutMs } = config
  const target = join(cacheDirOf(config), 'azurite', azuriteVersion)
  const program = join(target, 'node_modules', '.bin', 'azurite-blob')
  if (await isExecutable(program)) return program
  const otherwise = 'Name an azurite-blob in RELAY_AZURITE_BIN.'
  const npm = await findProgram('npm', env.PATH)
  if (!npm)
    throw new UserError(`azurite, the Blob storage server of the tests, was not found, and there is no npm to take it from. ${otherwise}`)
  say('Taking azurite, the Blob storage server of the tests, from npm: about 2 minutes, once.')
  try {
    await installInto(target, async (workDir) => {
      const words = ['install', '--prefix', workDir, '--no-audit', '--no-fund', '--ignore-scripts', `azurite@${azuriteVersion}`]
      await runProgram(npm, words, { env, timeoutMs, onWait: (seconds) => say(`Still taking azurite (${seconds} s).`) })
      return workDir
    })
  } catch (thrown) {
    throw new UserError(`azurite cannot be had from npm. ${otherwise} npm said: ${messageOf(thrown)}`, { cause: thrown })
  }
  return program
}

/** OpenSSH's server: PATH (and /usr/sbin, which PATH seldom names), then Debian's package where we may install it. */
export const findSshd = async ({ config, say }: ToolOptions): Promise<string> => {
  const { childEnvironment: env } = config
  const lookUp = () => findProgram('sshd', `/usr/sbin:${env.PATH}`)
  const found = await lookUp()
  if (found) return found
  const aptGet = await findProgram('apt-get', env.PATH)
  if (!aptGet || process.getuid?.() !== 0)
    throw new UserError('sshd, the SFTP server of the tests, was not found: install openssh-server (it need not be running).')
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
  if (!installed) throw new UserError('openssh-server is installed, and yet there is no sshd.')
  return installed
}

const policyFile = '/usr/sbin/policy-rc.d'

// Debian asks this program whether a package may start its service: 101 is no. One that is there already is somebody's decision.
const withoutStartingServices = async (work: () => Promise<void>): Promise<void> => {
  const made = await writeFile(policyFile, '#!/bin/sh\nexit 101\n', { flag: 'wx', mode: 0o755 }).then(
    () => true,
    () => false,
  )
  try {
    await work()
  } finally {
    if (made) await rm(policyFile, { force: true })
  }
}
