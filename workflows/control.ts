import { proxyActivities, workflowInfo, type ActivityOptions } from '@temporalio/workflow'
import { controlQueueOf } from './ids.ts'

/**
 * Returns activities that call no target: maintenance jobs, batches, and the records of what operators have done. They have a task queue and
 * a worker of their own, in which no target that hangs takes a place. Call it in a workflow.
 */
export const controlActivities = <Activities>(options: ActivityOptions) =>
  proxyActivities<Activities>({ ...options, taskQueue: controlQueueOf(workflowInfo().taskQueue) })
