import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { ReplayableRequest } from './captured-requests.ts'

export interface Replayed {
  newRequestId: string
  /** Status of the new response. */
  statusCode: number
  /** Discarded documents of the request that the replay has made up for. */
  acknowledged: number
}

interface ReplayDeps {
  find(workspaceId: string, id: string): Promise<ReplayableRequest>
  /** Opens a sealed query string. @throws `AppError` 409 if that is not possible */
  openQuery(requestId: string, sealed: Buffer): string
  /** Executes the request again under a new id, and waits until it has been answered and captured. @returns the status of the answer */
  execute(request: ReplayableRequest, newRequestId: string): Promise<number>
  /** Acknowledges the documents of a request that were discarded. @returns how many */
  acknowledge(workspaceId: string, requestId: string, newRequestId: string, actor: AuditActor): Promise<number>
  db: Database
}

/**
 * Sends a captured request through the receiver again and waits for the answer, so that the caller can find the new request at once.
 * @throws `AppError` 404, or 409 if the request cannot be repeated as it was
 */
export const createReplay =
  ({ db, find, openQuery, execute, acknowledge }: ReplayDeps) =>
  async (workspaceId: string, id: string, actor: AuditActor): Promise<Replayed> => {
    const request = await find(workspaceId, id)
    const obstacle = obstacleOf(request)
    if (obstacle) throw new AppError('conflict', `This request cannot be replayed: ${obstacle}.`)
    const { querySealed } = request
    const opened = querySealed ? { ...request, queryString: openQuery(id, querySealed) } : request
    const newRequestId = newId()
    // Record the replay before it is executed: a replay that is broken off may still have had an effect.
    await db.transaction((trx) =>
      record(trx, {
        workspaceId,
        event: 'request.replayed',
        subjectId: id,
        description: `Captured request ${id} was replayed as ${newRequestId}.`,
        metadata: { new_request_id: newRequestId },
        actor,
      }),
    )
    const statusCode = await execute(opened, newRequestId)
    const acknowledged = statusCode < 300 ? await acknowledge(workspaceId, id, newRequestId, actor) : 0
    return { newRequestId, statusCode, acknowledged }
  }

export type Replay = ReturnType<typeof createReplay>

const obstacleOf = (request: ReplayableRequest): string | undefined => {
  if (request.channel === 'bridge') return 'a call through the bridge is not idempotent'
  // What is not shown of a document can be in its content.
  if (request.requestBodyTruncationReason !== null && !request.body)
    return `its body was not stored (${request.requestBodyTruncationReason})`
  if (request.requestContentLength > 0 && !request.body) return 'its body is no longer stored'
  if (request.body?.redacted) return 'parts of its body were redacted'
  return undefined
}
