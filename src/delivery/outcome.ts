import type { AttemptInput } from '../../workflows/messages.ts'
import { businessObjectOf } from '../archive/delivery-input.ts'
import { countOf } from '../base/count-of.ts'
import { remedyFor } from '../connectors/error-codes.ts'
import type { Database } from '../db/database.ts'
import type { AttemptOutcome } from '../domain/delivery-run.ts'
import type { DeliveryJob } from './delivery-job.ts'
import { keepsWorkflow } from './retry-window.ts'

// The outcome of an attempt that has not delivered the document, by what is recorded of it: the run that has recorded it returns the same as
// one that finds the record.

type Recorded = Pick<DeliveryJob, 'failures' | 'endedBy' | 'lastError' | 'lastErrorCode' | 'destination' | 'erpObjectType' | 'erpObjectId'>

const factsOf = ({ lastErrorCode, ...job }: Recorded) => ({
  ...(lastErrorCode !== null && { errorCode: lastErrorCode }),
  ...businessObjectOf(job),
})

const outdated = 'the document, or the content of its path, was changed while it was sent'

/** Returns the outcome of an attempt whose record says that a retry follows. @param delayMs time until then */
export const backOff = (job: Recorded, delayMs: number): AttemptOutcome => ({
  status: 'retrying',
  delayMs,
  failures: job.failures,
  // An attempt that delivered an outdated content has no error.
  error: job.lastError ?? outdated,
  ...factsOf(job),
})

/** Returns the outcome of a delivery whose record says that it has failed. */
export const failureOf = async (db: Database, input: AttemptInput, job: Recorded): Promise<AttemptOutcome> => {
  const { lastError, lastErrorCode, destination } = job
  const error = lastError ?? 'not delivered'
  const reason = reasonOf(job, input)
  return {
    status: 'failed',
    ...(!(await keepsWorkflow(db, destination.id)) && { keepsOpen: false as const }),
    error: reason === undefined ? error : `${error} (${reason})`,
    remedy: remedyFor(lastErrorCode, destination.name, 'ended'),
    ...factsOf(job),
  }
}

/** The setting that ends a round of attempts. */
export const limits = { count: 'max_retries', time: 'retry_ttl_seconds' } as const

/** Returns which limit is the reason that no retry follows, for operators. */
const reasonOf = ({ endedBy, failures }: Recorded, { policy }: AttemptInput): string | undefined => {
  if (endedBy !== 'max_retries' && endedBy !== 'retry_ttl_seconds') return undefined
  const limit = endedBy === 'max_retries' ? policy.maxRetries : policy.ttlMs / 1_000
  return `gave up after ${countOf(failures, 'attempt', 'attempts')}: ${endedBy} is ${limit}`
}
