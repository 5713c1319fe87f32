import { readFile } from 'node:fs/promises'
import { environment } from '../src/config/config.ts'
import { generatedJson } from './generated-json.ts'

// Variables of the Temporal SDK, which src/config/config.ts reads with the SDK's own functions.
const temporalVariables = ['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE', 'TEMPORAL_TLS']
const temporalTlsVariables = ['CLIENT_CERT_PATH', 'CLIENT_KEY_PATH', 'SERVER_CA_CERT_PATH', 'SERVER_NAME', 'DISABLE_HOST_VERIFICATION'].map(
  (name) => `TEMPORAL_TLS_${name}`,
)

// Variables that the SDK of OpenTelemetry reads from the environment itself.
const openTelemetryVariables = ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES']

const secrets = [
  'DATABASE_URL',
  'RELAY_SECRET_KEYS',
  'RELAY_OUTBOUND_PROXY',
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS_CLIENT_CERT_DATA',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'TEMPORAL_TLS_SERVER_CA_CERT_DATA',
  'CONTENT_S3_ACCESS_KEY_ID',
  'CONTENT_S3_SECRET_ACCESS_KEY',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'RELAY_METRICS_TOKEN',
]

// Set by the chart, or without a meaning in a container.
const excluded =
  /^(RELAY_PORT|RELAY_PROBES_PORT|RELAY_WORKER_PORT|RELAY_HOST|RELAY_PROBES_HOST|RELAY_DATA_DIR|RELAY_CACHE_DIR|RELAY_POSTGRES_BIN|RELAY_TEMPORAL)/

const publicVariables = [...temporalVariables, ...temporalTlsVariables, ...openTelemetryVariables, ...Object.keys(environment.shape)]
  .filter((name) => !secrets.includes(name) && !excluded.test(name))
  .toSorted()

type Schema = Record<string, unknown>
const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
})
const listOf = (items: Schema): Schema => ({ type: 'array', items })
const text: Schema = { type: 'string' }
const name: Schema = { type: 'string', minLength: 1 }
const flag: Schema = { type: 'boolean' }
const count: Schema = { type: 'integer', minimum: 1 }
const path: Schema = { type: 'string', pattern: '^/' }
const texts: Schema = { type: 'object', additionalProperties: text }
const anyObject: Schema = { type: 'object' }
const secret = object({ name, key: name }, { required: ['name'] })

/** Generates values.schema.json of the chart. The names of variables come from the configuration of the relay. */
export const valuesSchema = (): string => {
  const schema = object(
    {
      // Helm passes values of parent charts to a chart that is one of their dependencies.
      global: anyObject,
      image: object({ repository: name, tag: text, pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] } }),
      imagePullSecrets: listOf(anyObject),
      config: object(Object.fromEntries(publicVariables.map((variable) => [variable, variable === 'TEMPORAL_ADDRESS' ? name : text])), {
        required: ['TEMPORAL_ADDRESS'],
      }),
      secrets: object(Object.fromEntries(secrets.map((variable) => [variable, secret])), {
        required: ['DATABASE_URL', 'RELAY_SECRET_KEYS'],
      }),
      serviceAccount: object({ annotations: texts }),
      volumes: listOf(anyObject),
      volumeMounts: listOf(anyObject),
      podAnnotations: texts,
      nodeSelector: texts,
      tolerations: listOf(anyObject),
      api: object({
        replicas: count,
        resources: anyObject,
        autoscaling: object({ enabled: flag, minReplicas: count, maxReplicas: count, targetCPUUtilizationPercentage: count }),
      }),
      worker: object({
        replicas: count,
        resources: anyObject,
        versioning: flag,
        keda: object({
          enabled: flag,
          // Without a worker, the maintenance jobs would not run.
          minReplicas: count,
          maxReplicas: count,
          targetQueueSize: count,
          temporalAuthentication: text,
          prometheusAddress: text,
          targetWaitingSeconds: count,
        }),
      }),
      migrate: object({ args: listOf(text), resources: anyObject, activeDeadlineSeconds: count }),
      service: object({ type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] }, port: count, annotations: texts }),
      ingress: object(
        { enabled: flag, className: text, annotations: texts, hosts: listOf(name), paths: listOf(path), tls: listOf(anyObject) },
        { anyOf: [{ properties: { enabled: { const: false } } }, { properties: { hosts: { minItems: 1 }, paths: { minItems: 1 } } }] },
      ),
      networkPolicy: object({ enabled: flag, apiFrom: listOf(anyObject), metricsFrom: listOf(anyObject), egress: listOf(anyObject) }),
      monitoring: object({ enabled: flag, labels: texts, scrapeInterval: name, dashboard: object({ enabled: flag, labels: texts }) }),
    },
    { required: ['config', 'secrets'] },
  )
  return generatedJson({ $schema: 'http://json-schema.org/draft-07/schema#', ...schema })
}

/** Returns the files of deploy/monitoring that the chart contains. Helm reads no files outside a chart. */
export const copiesInChart = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(
      ['relay.rules.yml', 'relay-dashboard.json'].map(async (file) => [
        `deploy/helm/document-relay/files/${file}`,
        await readFile(new URL(`../deploy/monitoring/${file}`, import.meta.url), 'utf8'),
      ]),
    ),
  ) as Record<string, string>
