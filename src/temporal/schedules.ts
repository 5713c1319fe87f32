import { ScheduleAlreadyRunning, ScheduleNotFoundError, type Client, type Connection, type ScheduleOptions } from '@temporalio/client'
import type { MaintenanceInput } from '../../workflows/messages.ts'
import type { Config } from '../config.ts'

/** A job that a schedule runs. */
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

export const createSchedules = (client: Client, connection: Pick<Connection, 'withDeadline'>, config: ScheduleConfig) => {
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

  return {
    /** Creates or updates the schedules of these jobs. @throws if the server does not accept schedules */
    ensure: async (jobs: readonly ScheduledJob[]): Promise<void> => {
      for (const job of jobs) await ensureOne(job)
    },

    /** Returns the ids of missing schedules. */
    findMissing: async (jobs: readonly ScheduledJob[]): Promise<string[]> => {
      const found = await Promise.all(jobs.map(exists))
      return jobs.filter((_, index) => !found[index]).map(scheduleIdOf)
    },
  }
}
