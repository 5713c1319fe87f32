import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import type { KeyRing } from '../security/seal.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { Step } from './next-step.ts'
import { createUploadSeal, type Progress } from './progress.ts'
import type { DeliveryRef } from './transition.ts'

// A request or two. The upload costs storage, and the delivery does not wait for it.
const giveUpMaxMs = 10_000

/** Returns true if no attempt continues the upload that an earlier one has saved: time or document are others. */
export const endsUpload = (next: Step): boolean =>
  next.step === 'expire' || next.step === 'recordSuperseded' || (next.step === 'send' && next.savedUpload === undefined)

/**
 * Has the target drop the upload that an earlier attempt has saved. That it cannot changes nothing of the delivery: the target has a rule that
 * removes such uploads after a time.
 * @throws as `callTarget`
 */
export const giveUpload = async (
  deps: CallTargetDeps & { keyRing: KeyRing },
  delivery: DeliveryRef,
  job: DeliveryJob,
  saved: Partial<Progress> | undefined,
  cancelled: AbortSignal,
): Promise<void> => {
  const sealed = saved?.savedUpload
  if (sealed === undefined || deps.findConnector(job.destination.connector)?.giveUp === undefined) return
  const upload = createUploadSeal(deps.keyRing, delivery).open(sealed)
  await callTarget(deps, job, { timeoutMs: giveUpMaxMs, cancelled }, async (connector, target, context) => {
    await connector.giveUp?.(upload, target, context)
  })
}
