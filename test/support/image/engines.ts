// Builds and runs the image with docker, podman or buildah.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { newId } from '../../../src/base/ids.ts'
import type { BuiltImage, ImageConfig } from './image.ts'

const run = promisify(execFile)
const output = async (file: string, ...args: string[]): Promise<string> =>
  (await run(file, args, { maxBuffer: 64 * 1024 * 1024 })).stdout.trim()
const succeeds = (file: string, ...args: string[]): Promise<boolean> =>
  run(file, args, { timeout: 120_000 }).then(
    () => true,
    () => false,
  )

export interface Engine {
  name: 'docker' | 'podman' | 'buildah'
  baseImage: string
}

/** Finds an engine that works here and has the base image, or with docker and podman can pull it. TEST_BASE_IMAGE names another base image. */
export const findEngine = async (): Promise<Engine | undefined> => {
  // Containers reach the servers of the tests by the network of the host, which is another one in the machine of Docker Desktop.
  if (process.platform !== 'linux') return undefined
  const dockerfile = await readFile(new URL('../../../Dockerfile', import.meta.url), 'utf8')
  const baseImage = process.env['TEST_BASE_IMAGE'] || /^ARG BASE_IMAGE=(\S+)$/m.exec(dockerfile)![1]!
  for (const name of ['docker', 'podman'] as const) {
    if (!(await succeeds(name, 'info'))) continue
    if (!(await succeeds(name, 'image', 'inspect', baseImage)) && !(await succeeds(name, 'pull', '--quiet', baseImage))) continue
    // podman builds where it cannot run anything.
    if (await succeeds(name, 'run', '--rm', '--network', 'host', baseImage, 'node', '--version')) return { name, baseImage }
  }
  // buildah cannot make the root file system of a container read-only: a private mount does, which only root can make.
  if (process.getuid?.() !== 0 || !(await succeeds('buildah', 'info'))) return undefined
  // Not pulled: without a reachable registry, buildah tries for half a minute.
  return (await succeeds('buildah', 'inspect', '--type', 'image', baseImage)) ? { name: 'buildah', baseImage } : undefined
}

export const buildWithEngine = ({ name, baseImage }: Engine, context: string): Promise<BuiltImage> =>
  name === 'buildah' ? buildWithBuildah(baseImage, context) : buildWithDocker(name, baseImage, context)

const buildWithDocker = async (docker: string, baseImage: string, context: string): Promise<BuiltImage> => {
  const tag = `document-relay-test:${newId().toLowerCase()}`
  const containers = `relay-test-${newId().toLowerCase()}`
  const root = await mkdtemp(join(tmpdir(), 'relay-image-'))
  const remove = async () => {
    await rm(root, { recursive: true, force: true })
    const found = (await output(docker, 'ps', '--all', '--quiet', '--filter', `label=${containers}`)).split('\n').filter(Boolean)
    if (found.length > 0) await output(docker, 'rm', '--force', ...found)
    await output(docker, 'rmi', '--force', tag)
  }
  try {
    // podman leaves out the health check from images of its own format.
    const format = docker === 'podman' ? ['--format', 'docker'] : []
    await output(docker, 'build', ...format, '--network', 'host', '--build-arg', `BASE_IMAGE=${baseImage}`, '--tag', tag, context)
    const [{ Config: config }] = JSON.parse(await output(docker, 'image', 'inspect', tag)) as [{ Config: ImageConfig }]
    const copied = await output(docker, 'create', '--label', containers, tag)
    const certificates = 'etc/ssl/certs/ca-certificates.crt'
    await mkdir(dirname(join(root, certificates)), { recursive: true })
    for (const path of ['app', certificates]) await output(docker, 'cp', `${copied}:/${path}`, join(root, path))
    await output(docker, 'rm', copied)
    const runOptions = ['--rm', '--network', 'host', '--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL']
    const runInContainer = ['run', ...runOptions, '--security-opt', 'no-new-privileges', '--label', containers, '--entrypoint']
    return {
      root,
      config,
      command: (program, args, variables) => ({
        file: docker,
        args: [
          ...runInContainer,
          program,
          // The value of the variable of this name in the environment of docker.
          ...Object.keys(variables).flatMap((variable) => ['--env', variable]),
          tag,
          ...args,
        ],
        options: { env: { ...process.env, ...variables } },
      }),
      remove,
    }
  } catch (thrown) {
    // A failed build has no image.
    await remove().catch(() => {})
    throw thrown
  }
}

// Makes the root file system read-only and gives it a /tmp, then replaces itself by the program in it.
const runInRoot = `
root=$1 user=$2 folder=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
`

const buildWithBuildah = async (baseImage: string, context: string): Promise<BuiltImage> => {
  const name = `relay-test-${newId().toLowerCase()}`
  const remove = async () => {
    // A build that failed early has no container. An image with a container cannot be removed.
    await succeeds('buildah', 'rm', name)
    await output('buildah', 'rmi', name)
  }
  try {
    const isolation = ['--isolation', 'chroot', '--format', 'docker']
    await output('buildah', 'bud', ...isolation, '--build-arg', `BASE_IMAGE=${baseImage}`, '--tag', name, context)
    const inspected = await output('buildah', 'inspect', '--type', 'image', name)
    const { config } = (JSON.parse(inspected) as { Docker: { config: ImageConfig } }).Docker
    await output('buildah', 'from', '--name', name, `localhost/${name}`)
    const root = await output('buildah', 'mount', name)
    const env = Object.fromEntries(config.Env.map((entry) => entry.split(/=(.*)/s, 2)))
    return {
      root,
      config,
      command: (program, args, variables) => ({
        file: 'unshare',
        args: ['--mount', 'sh', '-ec', runInRoot, 'sh', root, config.User, config.WorkingDir, program, ...args],
        options: { env: { ...env, ...variables } },
      }),
      remove,
    }
  } catch (thrown) {
    // A failed build has no image.
    await remove().catch(() => {})
    throw thrown
  }
}
