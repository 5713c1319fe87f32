// Images with the names of the compose files and the Dockerfile, made of Debian's packages and of programs of this machine. They take the
// same variables, folders and commands as the images of these names, if the compose files use them.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheDirOf, downloadTimeoutMs, installInto } from '../../../src/programs/install-program.ts'
import { findProgram, runProgram } from '../../../src/programs/programs.ts'
import { findTemporalUi } from '../../../src/temporal-server/find-programs.ts'
import { temporalServerFolder, fromDebian, type ToolOptions } from '../tools.ts'
import type { Engine } from './engine.ts'

const run = promisify(execFile)
const base = 'relay-stand-in-base'
const debianPackages = ['ca-certificates', 'netcat-openbsd', 'postgresql']
const authorities = '/etc/ssl/certs/ca-certificates.crt'
const entrypoint = (name: string) => fileURLToPath(new URL(`./${name}/entrypoint.sh`, import.meta.url))

interface StandIn {
  /** Files and folders that are copied beside the Dockerfile. */
  sources: string[]
  /** The Dockerfile after its first line. */
  steps: string[]
}

/** Returns the file system of a Debian of this machine's release, with the packages of all stand-ins: the cache, or mmdebstrap. */
const findBase = async ({ config, say }: ToolOptions): Promise<string> => {
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile('/etc/os-release', 'utf8'))![1]!
  const target = join(cacheDirOf(config), 'debian', release, `${debianPackages.join('+')}.tar`)
  if (existsSync(target)) return target
  const mmdebstrap = await fromDebian('mmdebstrap', { config, say })
  say(`Installing Debian ${release} into a file with mmdebstrap (490 MB): half a minute, once.`)
  const options = ['--variant=minbase', `--include=${debianPackages.join(',')}`]
  return installInto(target, async (workDir) => {
    const file = join(workDir, 'base.tar')
    await runProgram(mmdebstrap, [...options, release, file], { env: config.childEnvironment, timeoutMs: 10 * downloadTimeoutMs })
    return file
  })
}

/** A server that does nothing but listen. */
const listener = (port: number) => `CMD ["nc", "-lk", "${port}"]`

const standIns = async (tools: ToolOptions): Promise<Record<string, StandIn>> => {
  const npm = dirname(dirname(await realpath((await findProgram('npm', tools.config.childEnvironment.PATH))!)))
  const temporal = await temporalServerFolder(tools)
  const prometheus = process.env.TEST_PROMETHEUS_DIR!
  const asTemporal = ['RUN useradd --uid 1000 --create-home temporal', 'USER temporal']
  return {
    node: {
      sources: [process.execPath, npm, authorities],
      steps: [
        'COPY npm /usr/local/lib/node_modules/npm',
        'COPY node /usr/local/bin/node',
        // The certificates that this machine trusts, which its way to the npm registry may need.
        `COPY ${basename(authorities)} ${authorities}`,
        `RUN mkdir -p /usr/local/etc && echo cafile=${authorities} >/usr/local/etc/npmrc`,
        'RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && useradd --uid 1000 --create-home node',
      ],
    },
    postgres: {
      sources: [entrypoint('postgres')],
      steps: [
        'COPY entrypoint.sh /usr/local/bin/',
        'RUN ln -s /usr/lib/postgresql/*/bin /usr/local/postgresql && install -d -o postgres -g postgres /var/run/postgresql',
        'ENV PATH=/usr/local/postgresql:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/18/docker',
        'ENTRYPOINT ["entrypoint.sh"]',
        `CMD ["postgres", "-c", "listen_addresses=*"]`,
      ],
    },
    'temporalio/admin-tools': {
      sources: [join(temporal, 'temporal-sql-tool'), process.env.TEST_TEMPORAL_BIN!],
      steps: ['COPY temporal-sql-tool temporal /usr/local/bin/', ...asTemporal],
    },
    'temporalio/server': {
      sources: [join(temporal, 'temporal-server'), entrypoint('temporal')],
      steps: [
        'COPY temporal-server /usr/local/bin/',
        'COPY entrypoint.sh /etc/temporal/',
        ...asTemporal,
        'CMD ["/etc/temporal/entrypoint.sh"]',
      ],
    },
    // The image of the relay with Temporal takes its program. As a service, it is a listener: what makes its configuration cannot be had here.
    'temporalio/ui': {
      sources: [await findTemporalUi(tools)],
      steps: ['COPY ui-server /home/ui-server/', listener(8080)],
    },
    'prom/prometheus': {
      sources: [join(prometheus, 'prometheus')],
      steps: [
        'COPY prometheus /bin/prometheus',
        'RUN install -d -o nobody -g nogroup /prometheus',
        'USER nobody',
        'ENTRYPOINT ["/bin/prometheus"]',
        'CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]',
      ],
    },
    'grafana/grafana': { sources: [], steps: [listener(3000)] },
  }
}

/** Builds a stand-in for each of these images. @throws Error for an image that has none */
export const buildStandIns = async ({ environment: env }: Engine, images: string[], folder: string, tools: ToolOptions): Promise<void> => {
  await run('docker', ['import', await findBase(tools), base], { env })
  const known = await standIns(tools)
  for (const image of images) {
    const standIn = known[image.split(':')[0]!]
    if (!standIn) throw new Error(`a compose file uses an image without a stand-in: ${image}`)
    const context = join(folder, image.replaceAll(/\W/g, '-'))
    await mkdir(context, { recursive: true })
    for (const source of standIn.sources) await cp(source, join(context, basename(source)), { recursive: true, dereference: true })
    await writeFile(join(context, 'Dockerfile'), [`FROM ${base}`, ...standIn.steps, ''].join('\n'))
    await run('docker', ['build', '--quiet', '--tag', image, context], { env })
  }
}
