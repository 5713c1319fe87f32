// Programs that tests run against. A program that is not found is downloaded or built once into the cache of the embedded stack.
// set-up.ts asks only for those that no TEST_* variable names.
import { createHash } from 'node:crypto'
import { existsSync, globSync } from 'node:fs'
import { copyFile, mkdir, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pLimit from 'p-limit'
import { messageOf, UserError } from '../../src/base/errors.ts'
import type { Config } from '../../src/config/config.ts'
import {
  buildTimeoutMs,
  downloadTimeoutMs,
  buildWithGo,
  cacheDirOf,
  downloadFromSdk,
  installInto,
} from '../../src/programs/install-program.ts'
import { findProgram, isExecutable, runProgram } from '../../src/programs/programs.ts'
import { buildTemporalServer, findTemporalServer, type TemporalPrograms } from '../../src/temporal-server/find-programs.ts'

export interface ToolOptions {
  config: Config
  say: (line: string) => void
}

/** Returns the time-skipping server: the cache, a download by the SDK, or Maven, in this order. */
export const findTimeSkippingServer = async ({ config, say }: ToolOptions): Promise<string> => {
  const target = join(cacheDirOf(config), 'test-server', '1.32.1')
  const cached = join(target, 'temporal-test-server')
  if (await isExecutable(cached)) return cached
  const downloaded = join(cacheDirOf(config), 'test-server', 'sdk')
  if (await isExecutable(downloaded)) return downloaded

  say("Downloading Temporal's time-skipping test server, once.")
  try {
    return await downloadFromSdk('time-skipping', downloaded, config)
  } catch (thrown) {
    say(`${messageOf(thrown)}.`)
  }
  await fromMaven(target, { config, say })
  return cached
}

const buildFile = (name: string) => fileURLToPath(new URL(`./temporal-test-server/${name}`, import.meta.url))

const fromMaven = async (target: string, { config, say }: ToolOptions): Promise<void> => {
  const env = config.childEnvironment
  const [java, maven] = await Promise.all([findProgram('java', env.PATH), findProgram('mvn', env.PATH)])
  const remedy = 'Install Java 17 or newer and Maven, or set TEST_TIME_SKIPPING_BIN to a temporal-test-server.'
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
      await runProgram(maven, options, {
        env,
        timeoutMs: buildTimeoutMs,
        onWait: (seconds) => say(`Still downloading the test server (${seconds} s).`),
      })
      await copyFile(buildFile('temporal-test-server'), join(server, 'temporal-test-server'))
      return server
    })
  } catch (thrown) {
    throw new UserError(`Maven could not download the time-skipping test server. ${remedy} Output of Maven: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
}

/** Returns the S3 server: PATH, the cache, or a build with Go, in this order. */
export const findVersitygw = async ({ config, say }: ToolOptions): Promise<string> => {
  const found = await findProgram('versitygw', config.childEnvironment.PATH)
  if (found) return found
  const target = join(cacheDirOf(config), 'bin', 'versitygw')
  if (await isExecutable(target)) return target
  return buildWithGo({
    name: 'versitygw, the S3 server of the tests,',
    module: 'github.com/versity/versitygw/cmd/versitygw@v1.8.0',
    flags: ['-ldflags=-s -w'],
    duration: 'about 3 minutes on 2 cores',
    target,
    remedy: 'Install versitygw (on PATH, or set TEST_VERSITYGW_BIN) or Go 1.24 or newer.',
    config,
    say,
  })
}

interface GoProgram {
  program: string
  /** Environment variable with the path of the program. */
  variable: string
  /** Its purpose here, after `which`. */
  use: string
  /** The module of its main package. */
  module: string
  version: string
  /** How long its build takes. */
  duration: string
}

/**
 * Returns one version of a program: the one that its variable names, the cache, or a build with Go, in this order. Not the one on PATH:
 * tests compare the output of this version.
 */
const findGoProgram = async (goProgram: GoProgram, { config, say }: ToolOptions): Promise<string> => {
  const { program, variable, use, module, version, duration } = goProgram
  const named = process.env[variable]
  if (named) return named
  const target = join(cacheDirOf(config), program, version, program)
  if (await isExecutable(target)) return target
  return buildWithGo({
    name: `${program}, which ${use},`,
    module: `${module}@${version}`,
    flags: ['-ldflags=-s -w'],
    duration,
    target,
    remedy: `Set ${variable} to ${program} ${version}, or install Go 1.26 or newer.`,
    config,
    say,
  })
}

const helm = {
  program: 'helm',
  variable: 'TEST_HELM_BIN',
  use: 'renders the chart in deploy/helm',
  module: 'helm.sh/helm/v3/cmd/helm',
  version: 'v3.22.0',
  duration: 'about 2 minutes on 2 cores',
}

const kubeconform = {
  program: 'kubeconform',
  variable: 'TEST_KUBECONFORM_BIN',
  use: 'checks the rendered chart',
  module: 'github.com/yannh/kubeconform/cmd/kubeconform',
  version: 'v0.8.0',
  duration: 'less than a minute',
}

const oapiCodegen = {
  program: 'oapi-codegen',
  variable: 'TEST_OAPI_CODEGEN_BIN',
  use: 'generates a client in Go from openapi.json',
  module: 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen',
  version: 'v2.8.2',
  duration: 'about a minute on 2 cores',
}

// Its last version: the project takes no more changes.
const minio = {
  program: 'minio',
  variable: 'TEST_MINIO_BIN',
  use: 'runs the lifecycle of buckets',
  module: 'github.com/minio/minio',
  version: 'v0.0.0-20260212201848-7aac2a2c5b7c',
  duration: 'about 5 minutes on 2 cores',
}

export const findHelm = (options: ToolOptions): Promise<string> => findGoProgram(helm, options)
export const findKubeconform = (options: ToolOptions): Promise<string> => findGoProgram(kubeconform, options)
export const findMinio = (options: ToolOptions): Promise<string> => findGoProgram(minio, options)
export const findOapiCodegen = (options: ToolOptions): Promise<string> => findGoProgram(oapiCodegen, options)

const openApiGenerator = 'org.openapitools:openapi-generator-cli:7.25.0'
const dependencyPlugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1'

/**
 * Returns a folder with openapi-generator-cli.jar and, in `lib`, the packages that its clients in Java need: the cache, or Maven.
 * @param description openapi.json: the generator names the packages beside a client
 */
export const findOpenApiGenerator = async (description: string, { config, say }: ToolOptions): Promise<string> => {
  const env = config.childEnvironment
  const target = join(cacheDirOf(config), 'openapi-generator', '7.25.0')
  if (existsSync(target)) return target
  const remedy = 'Install a JDK of 17 or newer and Maven.'
  const [java, maven] = await Promise.all([findProgram('java', env.PATH), findProgram('mvn', env.PATH)])
  if (!java || !maven)
    throw new UserError(`openapi-generator was not found, and ${java ? 'Maven' : 'Java'} is not installed to download it. ${remedy}`)
  say('Downloading openapi-generator with Maven (32 MB): less than a minute, once.')
  try {
    return await installInto(target, async (workDir) => {
      const folder = join(workDir, 'generator')
      const options = { env, timeoutMs: buildTimeoutMs, cwd: workDir }
      const copy = [`${dependencyPlugin}:copy`, `-Dartifact=${openApiGenerator}`, '-Dmdep.stripVersion=true']
      await runProgram(maven, ['-q', '-B', ...copy, `-DoutputDirectory=${folder}`], options)
      const jar = join(folder, 'openapi-generator-cli.jar')
      await runProgram(java, ['-jar', jar, 'generate', '-i', description, '-g', 'java', '-o', join(workDir, 'client')], options)
      const copyAll = ['-f', join(workDir, 'client/pom.xml'), `${dependencyPlugin}:copy-dependencies`, '-DincludeScope=compile']
      await runProgram(maven, ['-q', '-B', ...copyAll, `-DoutputDirectory=${join(folder, 'lib')}`], options)
      return folder
    })
  } catch (thrown) {
    throw new UserError(`openapi-generator could not be downloaded. ${remedy} Output: ${messageOf(thrown)}`, { cause: thrown })
  }
}

/** Returns the folder with the programs temporal-server and temporal-sql-tool: TEST_TEMPORAL_SERVER_DIR, or as the relay finds them. */
export const temporalServerFolder = async ({ config, say }: ToolOptions): Promise<string> => {
  const named = process.env['TEST_TEMPORAL_SERVER_DIR']
  const { server } = await findTemporalServer({ config: { ...config, ...(named && { RELAY_TEMPORAL_SERVER_DIR: named }) }, say })
  return dirname(server)
}

/** Returns Temporal of the minor version before that of the relay: the cache, or a build with Go 1.26.8, which is too old for 1.30.9. */
export const findFormerTemporalServer = (options: ToolOptions): Promise<TemporalPrograms> => buildTemporalServer('1.30.8', options)

/** The oldest version of Kubernetes that the chart accepts, and a recent one, which lacks the kinds and versions removed since. */
export const kubernetesVersions = ['1.27.0', '1.37.2'] as const

const prometheusOperator = 'github.com/prometheus-operator/prometheus-operator@v0.85.0/example/prometheus-operator-crd'

// Files of Go modules, and their names in the folder.
const kubernetesApi: Record<string, string> = {
  ...Object.fromEntries(
    kubernetesVersions.flatMap((version) => [
      [`${version}.json`, `k8s.io/kubernetes@v${version}/api/openapi-spec/swagger.json`],
      [`${version}.go`, `k8s.io/kubernetes@v${version}/pkg/generated/openapi/zz_generated.openapi.go`],
    ]),
  ),
  'scaled-objects.yaml': 'github.com/kedacore/keda/v2@v2.21.0/config/crd/bases/keda.sh_scaledobjects.yaml',
  'service-monitors.yaml': `${prometheusOperator}/monitoring.coreos.com_servicemonitors.yaml`,
  'prometheus-rules.yaml': `${prometheusOperator}/monitoring.coreos.com_prometheusrules.yaml`,
}

const moduleOf = (file: string): string => /^.+?@[^/]+/.exec(file)![0]

/**
 * Returns the folder with the descriptions of the APIs of Kubernetes, KEDA and the Prometheus Operator: the cache, or a download by Go.
 */
export const findKubernetesApi = async ({ config, say }: ToolOptions): Promise<string> => {
  const env = config.childEnvironment
  const digest = createHash('sha256').update(JSON.stringify(kubernetesApi)).digest('hex').slice(0, 12)
  const target = join(cacheDirOf(config), 'kubernetes-api', digest)
  if (existsSync(target)) return target
  const remedy = `Install Go, or set TEST_KUBERNETES_API_DIR to a folder with ${Object.keys(kubernetesApi).join(', ')}.`
  const go = await findProgram('go', env.PATH)
  if (!go) throw new UserError(`The descriptions of the Kubernetes API were not found, and Go is not installed to download them. ${remedy}`)
  say('Downloading the descriptions of the Kubernetes API with Go (46 MB) to check the rendered chart: less than a minute, once.')
  try {
    await installInto(target, async (workDir) => {
      // Not the cache of the user: the modules take 300 MB, of which a few files are kept.
      const modules = join(workDir, 'modules')
      const command = ['mod', 'download', '-modcacherw', ...new Set(Object.values(kubernetesApi).map(moduleOf))]
      await runProgram(go, command, { env: { ...env, GOMODCACHE: modules }, timeoutMs: buildTimeoutMs, cwd: workDir })
      const folder = join(workDir, 'api')
      await mkdir(folder)
      for (const [name, file] of Object.entries(kubernetesApi)) await copyFile(join(modules, file), join(folder, name))
      return folder
    })
  } catch (thrown) {
    throw new UserError(`Go could not download the descriptions of the Kubernetes API. ${remedy} Output of Go: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
  return target
}

interface NpmProgram {
  /** Name of the package. */
  name: string
  version: string
  /** File in its `node_modules/.bin`. */
  program: string
  /** What it is, for messages. */
  what: string
  remedy: string
}

/** Returns a program of a package: the cache, or npm. None is a dependency of the project, because each brings hundreds of packages. */
const fromNpm = async ({ name, version, program, what, remedy }: NpmProgram, { config, say }: ToolOptions): Promise<string> => {
  const env = config.childEnvironment
  const target = join(cacheDirOf(config), name.split('/').at(-1)!, version)
  const found = join(target, 'node_modules', '.bin', program)
  if (await isExecutable(found)) return found
  const npm = await findProgram('npm', env.PATH)
  if (!npm) throw new UserError(`${program}, ${what}, was not found, and npm is not installed to download it. ${remedy}`)
  say(`Installing ${program}, ${what}, with npm: less than 2 minutes, once.`)
  try {
    await installInto(target, async (workDir) => {
      const options = ['install', '--prefix', workDir, '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${version}`]
      await runProgram(npm, options, {
        env,
        timeoutMs: buildTimeoutMs,
        onWait: (seconds) => say(`Still installing ${program} (${seconds} s).`),
      })
      return workDir
    })
  } catch (thrown) {
    throw new UserError(`npm could not install ${program}. ${remedy} Output of npm: ${messageOf(thrown)}`, { cause: thrown })
  }
  return found
}

/** Returns the Blob storage server. */
export const findAzurite = (options: ToolOptions): Promise<string> =>
  fromNpm(
    {
      name: 'azurite',
      // Not 3.37.0: its telemetry requires a package version that some registries lack.
      version: '3.36.0',
      program: 'azurite-blob',
      what: 'the Blob storage server of the tests',
      remedy: 'Set TEST_AZURITE_BIN to an azurite-blob.',
    },
    options,
  )

/** Returns the linter of descriptions of APIs. */
export const findSpectral = (options: ToolOptions): Promise<string> =>
  fromNpm(
    {
      name: '@stoplight/spectral-cli',
      version: '6.16.3',
      program: 'spectral',
      what: 'the linter of the API description',
      remedy: 'Set TEST_SPECTRAL_BIN to a spectral.',
    },
    options,
  )

const browserNames = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
// Not a dependency of the project, because it is a browser of 67 MB that most machines do not need.
const browserPackage = { name: '@sparticuz/chromium', version: '153.0.0' }
const unpackBrowser = `import('${browserPackage.name}').then(({ default: chromium }) => chromium.executablePath())`

/** Returns a Chromium: PATH, the cache, or the one in an npm package for Linux, in this order. */
export const findBrowser = async ({ config, say }: ToolOptions): Promise<string> => {
  const env = config.childEnvironment
  for (const name of browserNames) {
    const found = await findProgram(name, env.PATH)
    if (found) return found
  }
  const target = join(cacheDirOf(config), 'browser', browserPackage.version)
  const program = join(target, 'chromium')
  if (await isExecutable(program)) return program
  const remedy = 'Install Chromium or Chrome (on PATH, or set TEST_BROWSER_BIN).'
  const npm = await findProgram('npm', env.PATH)
  if (!npm) throw new UserError(`The browser of the tests was not found, and npm is not installed to download one. ${remedy}`)
  say('Installing Chromium for the tests of the console with npm: about a minute, once.')
  try {
    await installInto(target, async (workDir) => {
      const onWait = (seconds: number) => say(`Still installing Chromium (${seconds} s).`)
      const { name, version } = browserPackage
      await runProgram(npm, ['install', '--prefix', workDir, '--no-audit', '--no-fund', `${name}@${version}`], {
        env,
        timeoutMs: buildTimeoutMs,
        onWait,
      })
      // The package unpacks the browser into the directory for temporary files.
      const nodeOptions = { env: { ...env, TMPDIR: workDir }, timeoutMs: buildTimeoutMs, cwd: workDir, onWait }
      await runProgram(process.execPath, ['--eval', unpackBrowser], nodeOptions)
      return workDir
    })
  } catch (thrown) {
    throw new UserError(`npm could not install Chromium. ${remedy} Output of npm: ${messageOf(thrown)}`, { cause: thrown })
  }
  return program
}

// The installation that ends first would allow services to the others.
const oneAtATime = pLimit(1)

/** The programs of Debian that tests use. The workflow test.yml installs their packages. */
export const debianPrograms = {
  sshd: { package: 'openssh-server', use: 'the SFTP server of the tests' },
  haproxy: { package: 'haproxy', use: 'the reverse proxy of the tests' },
  nginx: { package: 'nginx-light', use: 'another reverse proxy of the tests' },
  pgbouncer: { package: 'pgbouncer', use: 'the connection pooler of the tests' },
  // The PostgreSQL of the npm package lacks it.
  pg_basebackup: { package: 'postgresql', use: 'a program of PostgreSQL for backups' },
  proftpd: { package: 'proftpd-mod-crypto', use: 'another SFTP server of the tests' },
  exim4: { package: 'exim4-daemon-light', use: 'a mail server of the tests' },
  etcd: { package: 'etcd-server', use: 'the database of the API server of Kubernetes' },
  java: { package: 'default-jdk-headless', use: 'which runs the receiver in Java of docs/connectors/webhook.md' },
}

/** The tools of containers that a test starts itself. Only root gets them: CI has an engine. */
const enginePrograms = {
  dockerd: { package: 'docker.io', use: 'the container engine of the tests' },
  mmdebstrap: { package: 'mmdebstrap', use: 'which makes the base of images' },
  'systemd-nspawn': { package: 'systemd-container', use: 'which boots systemd for the units of docs/install.md' },
}

const installable = { ...debianPrograms, ...enginePrograms }

/** Where Debian installs programs that are not on PATH. */
const debianFolders = () => [...globSync('/usr/lib/postgresql/*/bin'), '/usr/sbin'].toSorted().toReversed()

/**
 * Returns a program that is in a folder of Debian or on PATH, or that root can install from Debian. Services are not started.
 * @throws `UserError` that says what to install
 */
export const fromDebian = async (name: keyof typeof installable, { config, say }: ToolOptions): Promise<string> => {
  const { package: debianPackage, use } = installable[name]
  const { childEnvironment: env } = config
  const lookUp = () => findProgram(name, [...debianFolders(), env.PATH].join(':'))
  const found = await lookUp()
  if (found) return found
  const aptGet = await findProgram('apt-get', env.PATH)
  if (!aptGet || process.getuid?.() !== 0)
    throw new UserError(`${name}, ${use}, was not found. Install ${debianPackage} (it need not be running).`)
  say(`Installing Debian's package ${debianPackage} with apt-get, because the tests need ${name} and run as root (no service is started).`)
  try {
    await oneAtATime(() =>
      withoutStartingServices(async () => {
        const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' }, timeoutMs: buildTimeoutMs }
        const lock = ['-o', 'DPkg::Lock::Timeout=120']
        await runProgram(aptGet, [...lock, 'update'], options)
        await runProgram(aptGet, [...lock, 'install', '-y', '--no-install-recommends', debianPackage], options)
      }),
    )
  } catch (thrown) {
    throw new UserError(`${debianPackage} could not be installed: ${messageOf(thrown)}`, { cause: thrown })
  }
  const installed = await lookUp()
  if (!installed) throw new UserError(`${debianPackage} is installed, but ${name} was not found.`)
  return installed
}

export const findSshd = (options: ToolOptions): Promise<string> => fromDebian('sshd', options)
export const findHaproxy = (options: ToolOptions): Promise<string> => fromDebian('haproxy', options)
export const findNginx = (options: ToolOptions): Promise<string> => fromDebian('nginx', options)
export const findPgbouncer = (options: ToolOptions): Promise<string> => fromDebian('pgbouncer', options)
export const findProFtpd = (options: ToolOptions): Promise<string> => fromDebian('proftpd', options)
export const findExim = (options: ToolOptions): Promise<string> => fromDebian('exim4', options)
export const findJava = (options: ToolOptions): Promise<string> => fromDebian('java', options)

/** Returns the folder of a PostgreSQL with its programs for backups. */
export const findPostgresPrograms = async (options: ToolOptions): Promise<string> =>
  dirname(await realpath(await fromDebian('pg_basebackup', options)))

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
 * Downloads a package of Debian and unpacks it, without installing it: no service is started, and no rights are needed.
 * @param folder of the package that is kept
 * @param use says what it is for
 * @param remedy says what an operator can do if the package cannot be had
 */
const unpackFromDebian = async (
  name: string,
  target: string,
  { folder, use, remedy }: { folder: string; use: string; remedy: string },
  { config, say }: ToolOptions,
): Promise<void> => {
  const env = config.childEnvironment
  const [aptGet, dpkgDeb] = await Promise.all([findProgram('apt-get', env.PATH), findProgram('dpkg-deb', env.PATH)])
  if (!aptGet || !dpkgDeb) throw new UserError(`${name}, ${use}, was not found. ${remedy}`)
  say(`Downloading Debian's package ${name}, ${use}: a few seconds, once.`)
  const download = (cwd: string) => runProgram(aptGet, ['download', name], { env, timeoutMs: downloadTimeoutMs, cwd })
  try {
    await installInto(target, async (workDir) => {
      await download(workDir).catch(async (thrown: unknown) => {
        // The list of packages may be missing or older than the package. Only root may fetch it.
        if (process.getuid?.() !== 0) throw thrown
        await runProgram(aptGet, ['-o', 'DPkg::Lock::Timeout=120', 'update'], { env, timeoutMs: buildTimeoutMs })
        await download(workDir)
      })
      const packages = (await readdir(workDir)).filter((file) => file.endsWith('.deb'))
      for (const file of packages)
        await runProgram(dpkgDeb, ['--extract', join(workDir, file), join(workDir, 'files')], { env, timeoutMs: downloadTimeoutMs })
      return join(workDir, 'files', folder)
    })
  } catch (thrown) {
    throw new UserError(`Debian's package ${name} could not be downloaded. ${remedy} Output: ${messageOf(thrown)}`, { cause: thrown })
  }
}

/** Returns the folder with the programs prometheus and promtool: a folder of PATH, the cache, or the files of Debian's package, in this order. */
export const findPrometheus = async (options: ToolOptions): Promise<string> => {
  const { config } = options
  const { PATH } = config.childEnvironment
  const [prometheus, promtool] = await Promise.all([findProgram('prometheus', PATH), findProgram('promtool', PATH)])
  if (prometheus && promtool && dirname(prometheus) === dirname(promtool)) return dirname(promtool)
  const target = join(cacheDirOf(config), 'prometheus', 'debian')
  if (await isExecutable(join(target, 'promtool'))) return target
  const remedy = 'Install Prometheus (prometheus and promtool on PATH), or set TEST_PROMETHEUS_DIR to the folder with both programs.'
  await unpackFromDebian('prometheus', target, { folder: 'usr/bin', use: 'which checks the alert rules', remedy }, options)
  return target
}

/** Returns the folder `usr` of Debian's package of Postfix. It cannot be installed beside Exim, so its files are unpacked into the cache. */
export const findPostfix = async (options: ToolOptions): Promise<string> => {
  const target = join(cacheDirOf(options.config), 'postfix', 'debian')
  if (await isExecutable(join(target, 'lib/postfix/sbin/master'))) return target
  const remedy = 'Set TEST_POSTFIX_DIR to a folder with sbin/postcat and lib/postfix/sbin/master.'
  await unpackFromDebian('postfix', target, { folder: 'usr', use: 'a mail server of the tests', remedy }, options)
  return target
}
