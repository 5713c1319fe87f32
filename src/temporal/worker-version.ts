import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, type WorkflowService } from '@temporalio/client'
import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { describeTemporalError, isNotFound, isRefusal } from './errors.ts'

type VersionConfig = Pick<Config, 'temporal' | 'TEMPORAL_START_TIMEOUT_MS' | 'TEMPORAL_WORKER_BUILD_ID' | 'TEMPORAL_WORKER_DEPLOYMENT'>

export interface WorkerVersion {
  deploymentName: string
  buildId: string
  /** The build that was current before. Absent if none was, or if this one was. */
  previousBuildId: string | undefined
}

const pauseMs = 1_000
// Time in which an orchestrator pulls an image and starts the first worker of a build.
const firstWorkerMs = 300_000

/**
 * Gives every workflow to the workers of this build. The server accepts that as soon as a worker of the build has asked for tasks, so the
 * call is repeated until then. Workers of other builds keep what they have begun, and get nothing new.
 * @throws `UserError` if there is no build id, if the server refuses, or if no worker of the build appears
 */
export const makeCurrent = async (config: VersionConfig, maxMs = firstWorkerMs): Promise<WorkerVersion> => {
  const { TEMPORAL_WORKER_BUILD_ID: buildId, TEMPORAL_WORKER_DEPLOYMENT: deploymentName, temporal } = config
  if (!buildId) throw new UserError('TEMPORAL_WORKER_BUILD_ID is not set: these workers have no version.')
  const endsAt = Date.now() + maxMs
  // The answer of the server tells it as well, but not if the call was repeated: the second one finds the build current already.
  let before: { buildId: string | undefined } | undefined
  for (;;) {
    try {
      await callServer(config, async (service, namespace) => {
        before ??= { buildId: await findCurrentBuild(service, namespace, deploymentName) }
        await service.setWorkerDeploymentCurrentVersion({ namespace, deploymentName, buildId, identity: 'relay promote' })
      })
      return { deploymentName, buildId, previousBuildId: before?.buildId === buildId ? undefined : before?.buildId }
    } catch (thrown) {
      if (isRefusal(thrown) || Date.now() + pauseMs >= endsAt) {
        const reason = describeTemporalError(thrown, temporal)
        throw new UserError(`The build ${buildId} of ${deploymentName} could not be made current: ${reason}`, { cause: thrown })
      }
      await sleep(pauseMs)
    }
  }
}

const callServer = async (
  { temporal: { connectionOptions, namespace = 'default' }, TEMPORAL_START_TIMEOUT_MS }: VersionConfig,
  call: (service: WorkflowService, namespace: string) => Promise<void>,
): Promise<void> => {
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: TEMPORAL_START_TIMEOUT_MS })
  try {
    await connection.withDeadline(Date.now() + TEMPORAL_START_TIMEOUT_MS, () => call(connection.workflowService, namespace))
  } finally {
    await connection.close()
  }
}

/** @returns undefined if no build is current, if no worker of the deployment has ever asked for tasks, or if the server refuses to tell */
const findCurrentBuild = async (service: WorkflowService, namespace: string, deploymentName: string): Promise<string | undefined> => {
  try {
    const { workerDeploymentInfo } = await service.describeWorkerDeployment({ namespace, deploymentName })
    return workerDeploymentInfo?.routingConfig?.currentDeploymentVersion?.buildId || undefined
  } catch (thrown) {
    if (isNotFound(thrown) || isRefusal(thrown)) return undefined
    throw thrown
  }
}
