import type { RepeatableRequest } from '../db/captured-requests.ts'
import { AppError } from '../errors.ts'

export interface ReplayDeps {
  find(workspaceId: string, id: string): Promise<RepeatableRequest | undefined>
  /** Processes the request once more; returns the new one's id, once it has been answered and captured. */
  process(request: RepeatableRequest): Promise<string>
}

/**
 * Sends a captured request through the receiver again, and waits for that: its body is small, and a caller who is told of a new
 * request shall find it.
 * @returns the new request's id, or undefined where there is no such request
 * @throws AppError 409 where it cannot be repeated as it was
 */
export const createReplay =
  ({ find, process }: ReplayDeps) =>
  async (workspaceId: string, id: string): Promise<string | undefined> => {
    const request = await find(workspaceId, id)
    if (!request) return undefined
    const obstacle = obstacleOf(request)
    if (obstacle) throw new AppError('conflict', `This request cannot be replayed: ${obstacle}.`)
    return process(request)
  }

export type Replay = ReturnType<typeof createReplay>

const obstacleOf = (request: RepeatableRequest): string | undefined => {
  if (request.channel === 'bridge') return 'a call through the bridge is not idempotent'
  if (request.requestBodyTruncated) return 'its body was too large to be kept, or did not come whole'
  if (request.requestContentLength > 0 && !request.body) return 'its body is no longer kept'
  if (request.bodyRedacted) return 'parts of its body were redacted'
  return undefined
}
