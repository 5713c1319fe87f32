import { Gauge, type Metric } from 'prom-client'

// Several Prometheus servers and people may read the metrics, and Temporal should be asked less often than that.
const keptMs = 10_000

/** @param list asks Temporal for the workers that poll the task queue. Must have its own timeout */
export const createPollersMetric = (taskQueue: string, list: () => Promise<unknown[]>): Metric => {
  let asked: Promise<number> | undefined
  let askAgainAt = 0
  const count = () => {
    if (!asked || performance.now() >= askAgainAt) {
      askAgainAt = performance.now() + keptMs
      asked = list().then(
        (found) => found.length,
        () => Number.NaN,
      )
    }
    return asked
  }
  return new Gauge({
    name: 'relay_task_queue_pollers',
    help: 'Workers that wait for tasks of the task queue, as Temporal says; NaN if Temporal does not answer',
    labelNames: ['task_queue'],
    registers: [],
    async collect() {
      this.set({ task_queue: taskQueue }, await count())
    },
  })
}
