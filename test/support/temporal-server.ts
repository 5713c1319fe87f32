// The Temporal server of the system tests: a namespace of the dev server of the run, a dev server of the file if it needs settings, or a
// namespace of the cluster that `script/test --temporal postgres` starts for the run.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { newId } from '../../src/base/ids.ts'
import { readConfig } from '../../src/config/config.ts'
import { databaseArguments } from '../../src/dev/temporal-dev-server.ts'
import { dynamicConfig } from '../../src/temporal-server/dynamic-config.ts'
import { registerSearchAttributes } from '../../src/temporal/search-attributes.ts'
import { searchAttributes } from '../../workflows/options.ts'
import { disposable } from './disposable.ts'
import { takeNamespace } from './shared-dev-server.ts'
import { addSetting, createNamespace, temporalCluster, type TemporalCluster } from './temporal-cluster.ts'
import { silenceSdkLog, startWithRetries, type TemporalEnvironment } from './temporal.ts'
import { until } from './until.ts'

/** Starts a server with lists, schedules, search attributes and time as in production. `settings` are added to the dynamic configuration. */
export const startTemporalServer = async (
  settings: string[] = [],
  attributes = Object.values(searchAttributes),
): Promise<TemporalEnvironment> => {
  silenceSdkLog()
  const cluster = temporalCluster()
  const env = await (cluster ? openNamespace(cluster, settings, attributes.length > 0) : openDevServer(settings, attributes))
  return disposable(env, () => env.teardown())
}

/** Takes a namespace of the dev server of the run, or starts one that has these settings. */
const openDevServer = async (settings: string[], attributes: { name: string }[]): Promise<TestWorkflowEnvironment> => {
  const isUsual = settings.length === 0 && attributes.length > 0
  const shared = isUsual ? await takeNamespace() : undefined
  return shared ? TestWorkflowEnvironment.createFromExistingServer(shared) : startDevServer(settings, attributes)
}

const startDevServer = (settings: string[], attributes: { name: string }[]) =>
  startWithRetries(() =>
    TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: 'existing-path', path: process.env.TEST_TEMPORAL_BIN! },
        extraArgs: [
          ...databaseArguments(join(process.env.TEST_WORK_DIR!, `${newId()}.sqlite`)),
          ...attributes.flatMap((key) => ['--search-attribute', `${key.name}=Keyword`]),
          ...[...dynamicConfig, ...settings].flatMap((setting) => ['--dynamic-config-value', setting]),
        ],
      },
    }),
  )

const openNamespace = async (cluster: TemporalCluster, settings: string[], isRegistered: boolean): Promise<TestWorkflowEnvironment> => {
  const namespace = `test-${newId().toLowerCase()}`
  for (const setting of settings) await addSetting(cluster, namespace, setting)
  await createNamespace(cluster, process.env.TEST_TEMPORAL_BIN!, namespace)
  const config = readConfig({ ...cluster.variables, TEMPORAL_NAMESPACE: namespace })
  const { connectionOptions } = config.temporal
  const env = await TestWorkflowEnvironment.createFromExistingServer({
    address: connectionOptions.address!,
    namespace,
    connectionOptions: { tls: connectionOptions.tls! },
  })
  const isKnown = () => env.connection.operatorService.listSearchAttributes({ namespace }).then(Boolean, () => false)
  await until('the frontend knows the namespace', isKnown)
  if (isRegistered) {
    // As relay migrate does it.
    const refused = await registerSearchAttributes(config)
    if (refused !== undefined) throw new Error(refused)
    // The other services read the search attributes every two seconds, and on a busy machine later.
    await delay(5_000)
  }
  return env
}
