import { ScheduleAlreadyRunning, ScheduleNotFoundError, type Client, type Connection, type ScheduleOptions } from '@temporalio/client'
import type { ChoreInput } from '../../workflows/messages.ts'
import type { Chore } from '../chores.ts'
import type { Config } from '../config.ts'

type Scheduled = Pick<Chore, 'name' | 'note' | 'intervalMs'>
type ScheduleConfig = Parameters<Chore['intervalMs']>[0] & Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

// Events a run at the shortest interval in use, every 15 s, gathers in this time: below what Temporal suggests a history to have.
const runMs = 3_600_000
// a start that was missed is made up for: without it nothing would be done for as long as a run goes on
const catchupWindow = '1 day'

const scheduleIdOf = ({ name }: Scheduled) => `relay-${name}`

const optionsOf = (chore: Scheduled, config: ScheduleConfig) =>
  ({
    scheduleId: scheduleIdOf(chore),
    spec: { intervals: [{ every: Math.max(chore.intervalMs(config), runMs) }] },
    action: {
      type: 'startWorkflow',
      workflowType: 'chore',
      // Temporal adds the time
      workflowId: scheduleIdOf(chore),
      args: [{ name: chore.name, everyMs: chore.intervalMs(config), forMs: runMs } satisfies ChoreInput],
      taskQueue: config.TEMPORAL_TASK_QUEUE,
      staticSummary: chore.note,
    },
    // one that comes while a run is at work begins when that ends
    policies: { overlap: 'BUFFER_ONE', catchupWindow },
  }) satisfies ScheduleOptions

export const createSchedules = (client: Client, connection: Pick<Connection, 'withDeadline'>, config: ScheduleConfig) => {
  const within = <T>(work: () => Promise<T>) => connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, work)

  const ensureOne = async (chore: Scheduled): Promise<void> => {
    const options = optionsOf(chore, config)
    try {
      await within(() => client.schedule.create({ ...options, state: { note: chore.note, triggerImmediately: true } }))
    } catch (thrown) {
      if (!(thrown instanceof ScheduleAlreadyRunning)) throw thrown
      // an operator may have paused it: that stays
      await within(() => client.schedule.getHandle(options.scheduleId).update(({ state }) => ({ ...options, state })))
    }
  }

  const isThere = async (chore: Scheduled): Promise<boolean> => {
    try {
      await within(() => client.schedule.getHandle(scheduleIdOf(chore)).describe())
      return true
    } catch (thrown) {
      if (thrown instanceof ScheduleNotFoundError) return false
      throw thrown
    }
  }

  return {
    /** Makes the schedules of these chores, or changes them to what they are now. Throws where the server does not take them. */
    ensure: async (chores: readonly Scheduled[]): Promise<void> => {
      for (const chore of chores) await ensureOne(chore)
    },

    /** The ids of those that are not there. */
    findMissing: async (chores: readonly Scheduled[]): Promise<string[]> => {
      const there = await Promise.all(chores.map(isThere))
      return chores.filter((_, index) => !there[index]).map(scheduleIdOf)
    },
  }
}
