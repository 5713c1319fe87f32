import { unwrap } from './error.ts'
import type { RelayClient } from './index.ts'
import { pause } from './pause.ts'
import type { components } from './schema.ts'

type SingleDocument = components['schemas']['SingleDocument']

// The API waits no longer.
const requestMaxSeconds = 30

/**
 * Waits until a document is neither `pending` nor `retrying`.
 * @param options.seconds the longest time to wait; 300 by default
 * @returns the document as it is then: check its `status`
 * @throws RelayError
 */
export const waitForDocument = async (
  relay: RelayClient,
  id: string,
  { seconds = 300, signal }: { seconds?: number; signal?: AbortSignal } = {},
): Promise<SingleDocument> => {
  const deadline = performance.now() + seconds * 1_000
  for (;;) {
    const left = Math.max(0, (deadline - performance.now()) / 1_000)
    const query = { wait_seconds: Math.min(requestMaxSeconds, Math.ceil(left)) }
    const { data } = await unwrap(relay.GET('/documents/{id}', { params: { path: { id }, query }, ...(signal && { signal }) }))
    const { status } = data.attributes
    if ((status !== 'pending' && status !== 'retrying') || performance.now() >= deadline) return data
    // A process that stops answers at once.
    await pause(Math.min(1, Math.max(0, (deadline - performance.now()) / 1_000)), signal)
  }
}
