// Finds or starts a Docker engine with Compose.
import { execFile } from 'node:child_process'
import { copyFile, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../../src/base/errors.ts'
import { buildWithGo, cacheDirOf } from '../../../src/programs/install-program.ts'
import { isExecutable, startProgram } from '../../../src/programs/programs.ts'
import { stopServer, waitUntilReady } from '../../../src/programs/server-process.ts'
import { fromDebian, type ToolOptions } from '../tools.ts'

const run = promisify(execFile)
const composeVersion = 'v2.40.3'
const startTimeoutMs = 120_000
// It stops the containers that are left.
const stopTimeoutMs = 60_000

export interface Engine {
  /** The variables with which docker uses this engine. */
  environment: NodeJS.ProcessEnv
  stop(): Promise<void>
}

const succeeds = (environment: NodeJS.ProcessEnv, ...args: string[]): Promise<boolean> =>
  run('docker', args, { env: environment, timeout: 600_000 }).then(
    () => true,
    () => false,
  )

/** Returns the plugin of docker: the cache, or a build with Go. */
const findCompose = async ({ config, say }: ToolOptions): Promise<string> => {
  const target = join(cacheDirOf(config), 'docker-compose', composeVersion, 'docker-compose')
  if (await isExecutable(target)) return target
  return buildWithGo({
    name: 'Docker Compose',
    module: `github.com/docker/compose/v2/cmd@${composeVersion}`,
    requirements: [],
    flags: ['-ldflags=-s -w'],
    duration: 'about 4 minutes on 2 cores',
    target,
    remedy: 'Install the Compose plugin of Docker.',
    config,
    say,
  })
}

/** Finds an engine that runs already and has these images, or can pull them. */
const findRunning = async (images: string[]): Promise<Engine | undefined> => {
  const environment = process.env
  if (!(await succeeds(environment, 'info')) || !(await succeeds(environment, 'compose', 'version'))) return undefined
  for (const image of images)
    if (!(await succeeds(environment, 'image', 'inspect', image)) && !(await succeeds(environment, 'pull', '--quiet', image)))
      return undefined
  return { environment, stop: async () => {} }
}

/** Starts an engine that keeps everything in this folder. It shares no images or containers with the engine of the machine. */
const startOwn = async (folder: string, tools: ToolOptions): Promise<Engine> => {
  const dockerd = await fromDebian('dockerd', tools)
  const plugins = join(folder, 'config/cli-plugins')
  await mkdir(plugins, { recursive: true })
  await copyFile(await findCompose(tools), join(plugins, 'docker-compose'))
  const socket = `unix://${join(folder, 'docker.sock')}`
  const environment = { ...process.env, DOCKER_HOST: socket, DOCKER_CONFIG: join(folder, 'config') }
  const logFile = join(folder, 'dockerd.log')
  const log = await open(logFile, 'w')
  const places = ['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'dockerd.pid')]
  const child = await startProgram(dockerd, ['--host', socket, ...places], {
    env: { ...tools.config.childEnvironment, PATH: `/usr/sbin:/sbin:${tools.config.childEnvironment['PATH']}` },
    stdio: ['ignore', log.fd, log.fd],
  })
  await log.close()
  const stop = async () => {
    await stopServer(child, stopTimeoutMs)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await waitUntilReady(child, { name: 'Docker', logFile, timeoutMs: startTimeoutMs, isReady: () => succeeds(environment, 'info') })
    return { environment, stop }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

/**
 * Returns an engine: one that runs with the images, or one of the test's own, for which `provide` makes the images.
 * @returns a text that says why there is no engine, if there is none
 */
export const findEngine = async (
  images: string[],
  folder: string,
  tools: ToolOptions,
  provide: (engine: Engine) => Promise<void>,
): Promise<Engine | string> => {
  const running = await findRunning(images)
  if (running) return running
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'no Docker engine runs that has or can pull the images, and only root on Linux can start one'
  let own: Engine
  try {
    own = await startOwn(folder, tools)
  } catch (thrown) {
    return `no Docker engine could be started: ${messageOf(thrown)}`
  }
  try {
    await provide(own)
    return own
  } catch (thrown) {
    await own.stop()
    throw thrown
  }
}
