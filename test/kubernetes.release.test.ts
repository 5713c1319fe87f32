import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseAllDocuments, stringify } from 'yaml'
import { readConfig } from '../src/config/config.ts'
import type { Json } from './support/client.ts'
import { createTestDatabase } from './support/database.ts'
import { createFolder } from './support/folder.ts'
import { networkValues } from './support/helm.ts'
import { startKubernetesApi } from './support/kubernetes/api-server.ts'
import { createRelayProcesses, relayVariables } from './support/relay-process.ts'
import { share } from './support/share.ts'
import { startTemporalServer } from './support/temporal-server.ts'
import { kubernetesVersions } from './support/tools.ts'

// Installs, upgrades and rolls back the chart in an API server. Nothing in it starts pods: the test runs what the pods of a Job and of the
// workers would run, with the variables of their objects.

const run = promisify(execFile)
const chart = fileURLToPath(new URL('../deploy/helm/document-relay', import.meta.url))
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const apiVersion = kubernetesVersions.at(-1)!
const namespace = 'relay'
const timeoutMs = 300_000

const { path: folder } = share(await createFolder())
const tools = { config: readConfig(), say: (line: string) => void process.stderr.write(`${line}\n`) }
const kubernetes = share(await startKubernetesApi(apiVersion, join(folder, 'kubernetes'), tools))
const created = async (path: string, body: object) => {
  const { status, json } = await kubernetes.call('POST', path, body)
  expect({ status, json }).toMatchObject({ status: 201 })
}

beforeAll(async () => {
  await created('/api/v1/namespaces', { metadata: { name: namespace } })
  const api = process.env.TEST_KUBERNETES_API_DIR
  if (!api) throw new Error('The descriptions of the Kubernetes API were not found. The set-up of the tests says why.')
  for (const name of ['scaled-objects', 'service-monitors', 'prometheus-rules'])
    for (const document of parseAllDocuments(await readFile(join(api, `${name}.yaml`), 'utf8')))
      await created('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', document.toJS() as object)
})

/** Runs helm as an administrator of the API server. @returns its output @throws with its errors */
const helm = async (...args: string[]): Promise<string> => {
  const program = process.env.TEST_HELM_BIN
  if (!program) throw new Error('helm was not found. The set-up of the tests says why.')
  const env = { ...process.env, KUBECONFIG: kubernetes.kubeconfig, HELM_CACHE_HOME: join(folder, 'helm') }
  return (await run(program, [...args, '--namespace', namespace], { env, timeout: timeoutMs, maxBuffer: 16 * 1024 * 1024 })).stdout
}
const valuesFile = async (values: object): Promise<string> => {
  const file = join(folder, 'values.yaml')
  await writeFile(file, stringify(values))
  return file
}

const everything = {
  config: { TEMPORAL_ADDRESS: 'temporal:7233' },
  api: { autoscaling: { enabled: true } },
  worker: { keda: { enabled: true, prometheusAddress: 'http://prometheus:9090' } },
  ...networkValues,
  monitoring: { enabled: true, dashboard: { enabled: true } },
}

const plurals: Record<string, string> = { Ingress: 'ingresses', NetworkPolicy: 'networkpolicies' }
const pathOf = ({ apiVersion: version, kind }: Json): string =>
  `/${version === 'v1' ? 'api' : 'apis'}/${version}/namespaces/${namespace}/${plurals[kind] ?? `${kind.toLowerCase()}s`}`
/** Has the server validate objects strictly, without keeping them. @returns the refusals */
const validate = async (manifests: string): Promise<string[]> => {
  const refusals: string[] = []
  for (const document of parseAllDocuments(manifests)) {
    const object: Json = document.toJS()
    const { status, json } = await kubernetes.call('POST', `${pathOf(object)}?dryRun=All&fieldValidation=Strict`, object)
    if (status !== 201) refusals.push(`${object.kind} ${object.metadata.name}: ${json.message ?? json}`)
  }
  return refusals
}

test('the API server accepts every object of the chart, and has an objection to a mistake', async () => {
  const manifests = await helm('template', 'document-relay', chart, '--kube-version', apiVersion, '--values', await valuesFile(everything))
  expect(parseAllDocuments(manifests)).toHaveLength(19)
  expect(await validate(manifests)).toEqual([])
  expect(await validate(await helm('template', 'document-relay', chart, '--kube-version', apiVersion))).toEqual([])
  expect(await validate(manifests.replaceAll('readOnlyRootFilesystem', 'readOnlyRootFileSystem'))).toEqual(
    ['api', 'worker', 'migrate', 'promote'].map(() => expect.stringContaining('unknown field "spec.template.spec.containers[0]')),
  )
  expect(await validate(manifests.replaceAll('port: probes', 'port: probes_of_the_relay'))).toContainEqual(
    expect.stringContaining('Deployment document-relay-api'),
  )
})

/** Returns the variables that a container would have. */
const variablesOf = async (container: Json): Promise<Record<string, string>> => {
  const variables: Record<string, string> = {}
  for (const { name, value, valueFrom } of container.env) {
    const reference = valueFrom?.secretKeyRef
    const secret = reference && (await kubernetes.call('GET', `/api/v1/namespaces/${namespace}/secrets/${reference.name}`)).json
    variables[name] = reference ? Buffer.from(secret.data[reference.key], 'base64').toString() : value
  }
  return variables
}

type Condition = 'Complete' | 'Failed'
/** Tells the API server how a Job ended, as the controller of Jobs does. */
const endJob = async (job: Json, condition: Condition): Promise<void> => {
  const now = new Date().toISOString().replace(/\.\d+/, '')
  const conditionOf = (type: string) => ({ type, status: 'True', lastTransitionTime: now, reason: 'Test', message: 'ended by the test' })
  const before = condition === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget'
  const status = {
    startTime: now,
    ...(condition === 'Complete' ? { completionTime: now, succeeded: 1 } : { failed: 1 }),
    conditions: [conditionOf(before), conditionOf(condition)],
  }
  const path = `/apis/batch/v1/namespaces/${namespace}/jobs/${job.metadata.name}/status`
  expect(await kubernetes.call('PATCH', path, { status })).toMatchObject({ status: 200 })
}

/** Runs the container of each new Job until a command of helm has ended, and tells the API server how the Job ended. */
const withJobs = async (command: Promise<unknown>, runContainer: (container: Json) => Promise<Condition>): Promise<void> => {
  const ended = command.then(
    () => true,
    () => true,
  )
  const known = new Set<string>()
  while (!(await Promise.race([ended, pause(100, false)]))) {
    const { json } = await kubernetes.call('GET', `/apis/batch/v1/namespaces/${namespace}/jobs`)
    for (const job of json.items as Json[]) {
      if (known.has(job.metadata.uid)) continue
      known.add(job.metadata.uid)
      await endJob(job, await runContainer(job.spec.template.spec.containers[0]))
    }
  }
  await command
}

test('an installation, an upgrade and a rollback of the release migrate first and give the workflows to the workers of its version', async () => {
  await using database = await createTestDatabase()
  await using temporal = await startTemporalServer()
  const { DATABASE_URL, RELAY_SECRET_KEYS, ...config } = relayVariables(database, temporal)
  await created(`/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name: 'document-relay' },
    stringData: { DATABASE_URL, RELAY_SECRET_KEYS },
  })
  await using workers = createRelayProcesses({})
  /** What the Jobs have printed, after their verbs. */
  const outputs: string[] = []
  const runContainer = async (container: Json): Promise<Condition> => {
    const [verb] = container.args as string[]
    if (verb === 'promote') {
      // A pod of the new workers starts beside those of the former version.
      const { json } = await kubernetes.call('GET', `/apis/apps/v1/namespaces/${namespace}/deployments/document-relay-worker`)
      await workers.start('worker', await variablesOf(json.spec.template.spec.containers[0]))
    }
    const env = { PATH: process.env['PATH']!, ...(await variablesOf(container)) }
    const { stdout } = await run(process.execPath, [main, ...container.args], { env, timeout: timeoutMs })
    outputs.push(`${verb}: ${stdout.trim()}`)
    return 'Complete'
  }
  const release = async (tag: string) => ['--values', await valuesFile({ config }), '--set-string', `image.tag=${tag}`]
  const imageOf = async (component: string) => {
    const { json } = await kubernetes.call('GET', `/apis/apps/v1/namespaces/${namespace}/deployments/document-relay-${component}`)
    return json.spec.template.spec.containers[0].image as string
  }

  await withJobs(helm('install', 'document-relay', chart, ...(await release('1.0.0'))), runContainer)
  expect(outputs.splice(0)).toEqual([expect.stringMatching(/^migrate: /), 'promote: The current build of document-relay is 1.0.0.'])
  expect([await imageOf('api'), await imageOf('worker')]).toEqual(['document-relay:1.0.0', 'document-relay:1.0.0'])

  // A migration that fails replaces nothing.
  const failing = withJobs(helm('upgrade', 'document-relay', chart, ...(await release('2.0.0'))), async () => 'Failed')
  await expect(failing).rejects.toThrow('pre-upgrade hooks failed')
  expect(await imageOf('worker')).toBe('document-relay:1.0.0')

  await withJobs(helm('upgrade', 'document-relay', chart, ...(await release('2.0.0'))), runContainer)
  expect(outputs.splice(0)).toEqual([
    expect.stringMatching(/^migrate: /),
    'promote: The current build of document-relay is 2.0.0. It was 1.0.0 before.',
  ])
  expect([await imageOf('api'), await imageOf('worker')]).toEqual(['document-relay:2.0.0', 'document-relay:2.0.0'])

  await withJobs(helm('rollback', 'document-relay', '1'), runContainer)
  expect(outputs.splice(0)).toEqual(['promote: The current build of document-relay is 1.0.0. It was 2.0.0 before.'])
  expect([await imageOf('api'), await imageOf('worker')]).toEqual(['document-relay:1.0.0', 'document-relay:1.0.0'])

  // Everything that the chart can have, in the place of the release.
  const whole = await valuesFile({ ...everything, config })
  await withJobs(helm('upgrade', 'document-relay', chart, '--values', whole, '--set-string', 'image.tag=1.0.0'), runContainer)
  await helm('uninstall', 'document-relay')
  expect((await kubernetes.call('GET', `/apis/apps/v1/namespaces/${namespace}/deployments`)).json.items).toEqual([])
}, 600_000)
