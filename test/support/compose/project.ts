// A project of Compose in a copy of the checkout: its commands, its containers, and the way to a target on this machine.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runSteps } from '../../docs/walk.ts'
import { createClient } from '../client.ts'
import { disposable } from '../disposable.ts'

const run = promisify(execFile)

/** The checkout of the tests. */
export const checkout = fileURLToPath(new URL('../../../', import.meta.url))

/** Copies what an installation needs of the checkout: the context of the image, and the compose files. */
export const copyCheckout = async (target: string): Promise<void> => {
  const kept = (await readFile(join(checkout, '.dockerignore'), 'utf8')).split('\n').flatMap((line) => /^!(.+)$/.exec(line)?.[1] ?? [])
  await mkdir(target)
  const isSource = (path: string) => !/\/(node_modules|dist)(\/|$)/.test(path.slice(checkout.length - 1))
  for (const name of new Set([...kept, 'deploy', 'Dockerfile', '.dockerignore', 'docker-compose.yml']))
    await cp(join(checkout, name), join(target, name), { recursive: true, filter: isSource })
}

interface Container {
  Service: string
  State: string
  Health: string
  ExitCode: number
}

interface ProjectOptions {
  /** A copy of the checkout. */
  source: string
  /** Has the name of the project, its files, and the variables that these ask for. */
  environment: NodeJS.ProcessEnv & { COMPOSE_PROJECT_NAME: string }
  timeoutMs: number
}

export const composeProject = ({ source, environment, timeoutMs }: ProjectOptions) => {
  const docker = async (...args: string[]): Promise<string> =>
    (await run('docker', args, { cwd: source, env: environment, maxBuffer: 16 * 1024 * 1024 })).stdout.trim()
  const compose = (...args: string[]) => docker('compose', ...args)
  const execute = (service: string, ...command: string[]) => compose('exec', '--no-TTY', service, ...command)

  /** Runs commands of a page in the checkout of the installation. `docker compose exec` would read the commands after it. */
  const follow = async (commands: string): Promise<string> => {
    const preamble = 'docker() { command docker "$@" </dev/null; }\n'
    return (await runSteps([preamble + commands], { folder: source, environment, timeoutMs })).join('')
  }

  const containers = async (...options: string[]): Promise<Container[]> =>
    (await compose(...options, 'ps', '--all', '--format', 'json'))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Container)

  /** Returns what the engine knows of the container of a service. */
  const inspect = async (service: string) => {
    const [container] = JSON.parse(await docker('inspect', await compose('ps', '--all', '--quiet', service))) as [
      { State: { Running: boolean; ExitCode: number }; RestartCount: number; HostConfig: object },
    ]
    return container
  }

  const originOf = async (service: string, port: number) => `http://${await compose('port', service, String(port))}`

  /** Starts a server at the address that containers have for this machine, which forwards connections to a port of the loopback. */
  const forwardFromContainers = async (target: number) => {
    const network = `${environment.COMPOSE_PROJECT_NAME}_default`
    const address = await docker('network', 'inspect', network, '--format', '{{(index .IPAM.Config 0).Gateway}}')
    const server = createServer((client) => {
      const upstream = connect(target, '127.0.0.1')
      client.on('error', () => upstream.destroy())
      upstream.on('error', () => client.destroy())
      client.pipe(upstream).pipe(client)
    })
    server.listen(0, address)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return disposable({ origin: `http://${address}:${port}` }, () => server.close())
  }

  const psql = (sql: string) => execute('postgres', 'psql', '--username', 'postgres', '--dbname', 'relay', '-Atc', sql)

  /** Expects that a container of the relay has no rights that it does not need. */
  const expectFewRights = async (service: string): Promise<void> => {
    expect((await inspect(service)).HostConfig).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'] })
    expect(await execute(service, 'id', '-u')).toBe('1000')
    await expect(execute(service, 'sh', '-c', 'echo x >/app/x')).rejects.toThrow('Read-only file system')
  }

  /** Returns the roles of the database, and whether they are superusers. */
  const roles = async () => (await psql("select rolname || ' ' || rolsuper from pg_roles where rolname !~ '^pg_' order by 1")).split('\n')

  /** Creates a client of the workspace of the pages, through the service that has the API. */
  const open = async (service: string, key: string) => createClient({ baseUrl: await originOf(service, 8080), name: 'acme/invoices', key })

  return { docker, compose, execute, follow, containers, inspect, originOf, forwardFromContainers, psql, expectFewRights, roles, open }
}
