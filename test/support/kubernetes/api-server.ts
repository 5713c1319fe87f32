// An API server of Kubernetes with its database, as envtest starts them: it validates and keeps objects, and nothing acts on them. No
// controller makes pods of a Deployment or a Job.
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { stringify } from 'yaml'
import { UserError } from '../../../src/base/errors.ts'
import { buildTimeoutMs, cacheDirOf, installInto } from '../../../src/programs/install-program.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { findProgram, isExecutable, runProgram } from '../../../src/programs/programs.ts'
import type { Json } from '../client.ts'
import { startServer } from '../server-program.ts'
import { fromDebian, type ToolOptions } from '../tools.ts'
import { until } from '../until.ts'

export interface KubernetesApi extends AsyncDisposable {
  /** A file with which helm is an administrator. */
  kubeconfig: string
  /** Sends a request. A PATCH is a merge patch. @returns status and JSON of the answer */
  call(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<{ status: number; json: Json }>
}

/** Returns kube-apiserver: the cache, or a build with Go. */
const findApiServer = async (version: string, { config, say }: ToolOptions): Promise<string> => {
  const target = join(cacheDirOf(config), 'kube-apiserver', version, 'kube-apiserver')
  if (await isExecutable(target)) return target
  const go = await findProgram('go', config.childEnvironment.PATH)
  if (!go) throw new UserError('kube-apiserver was not found, and Go is not installed to build it.')
  say(`Building kube-apiserver ${version} with Go. This takes about 10 minutes on 2 cores, once.`)
  const env = { ...config.childEnvironment, GOWORK: 'off', GOFLAGS: '-mod=mod' }
  return installInto(target, async (workDir) => {
    const runGo = (...args: string[]) => runProgram(go, args, { cwd: workDir, env, timeoutMs: buildTimeoutMs })
    const module = `k8s.io/kubernetes@v${version}`
    const { GoMod: file } = JSON.parse(await runGo('mod', 'download', '-json', module)) as { GoMod: string }
    // The modules that the repository of Kubernetes contains. It names no version of them, which is 0.37.2 for Kubernetes 1.37.2.
    const own = [...(await readFile(file, 'utf8')).matchAll(/^\t(k8s\.io\/[\w-]+) v0\.0\.0$/gm)].map(([, name]) => name!)
    const replaced = own.map((name) => `-replace=${name}=${name}@v0${version.slice(1)}`)
    await runGo('mod', 'init', 'build')
    await runGo('mod', 'edit', `-require=${module}`, ...replaced)
    const program = join(workDir, 'kube-apiserver')
    // helm compares the version with the one that the chart requires.
    const flags = `-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v${version}`
    await runGo('build', flags, '-o', program, 'k8s.io/kubernetes/cmd/kube-apiserver')
    return program
  })
}

const optionsOf = (options: Record<string, string>) => Object.entries(options).map(([name, value]) => `--${name}=${value}`)

/** Starts an API server on a free port. @param folder keeps its database, keys and logs */
export const startKubernetesApi = async (version: string, folder: string, tools: ToolOptions): Promise<KubernetesApi> => {
  const [program, etcd] = await Promise.all([findApiServer(version, tools), fromDebian('etcd', tools)])
  await mkdir(folder, { recursive: true })
  const file = (name: string) => join(folder, name)
  const [clientPort, peerPort, port] = await Promise.all([findFreePort(), findFreePort(), findFreePort()])
  const database = `http://127.0.0.1:${clientPort}`
  const store = await startServer(
    etcd,
    optionsOf({
      'data-dir': file('etcd'),
      'listen-client-urls': database,
      'advertise-client-urls': database,
      'listen-peer-urls': `http://127.0.0.1:${peerPort}`,
    }),
    { name: 'etcd', port: clientPort, logFile: file('etcd.log') },
  )
  const stops = [() => store.stop()]
  const stop = async () => {
    for (const one of stops) await one()
  }
  try {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    await writeFile(file('accounts.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const token = 'administrator'
    await writeFile(file('tokens.csv'), `${token},admin,admin,system:masters\n`)
    const server = await startServer(
      program,
      optionsOf({
        'etcd-servers': database,
        'bind-address': '127.0.0.1',
        'secure-port': String(port),
        'cert-dir': file('certificates'),
        'service-account-key-file': file('accounts.pem'),
        'service-account-signing-key-file': file('accounts.pem'),
        'service-account-issuer': 'https://kubernetes.default.svc',
        'service-cluster-ip-range': '10.0.0.0/24',
        'token-auth-file': file('tokens.csv'),
        'authorization-mode': 'RBAC',
      }),
      { name: 'kube-apiserver', port, logFile: file('kube-apiserver.log') },
    )
    stops.unshift(() => server.stop())
    const authority = file('certificates/apiserver.crt')
    const origin = `https://127.0.0.1:${port}`
    const dispatcher = new Agent({ connect: { ca: await readFile(authority) } })
    stops.unshift(() => dispatcher.close())
    const call: KubernetesApi['call'] = async (method, path, body) => {
      const answer = await request(origin + path, {
        method,
        dispatcher,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        },
        body: body ? JSON.stringify(body) : null,
      })
      const text = await answer.body.text()
      return { status: answer.statusCode, json: text.startsWith('{') ? JSON.parse(text) : text }
    }
    await until('the API server is ready', async () => (await call('GET', '/readyz')).status === 200, Boolean, 120_000)
    const context = { cluster: 'test', user: 'admin' }
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: origin, 'certificate-authority': authority } }],
      users: [{ name: 'admin', user: { token } }],
      contexts: [{ name: 'test', context }],
      'current-context': 'test',
    }
    await writeFile(file('kubeconfig'), stringify(kubeconfig), { mode: 0o600 })
    return {
      kubeconfig: file('kubeconfig'),
      call,
      [Symbol.asyncDispose]: stop,
    }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}
