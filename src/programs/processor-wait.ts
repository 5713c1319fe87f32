import { readdir, readFile } from 'node:fs/promises'

/**
 * Returns how long the threads of a process have waited for a processor so far, in milliseconds and in sum: the second field of
 * `/proc/PID/task/TID/schedstat` (proc(5), sched-stats of the kernel). A process that is stopped, or that waits for something else, does not
 * wait for a processor. 0 where the system does not say it.
 */
export const processorWaitMs = async (pid: number): Promise<number> => {
  const folder = `/proc/${pid}/task`
  const tasks = await readdir(folder).catch(() => [])
  const waits = await Promise.all(
    tasks.map(async (task) => {
      const [, waitedNs = 0] = (await readFile(`${folder}/${task}/schedstat`, 'utf8').catch(() => '')).split(' ').map(Number)
      return waitedNs / 1e6
    }),
  )
  return waits.reduce((sum, wait) => sum + wait, 0)
}
