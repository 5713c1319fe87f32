import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { copiesInChart, valuesSchema } from '../docs/helm-chart.ts'
import { environment, readConfig } from '../src/config/config.ts'
import { createKeyRing } from '../src/security/seal.ts'
import { blocksOf, commandsOf } from './docs/commands.ts'
import { runSteps } from './docs/walk.ts'
import { createFolder } from './support/folder.ts'
import { helmOnChart, networkValues, renderChart } from './support/helm.ts'
import { checkManifests, writeSchemas } from './support/kubeconform.ts'
import { share } from './support/share.ts'
import { kubernetesVersions } from './support/tools.ts'

interface Container {
  name: string
  image: string
  args: string[]
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[]
  ports: { name: string; containerPort: number }[]
  securityContext: Record<string, unknown>
  volumeMounts: { name: string; mountPath: string }[]
  livenessProbe: { httpGet: { path: string; port: string } }
  readinessProbe: { httpGet: { path: string; port: string } }
}

interface Pod {
  securityContext: Record<string, unknown>
  automountServiceAccountToken: boolean
  enableServiceLinks: boolean
  serviceAccountName?: string
  terminationGracePeriodSeconds: number
  topologySpreadConstraints: { topologyKey: string; labelSelector: { matchLabels: Record<string, string> } }[]
  volumes: { name: string }[]
  containers: [Container]
}

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> }
  // Tests read parts of objects of many kinds.
  // eslint-disable-next-line typescript/no-explicit-any
  spec: any
  data?: Record<string, string>
}

const minimal = { config: { TEMPORAL_ADDRESS: 'temporal:7233' } }
const full = {
  image: { repository: 'registry.example/relay', tag: '1.2.3' },
  imagePullSecrets: [{ name: 'pull' }],
  config: {
    TEMPORAL_ADDRESS: 'temporal:7233',
    TEMPORAL_NAMESPACE: 'relay',
    TEMPORAL_TLS: 'true',
    RELAY_TRUST_PROXY: 'true',
    RELAY_SHUTDOWN_GRACE_MS: '60000',
    CONTENT_S3_BUCKET: 'documents',
  },
  secrets: {
    DATABASE_URL: { name: 'database', key: 'uri' },
    TEMPORAL_API_KEY: { name: 'temporal' },
    CONTENT_S3_ACCESS_KEY_ID: { name: 's3' },
    CONTENT_S3_SECRET_ACCESS_KEY: { name: 's3' },
  },
  serviceAccount: { annotations: { 'example/role': 'relay' } },
  volumes: [{ name: 'share', persistentVolumeClaim: { claimName: 'share' } }],
  volumeMounts: [{ name: 'share', mountPath: '/mnt/share' }],
  podAnnotations: { 'example/note': 'text' },
  nodeSelector: { disk: 'fast' },
  tolerations: [{ key: 'relay', operator: 'Exists' }],
  api: { autoscaling: { enabled: true } },
  worker: { keda: { enabled: true, temporalAuthentication: 'temporal', prometheusAddress: 'http://prometheus:9090' } },
  migrate: { args: ['--without-search-attributes'] },
  service: { annotations: { 'example/note': 'text' } },
  ...networkValues,
  monitoring: { enabled: true, labels: { release: 'prometheus' }, dashboard: { enabled: true } },
}

const helm = () => {
  const path = process.env.TEST_HELM_BIN
  if (!path) throw new Error('helm was not found. The set-up of the tests says why.')
  return path
}

const { path: folder } = share(await createFolder())

const valuesFile = async (values: object): Promise<string[]> => {
  const file = join(folder, 'values.yaml')
  await writeFile(file, stringify(values))
  return ['--values', file]
}

const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() as Manifest
  })

const render = async (values: object): Promise<Manifest[]> => manifestsIn(await renderChart(helm(), await valuesFile(values)))
const namesOf = (manifests: Manifest[]) => manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()
const find = (manifests: Manifest[], kind: string, name: string): Manifest => {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)
  if (!found) throw new Error(`${kind} ${name} was not rendered`)
  return found
}
const jobNames = new Set(['migrate', 'promote'])
const podOf = (manifests: Manifest[], component: 'api' | 'worker' | 'migrate' | 'promote') =>
  find(manifests, jobNames.has(component) ? 'Job' : 'Deployment', `document-relay-${component}`).spec.template.spec as Pod
const components = ['api', 'worker', 'migrate', 'promote'] as const

const always = [
  'Deployment document-relay-api',
  'Deployment document-relay-worker',
  'Job document-relay-migrate',
  'Job document-relay-promote',
  'PodDisruptionBudget document-relay-api',
  'PodDisruptionBudget document-relay-worker',
  'Service document-relay-api',
  'Service document-relay-api-probes',
  'Service document-relay-worker',
  'ServiceAccount document-relay',
]
const optional = [
  'ConfigMap document-relay-dashboard',
  'HorizontalPodAutoscaler document-relay-api',
  'Ingress document-relay-api',
  'NetworkPolicy document-relay-api',
  'NetworkPolicy document-relay-worker',
  'PrometheusRule document-relay',
  'ScaledObject document-relay-worker',
  'ServiceMonitor document-relay-api',
  'ServiceMonitor document-relay-worker',
]

test.each([
  ['minimal', minimal],
  ['full', full],
])('helm lint finds nothing with %s values', async (_, values) => {
  const output = await helmOnChart(helm(), ['lint', '--strict', '--kube-version', '1.33.0'], await valuesFile(values))
  expect(output).toContain('1 chart(s) linted, 0 chart(s) failed')
  expect(output).not.toMatch(/\[(WARNING|ERROR)\]/)
})

test('minimal values render the processes, and full values everything', async () => {
  expect(namesOf(await render(minimal))).toEqual(always)
  expect(namesOf(await render(full))).toEqual([...always, ...optional].toSorted())
})

describe('kubeconform, with the schemas of Kubernetes, KEDA and the Prometheus Operator,', () => {
  const [oldest] = kubernetesVersions
  beforeAll(async () => {
    const api = process.env.TEST_KUBERNETES_API_DIR
    if (!api) throw new Error('The descriptions of the Kubernetes API were not found. The set-up of the tests says why.')
    await mkdir(join(folder, 'schemas'))
    await writeSchemas(api, join(folder, 'schemas'))
  })

  const check = async (manifests: string, version: string) => {
    const kubeconform = process.env.TEST_KUBECONFORM_BIN
    if (!kubeconform) throw new Error('kubeconform was not found. The set-up of the tests says why.')
    const file = join(folder, 'manifests.yaml')
    await writeFile(file, manifests)
    return checkManifests(kubeconform, file, join(folder, 'schemas', version))
  }

  test('has the oldest version of Kubernetes that the chart accepts', async () => {
    const { kubeVersion } = parse(await readFile(new URL('../deploy/helm/document-relay/Chart.yaml', import.meta.url), 'utf8')) as {
      kubeVersion: string
    }
    expect(kubeVersion).toBe(`>=${oldest}-0`)
  })

  test.each(kubernetesVersions)('finds that every object has the fields of its kind, and no others (%s)', async (version) => {
    for (const [values, objects] of [
      [minimal, always],
      [full, [...always, ...optional]],
    ] as const)
      expect(await check(await renderChart(helm(), await valuesFile(values)), version)).toEqual({ valid: objects.length, errors: [] })
  })

  test.each(kubernetesVersions)('finds a value that a field cannot have (%s)', async (version) => {
    const manifest = find(await render(minimal), 'Deployment', 'document-relay-api')
    manifest.spec.template.spec.containers[0].imagePullPolicy = 'Sometimes'
    const error = "/containers/0/imagePullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"
    expect(await check(stringify(manifest), version)).toEqual({ valid: 0, errors: [expect.stringContaining(error)] })
  })

  type Change = (spec: Manifest['spec'], manifest: Manifest) => void
  const container = "at '/spec/template/spec/containers/0"
  test.each<[kind: string, mistake: string, Change, error: string]>([
    [
      'Deployment',
      'an unknown field',
      (spec) => (spec.template.spec.containers[0].readyProbe = {}),
      `${container}': additional properties 'readyProbe' not allowed`,
    ],
    ['Deployment', 'a wrong type', (spec) => (spec.replicas = '2'), "at '/spec/replicas': got string, want integer"],
    ['Deployment', 'a missing field', (spec) => delete spec.template.spec.containers[0].name, `${container}': missing property 'name'`],
    ['Deployment', 'an old version', (_, manifest) => (manifest.apiVersion = 'apps/v1beta1'), 'could not find schema for Deployment'],
    [
      'NetworkPolicy',
      'an unknown field',
      (spec) => (spec.ingress[0].form = []),
      "at '/spec/ingress/0': additional properties 'form' not allowed",
    ],
    ['NetworkPolicy', 'a wrong type', (spec) => (spec.ingress = {}), "at '/spec/ingress': got object, want array"],
    ['NetworkPolicy', 'a missing field', (spec) => delete spec.podSelector, "at '/spec': missing property 'podSelector'"],
    ['ScaledObject', 'an unknown field', (spec) => (spec.minReplicas = 1), "at '/spec': additional properties 'minReplicas' not allowed"],
    [
      'ScaledObject',
      'a wrong type',
      (spec) => (spec.triggers[0].metadata.targetQueueSize = 20),
      "at '/spec/triggers/0/metadata/targetQueueSize': got number, want string",
    ],
    ['ScaledObject', 'a missing field', (spec) => delete spec.scaleTargetRef, "at '/spec': missing property 'scaleTargetRef'"],
    [
      'ServiceMonitor',
      'an unknown field',
      (_, { metadata }) => Object.assign(metadata, { label: {} }),
      "at '/metadata': additional properties 'label' not allowed",
    ],
    [
      'ServiceMonitor',
      'a wrong value',
      (spec) => (spec.endpoints[0].interval = '15 seconds'),
      "at '/spec/endpoints/0/interval': '15 seconds' does not match pattern",
    ],
    ['ServiceMonitor', 'a missing field', (spec) => delete spec.selector, "at '/spec': missing property 'selector'"],
  ])('finds in a %s %s', async (kind, _, change, error) => {
    const manifest = (await render(full)).find((candidate) => candidate.kind === kind)!
    change(manifest.spec, manifest)
    expect(await check(stringify(manifest), oldest)).toEqual({ valid: 0, errors: [expect.stringContaining(error)] })
  })

  test('finds a key that is written twice', async () => {
    const manifest = (await render(minimal)).find(({ kind }) => kind === 'ServiceAccount')!
    const { valid, errors } = await check(`${stringify(manifest)}kind: ServiceAccount\n`, oldest)
    expect({ valid, errors }).toEqual({ valid: 0, errors: [expect.stringContaining('key "kind" already set in map')] })
  })
})

test('selectors match the pods of one component, and no others', async () => {
  const manifests = await render(full)
  const labelsOf = (component: string) =>
    find(manifests, jobNames.has(component) ? 'Job' : 'Deployment', `document-relay-${component}`).spec.template.metadata.labels
  const matches = (selector: Record<string, string>) =>
    components.filter((component) => Object.entries(selector).every(([key, value]) => labelsOf(component)[key] === value))
  for (const component of ['api', 'worker'] as const) {
    const name = `document-relay-${component}`
    for (const selector of [
      find(manifests, 'Deployment', name).spec.selector.matchLabels,
      find(manifests, 'Service', name).spec.selector,
      find(manifests, 'PodDisruptionBudget', name).spec.selector.matchLabels,
      find(manifests, 'NetworkPolicy', name).spec.podSelector.matchLabels,
      ...podOf(manifests, component).topologySpreadConstraints.map(({ labelSelector }) => labelSelector.matchLabels),
    ])
      expect(matches(selector)).toEqual([component])
    const { matchLabels } = find(manifests, 'ServiceMonitor', name).spec.selector
    expect(find(manifests, 'Service', name).metadata.labels).toMatchObject(matchLabels)
  }
})

test('the probes ask the ports on which the processes listen, and the API stays reachable while it is not ready', async () => {
  const manifests = await render(minimal)
  const { RELAY_PORT, RELAY_PROBES_PORT, RELAY_WORKER_PORT } = readConfig({})
  const http = { name: 'http', containerPort: RELAY_PORT }
  for (const [component, ports, readiness] of [
    ['api', [http, { name: 'probes', containerPort: RELAY_PROBES_PORT }], '/healthz'],
    ['worker', [{ name: 'probes', containerPort: RELAY_WORKER_PORT }], '/readyz'],
  ] as const) {
    const [container] = podOf(manifests, component).containers
    expect(container.ports).toEqual(ports)
    expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'probes' })
    expect(container.readinessProbe.httpGet).toEqual({ path: readiness, port: 'probes' })
    expect(container.args).toEqual([component])
  }
})

test.each([
  ['minimal', minimal],
  ['full', full],
])('with %s values, no container has rights that it does not need', async (_, values) => {
  const manifests = await render(values)
  for (const component of components) {
    const pod = podOf(manifests, component)
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } })
    expect(pod.automountServiceAccountToken).toBe(false)
    // Else a Service with the name relay sets RELAY_PORT.
    expect(pod.enableServiceLinks).toBe(false)
    for (const { securityContext, volumeMounts } of pod.containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(pod.volumes.map(({ name }) => name)).toEqual(volumeMounts.map(({ name }) => name))
      expect(volumeMounts[0]).toEqual({ name: 'tmp', mountPath: '/tmp' })
    }
  }
})

test('a pod has more time to stop than its requests, attempts and spans', async () => {
  const graceOf = async (values: object) => podOf(await render(values), 'worker').terminationGracePeriodSeconds * 1_000
  const { RELAY_SHUTDOWN_GRACE_MS, OTEL_EXPORTER_OTLP_TIMEOUT } = readConfig({})
  expect(await graceOf(minimal)).toBe(RELAY_SHUTDOWN_GRACE_MS + OTEL_EXPORTER_OTLP_TIMEOUT + 15_000)
  expect(await graceOf(full)).toBe(60_000 + OTEL_EXPORTER_OTLP_TIMEOUT + 15_000)
})

test('the migration runs before the other objects are created or changed, and the promotion after that; both need none of them', async () => {
  for (const values of [minimal, full]) {
    const manifests = await render(values)
    const hooks = manifests.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] !== undefined)
    expect(namesOf(hooks)).toEqual(['Job document-relay-migrate', 'Job document-relay-promote'])
    const whenOf = { migrate: 'pre-install,pre-upgrade', promote: 'post-install,post-upgrade,post-rollback' }
    for (const component of ['migrate', 'promote'] as const) {
      expect(find(manifests, 'Job', `document-relay-${component}`).metadata.annotations).toEqual({
        'helm.sh/hook': whenOf[component],
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      })
      expect(podOf(manifests, component).serviceAccountName).toBeUndefined()
    }
  }
  expect(podOf(await render(full), 'migrate').containers[0].args).toEqual(['migrate', '--without-search-attributes'])
})

test('every process gets the same variables, which the relay reads, and secrets only by reference', async () => {
  const sdk = await readFile(new URL('../node_modules/@temporalio/envconfig/lib/envconfig-toml.js', import.meta.url), 'utf8')
  const manifests = await render(full)
  const { env } = podOf(manifests, 'api').containers[0]
  for (const component of components) expect(podOf(manifests, component).containers[0].env).toEqual(env)
  for (const { name } of env) expect(name in environment.shape || sdk.includes(`'${name}'`) ? name : 'unknown').toBe(name)
  expect(env.filter(({ valueFrom }) => valueFrom).map(({ name, valueFrom }) => [name, valueFrom!.secretKeyRef])).toEqual([
    ['CONTENT_S3_ACCESS_KEY_ID', { name: 's3', key: 'CONTENT_S3_ACCESS_KEY_ID' }],
    ['CONTENT_S3_SECRET_ACCESS_KEY', { name: 's3', key: 'CONTENT_S3_SECRET_ACCESS_KEY' }],
    ['DATABASE_URL', { name: 'database', key: 'uri' }],
    ['RELAY_SECRET_KEYS', { name: 'document-relay', key: 'RELAY_SECRET_KEYS' }],
    ['TEMPORAL_API_KEY', { name: 'temporal', key: 'TEMPORAL_API_KEY' }],
  ])
  const values = Object.fromEntries(env.filter(({ value }) => value !== undefined).map(({ name, value }) => [name, value]))
  expect(values).toEqual({ ...full.config, TEMPORAL_WORKER_BUILD_ID: full.image.tag })
  expect(readConfig(values).RELAY_SHUTDOWN_GRACE_MS).toBe(60_000)
})

test('every variable that values may set is one that the relay or an SDK reads', async () => {
  const paths = [
    '@temporalio/envconfig/lib/envconfig-toml.js',
    '@temporalio/envconfig/lib/envconfig.js',
    '@opentelemetry/resources/dist/detectors/ResourceAttributesEnvDetector.mjs',
    '@opentelemetry/resources/dist/detectors/ServiceNameEnvDetector.mjs',
    '@opentelemetry/otlp-exporter-base/dist/platform/node/configuration/otlp-node-http-env-configuration.mjs',
  ]
  const sdks = (await Promise.all(paths.map((path) => readFile(new URL(`../node_modules/${path}`, import.meta.url), 'utf8')))).join('\n')
  const { properties } = JSON.parse(valuesSchema()) as { properties: Record<string, { properties: Record<string, unknown> }> }
  const names = [...Object.keys(properties['config']!.properties), ...Object.keys(properties['secrets']!.properties)]
  expect(new Set(names).size).toBe(names.length)
  expect(names.filter((name) => !(name in environment.shape) && !new RegExp(`['"]${name}['"]`).test(sdks))).toEqual([])
})

test.each([
  ['no address of Temporal', {}, /TEMPORAL_ADDRESS/],
  ['an unknown variable', { config: { ...minimal.config, RELAY_TRUST_PROXI: 'true' } }, /RELAY_TRUST_PROXI/],
  ['a secret as a plain value', { config: { ...minimal.config, DATABASE_URL: 'postgres://' } }, /DATABASE_URL/],
  ['a number, which Helm would write as 1e+07', { config: { ...minimal.config, RELAY_SHUTDOWN_GRACE_MS: 10_000_000 } }, /string/],
  ['an unknown value', { ...minimal, replicas: 3 }, /replicas/],
  ['an Ingress without a host', { ...minimal, ingress: { enabled: true } }, /hosts/],
])('the chart refuses %s', async (_, values, message) => {
  await expect(render(values)).rejects.toThrow(message)
})

test('autoscalers replace the numbers of replicas', async () => {
  const [few, all] = [await render(minimal), await render(full)]
  for (const component of ['api', 'worker']) {
    expect(find(few, 'Deployment', `document-relay-${component}`).spec.replicas).toBe(2)
    expect(find(all, 'Deployment', `document-relay-${component}`).spec).not.toHaveProperty('replicas')
  }
  expect(find(all, 'HorizontalPodAutoscaler', 'document-relay-api').spec.scaleTargetRef.name).toBe('document-relay-api')
  const { scaleTargetRef, triggers } = find(all, 'ScaledObject', 'document-relay-worker').spec
  expect(scaleTargetRef).toEqual({ name: 'document-relay-worker' })
  expect(triggers).toEqual([
    {
      type: 'temporal',
      metadata: {
        endpoint: 'temporal:7233',
        namespace: 'relay',
        taskQueue: readConfig({}).TEMPORAL_TASK_QUEUE,
        queueTypes: 'workflow,activity',
        targetQueueSize: '20',
        workerDeploymentName: 'document-relay',
        workerDeploymentBuildId: full.image.tag,
      },
      authenticationRef: { name: 'temporal' },
    },
    {
      type: 'prometheus',
      metadata: { serverAddress: 'http://prometheus:9090', query: 'max(relay_waiting_oldest_seconds)', threshold: '15' },
    },
  ])
})

test.each([
  ['the default deployment', {}, 'document-relay'],
  ['a named deployment', { TEMPORAL_WORKER_DEPLOYMENT: 'relay' }, 'relay'],
])('with a build id, the tasks of this build in %s scale the workers', async (_, variables, deployment) => {
  const config = { ...full.config, TEMPORAL_WORKER_BUILD_ID: '1.2.3', ...variables }
  const manifests = await render({ ...full, config })
  const { metadata } = find(manifests, 'ScaledObject', 'document-relay-worker').spec.triggers[0]
  expect(metadata).toMatchObject({ workerDeploymentName: deployment, workerDeploymentBuildId: '1.2.3' })
  const { env } = podOf(manifests, 'worker').containers[0]
  const values = Object.fromEntries(env.filter(({ value }) => value !== undefined).map(({ name, value }) => [name, value]))
  const { TEMPORAL_WORKER_DEPLOYMENT, TEMPORAL_WORKER_BUILD_ID } = readConfig(values)
  expect([TEMPORAL_WORKER_DEPLOYMENT, TEMPORAL_WORKER_BUILD_ID]).toEqual([deployment, '1.2.3'])
})

test('workers have the tag of their image as their build, and a job makes it current after each change of the release', async () => {
  const buildOf = (manifests: Manifest[], component: 'worker' | 'promote') =>
    podOf(manifests, component).containers[0].env.find(({ name }) => name === 'TEMPORAL_WORKER_BUILD_ID')?.value
  const manifests = await render({ ...minimal, image: { tag: '1.2.3' } })
  expect([buildOf(manifests, 'worker'), buildOf(manifests, 'promote')]).toEqual(['1.2.3', '1.2.3'])
  expect(podOf(manifests, 'promote').containers[0].args).toEqual(['promote'])

  const without = await render({ ...minimal, worker: { versioning: false } })
  expect(buildOf(without, 'worker')).toBeUndefined()
  expect(without.some(({ metadata }) => metadata.name === 'document-relay-promote')).toBe(false)
})

test('the Ingress publishes the receivers and the download links only', async () => {
  const { rules, tls, ingressClassName } = find(await render(full), 'Ingress', 'document-relay-api').spec
  expect({ tls, ingressClassName }).toEqual({ tls: full.ingress.tls, ingressClassName: 'nginx' })
  expect(rules).toHaveLength(1)
  expect(rules[0].host).toBe('relay.example')
  expect(rules[0].http.paths.map(({ path }: { path: string }) => path)).toEqual(['/receiver', '/download'])
})

test('no Service that can be published has the probes and metrics', async () => {
  const services = (await render({ ...full, service: { type: 'LoadBalancer' } })).filter(({ kind }) => kind === 'Service')
  const published = services.filter(({ spec }) => spec.clusterIP !== 'None')
  expect(published.map(({ metadata, spec }) => [metadata.name, spec.ports])).toEqual([
    ['document-relay-api', [{ name: 'http', port: 8080, targetPort: 'http' }]],
  ])
})

test('the network policies admit the peers of the values', async () => {
  const manifests = await render(full)
  const ingressOf = (component: string) => find(manifests, 'NetworkPolicy', `document-relay-${component}`).spec.ingress
  const probes = { ports: [{ port: 'probes' }], from: full.networkPolicy.metricsFrom }
  expect(ingressOf('api')).toEqual([{ ports: [{ port: 'http' }], from: full.networkPolicy.apiFrom }, probes])
  expect(ingressOf('worker')).toEqual([probes])
  for (const component of ['api', 'worker']) {
    const { policyTypes, egress } = find(manifests, 'NetworkPolicy', `document-relay-${component}`).spec
    expect({ policyTypes, egress }).toEqual({ policyTypes: ['Ingress', 'Egress'], egress: full.networkPolicy.egress })
  }
})

test('the files of deploy/monitoring are in the chart, byte for byte, and are rendered without a change', async () => {
  const copies = await copiesInChart()
  const files = await readdir(new URL('../deploy/helm/document-relay/files', import.meta.url))
  expect(Object.keys(copies)).toHaveLength(files.length)
  for (const file of files) {
    const copy = await readFile(new URL(`../deploy/helm/document-relay/files/${file}`, import.meta.url))
    expect(copy.equals(await readFile(new URL(`../deploy/monitoring/${file}`, import.meta.url)))).toBe(true)
    expect(copies[`deploy/helm/document-relay/files/${file}`]).toBe(copy.toString())
  }
  const manifests = await render(full)
  const rules = await readFile(new URL('../deploy/monitoring/relay.rules.yml', import.meta.url), 'utf8')
  expect(find(manifests, 'PrometheusRule', 'document-relay').spec).toEqual(parse(rules))
  const dashboard = await readFile(new URL('../deploy/monitoring/relay-dashboard.json', import.meta.url), 'utf8')
  expect(JSON.parse(find(manifests, 'ConfigMap', 'document-relay-dashboard').data!['relay-dashboard.json']!)).toEqual(JSON.parse(dashboard))
})

test('Prometheus gives the processes the names of jobs that the rules expect', async () => {
  const manifests = await render(full)
  const config = parse(await readFile(new URL('../deploy/monitoring/prometheus.yml', import.meta.url), 'utf8')) as {
    scrape_configs: { job_name: string }[]
  }
  const jobs = ['api', 'worker'].map((component) => {
    const { endpoints } = find(manifests, 'ServiceMonitor', `document-relay-${component}`).spec
    expect(endpoints).toEqual([expect.objectContaining({ port: 'probes' })])
    return endpoints[0].relabelings[0].replacement as string
  })
  expect(jobs).toEqual(config.scrape_configs.map(({ job_name }) => job_name))
})

test('the version of the chart is that of the relay', async () => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  const chart = parse(await readFile(new URL('../deploy/helm/document-relay/Chart.yaml', import.meta.url), 'utf8')) as Record<
    string,
    string
  >
  expect([chart['version'], chart['appVersion']]).toEqual([version, version])
  expect(podOf(await render(minimal), 'api').containers[0].image).toBe(`document-relay:${version}`)
  expect(podOf(await render(full), 'api').containers[0].image).toBe('registry.example/relay:1.2.3')
})

test('the Secret that docs/kubernetes.md creates has an address of the database and a sealing key that the relay accepts', async () => {
  const page = await readFile(new URL('../docs/kubernetes.md', import.meta.url), 'utf8')
  const { content } = blocksOf(page).find((block) => block.content.includes('create secret'))!
  // Without a cluster, kubectl prints its arguments.
  const [output] = await runSteps([`kubectl() { printf '%s\\n' "$@"; }\n${content}`], {
    folder,
    environment: process.env,
    timeoutMs: 10_000,
  })
  const variables = Object.fromEntries([...output!.matchAll(/^--from-literal=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value!]))
  const { DATABASE_URL, RELAY_SECRET_KEYS } = readConfig(variables)
  expect(new URL(DATABASE_URL!).hostname).toBe('postgres.example')
  expect(createKeyRing(RELAY_SECRET_KEYS).sealingId).toBe('k1')
})

test('the values and the options of docs/kubernetes.md render the chart with the Secret that the page creates', async () => {
  const page = { path: 'docs/kubernetes.md', text: await readFile(new URL('../docs/kubernetes.md', import.meta.url), 'utf8') }
  const [install, secret] = ['helm install', 'kubectl --namespace relay create secret'].map(
    (begin) => commandsOf(page).find(({ words }) => words.join(' ').startsWith(`${begin} `))!.words,
  )
  expect(install!.slice(0, 4)).toEqual(['helm', 'install', 'document-relay', 'deploy/helm/document-relay'])
  const values = blocksOf(page.text).flatMap(({ language, content }) => (language === 'yaml' ? [parse(content) as object] : []))
  expect(values).toHaveLength(2)

  const file = join(folder, 'values.yaml')
  const options = install!.slice(4).map((word) => (word === 'values.yaml' ? file : word))
  for (const chosen of [values[0]!, { ...values[0], ...values[1] }]) {
    await writeFile(file, stringify(chosen))
    const manifests = manifestsIn(await renderChart(helm(), options))
    expect(namesOf(manifests)).toEqual([...always, 'Ingress document-relay-api'].toSorted())
    const [{ image, env }] = podOf(manifests, 'api').containers
    expect(image).toMatch(/^registry\.example\/document-relay:/)
    const references = Object.fromEntries(env.flatMap(({ name, valueFrom }) => (valueFrom ? [[name, valueFrom.secretKeyRef]] : [])))
    const named = secret!.flatMap((word) => /^--from-literal=(\w+)=/.exec(word)?.[1] ?? [])
    const expected = 'secrets' in chosen ? chosen.secrets : Object.fromEntries(named.map((name) => [name, { name: secret![6], key: name }]))
    expect(references).toMatchObject(expected as object)
  }
})
