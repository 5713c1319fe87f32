import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type Connection,
  type ScheduleOptions,
  type WorkflowExecutionDescription,
} from '@temporalio/client'
import type { MaintenanceInput } from '../../workflows/messages.ts'
import { logFailure, reasonOf } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { suspicionOf } from '../delivery/stuck-run.ts'
import type { Temporal } from './client.ts'
import { createIsStuck, progressOf, terminationReason } from './delivery-workflows.ts'

export interface ScheduledJob {
  name: string
  description: string
  intervalMs: number
}

type ScheduleConfig = Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

// In this time, a job that runs every 15 s adds fewer events to a history than Temporal suggests as a maximum.
const runMs = 3_600_000
// A missed start is made up for. Otherwise, the job would not run for as long as a workflow lasts.
const catchupWindow = '1 day'

const scheduleIdOf = ({ name }: ScheduledJob) => `relay-${name}`

const optionsOf = (job: ScheduledJob, config: ScheduleConfig) =>
  ({
    scheduleId: scheduleIdOf(job),
    spec: { intervals: [{ every: Math.max(job.intervalMs, runMs) }] },
    action: {
      type: 'startWorkflow',
      workflowType: 'maintenance',
      // Temporal appends the time.
      workflowId: scheduleIdOf(job),
      args: [{ job: job.name, everyMs: job.intervalMs, forMs: runMs } satisfies MaintenanceInput],
      taskQueue: config.TEMPORAL_TASK_QUEUE,
      staticSummary: job.description,
    },
    // A start during a run is delayed until the run ends.
    policies: { overlap: 'BUFFER_ONE', catchupWindow },
  }) satisfies ScheduleOptions

export const createSchedules = (
  client: Client,
  connection: Pick<Connection, 'withDeadline' | 'workflowService'>,
  config: ScheduleConfig,
) => {
  const withTimeout = <T>(call: () => Promise<T>) => connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, call)

  const ensureOne = async (job: ScheduledJob): Promise<void> => {
    const options = optionsOf(job, config)
    try {
      await withTimeout(() => client.schedule.create({ ...options, state: { note: job.description, triggerImmediately: true } }))
    } catch (thrown) {
      if (!(thrown instanceof ScheduleAlreadyRunning)) throw thrown
      // A schedule that an operator has paused stays paused.
      await withTimeout(() => client.schedule.getHandle(options.scheduleId).update(({ state }) => ({ ...options, state })))
    }
  }

  const exists = async (job: ScheduledJob): Promise<boolean> => {
    try {
      await withTimeout(() => client.schedule.getHandle(scheduleIdOf(job)).describe())
      return true
    } catch (thrown) {
      if (thrown instanceof ScheduleNotFoundError) return false
      throw thrown
    }
  }

  const isStuck = createIsStuck(client.options.namespace, connection, withTimeout)

  // What the last check has found of workflows that cannot go on, by workflow id.
  const suspicions = new Map<string, string>()

  /** Returns true if the last check has found the same workflow at the same place. */
  const isStuckAgain = async (found: WorkflowExecutionDescription): Promise<boolean> => {
    const { workflowId } = found
    const before = suspicions.get(workflowId)
    suspicions.delete(workflowId)
    if (!(await isStuck(found))) return false
    const suspicion = suspicionOf(progressOf(found))
    if (suspicion === before) return true
    suspicions.set(workflowId, suspicion)
    return false
  }

  /** Restarts a job whose workflow was stuck at two checks. @returns the ids of the terminated workflows */
  const replaceStuck = async (job: ScheduledJob): Promise<string[]> => {
    const schedule = client.schedule.getHandle(scheduleIdOf(job))
    const { info } = await withTimeout(() => schedule.describe())
    const terminated: string[] = []
    for (const { workflow } of info.runningActions) {
      const found = await withTimeout(() => client.workflow.getHandle(workflow.workflowId).describe())
      if (!(await isStuckAgain(found))) continue
      await withTimeout(() => client.workflow.getHandle(workflow.workflowId, found.runId).terminate(terminationReason))
      await withTimeout(() => schedule.trigger())
      terminated.push(workflow.workflowId)
    }
    return terminated
  }

  return {
    /** Creates or updates the schedules of these jobs. @throws if the server does not accept schedules */
    ensure: async (jobs: readonly ScheduledJob[]): Promise<void> => {
      for (const job of jobs) await ensureOne(job)
    },

    /** Restarts jobs whose workflows were stuck at this call and the one before. @returns the ids of the terminated workflows */
    replaceStuck: async (jobs: readonly ScheduledJob[]): Promise<string[]> => (await Promise.all(jobs.map(replaceStuck))).flat(),

    findMissing: async (jobs: readonly ScheduledJob[]): Promise<string[]> => {
      const found = await Promise.all(jobs.map(exists))
      return jobs.filter((_, index) => !found[index]).map(scheduleIdOf)
    },
  }
}

type Schedules = ReturnType<typeof createSchedules>

// A server that is busy for a moment answers the next check. A check that fails this often in a row is logged.
const failuresToReport = 3

interface KeepOptions {
  /** False: the schedules may have the settings of a former start. */
  areEnsured: boolean
  temporal: Pick<Temporal, 'registerSearchAttributes'>
  /** Reconciles if the job does not, because its own workflow is stuck. */
  catchUp(): Promise<void>
  config: Pick<Config, 'RECONCILE_INTERVAL_MS'>
  log: Log
}

/**
 * Creates missing schedules again, and restarts stuck jobs, once per RECONCILE_INTERVAL_MS: Temporal may have lost its state or may have
 * been restored, and without the jobs nothing would repair the rest. If schedules are missing, the namespace is new, so the search
 * attributes are registered as well, unless the server refuses.
 * @returns a function that stops this
 */
export const keepSchedules = (
  schedules: Schedules,
  jobs: readonly ScheduledJob[],
  { areEnsured, temporal, catchUp, config, log }: KeepOptions,
): (() => Promise<void>) => {
  let isFirst = !areEnsured
  const repair = async () => {
    if (isFirst) {
      await schedules.ensure(jobs)
      isFirst = false
      return
    }
    const missing = await schedules.findMissing(jobs)
    if (missing.length === 0) {
      const terminated = await schedules.replaceStuck(jobs)
      if (terminated.length > 0) log.warn({ terminated }, 'workflows of maintenance jobs were stuck; their schedules start them again')
      return
    }
    log.warn({ missing }, 'Temporal has lost schedules of maintenance jobs; this worker creates them again')
    await temporal.registerSearchAttributes().catch((thrown: unknown) => {
      logFailure(log, thrown, 'search attributes could not be registered; running without them')
    })
    await schedules.ensure(jobs)
  }
  const steps = [repair, catchUp].map((run) => ({ run, failures: 0 }))
  const keep = async () => {
    for (const step of steps) {
      try {
        await step.run()
        step.failures = 0
      } catch (thrown) {
        step.failures += 1
        const message = 'failed to check the maintenance jobs in Temporal, the next check tries again'
        if (step.failures < failuresToReport) log.debug({ reason: reasonOf(thrown) }, message)
        else logFailure(log, thrown, message)
      }
    }
  }
  let running: Promise<void> | undefined
  const timer = setInterval(() => {
    running ??= keep().finally(() => {
      running = undefined
    })
  }, config.RECONCILE_INTERVAL_MS)
  return async () => {
    clearInterval(timer)
    await running
  }
}
