import type { Context } from 'koa'
import { z } from 'zod'
import { timeOfId } from '../base/ids.ts'
import { noResponse, type ResponseFacts } from '../capture/capture.ts'
import type { CaptureQueue } from '../capture/queue.ts'

const loopDetected = 508

interface CallPath {
  userSlug: string
  workspaceSlug: string
}

const answeredError = z.object({ error: z.object({ code: z.string() }) })
/** Returns the code of an error. A result is serialized already. */
const errorCodeOf = (body: unknown): string | null => answeredError.safeParse(body).data?.error.code ?? null

const announcesBody = ({ request }: Context) => (request.length ?? 0) > 0 || request.headers['transfer-encoding'] !== undefined

/** Creates the exchange of one request: its body and answer, which are captured at the end. */
export const createExchange = (
  context: Context,
  { userSlug, workspaceSlug }: CallPath,
  captures: Pick<CaptureQueue, 'streamingBody' | 'add'>,
) => {
  const requestBody = captures.streamingBody(context.ip)
  let isReceived = false

  const responseFacts = (): ResponseFacts => {
    const body = captures.streamingBody(context.ip)
    if (!context.writable) return noResponse(body)
    const errorCode = errorCodeOf(context.body)
    // Serialize an error here. Koa would do it again, and the captured bytes might differ from those sent.
    const bytes = Buffer.isBuffer(context.body) ? context.body : Buffer.from(JSON.stringify(context.body))
    context.body = bytes
    body.add(bytes)
    body.end()
    const { status } = context
    // Loops are refused.
    return {
      status,
      errorCode,
      headers: context.response.headers,
      body,
      isFailure: status >= 500 && status !== loopDetected,
      at: new Date(),
    }
  }

  return {
    /** Records the complete request body. */
    received: (bytes: Buffer): void => {
      isReceived = true
      requestBody.add(bytes)
      requestBody.end()
    },

    /**
     * Queues the request for capture, with the answer now in the context or, if the client has disconnected, without
     * one. Does not wait.
     */
    end: (): void => {
      const id = context.response.get('x-relay-request-id')
      const response = responseFacts()
      if (!announcesBody(context)) requestBody.end()
      else if (!isReceived && context.writable) requestBody.discard('refused')
      captures.add(
        {
          id,
          channel: 'bridge',
          userSlug,
          workspaceSlug,
          method: context.method,
          uri: context.path,
          queryString: context.querystring,
          // A call through the bridge is never replayed.
          querySealed: null,
          repoId: null,
          docId: null,
          headers: context.headers,
          body: requestBody,
          sourceIp: context.ip,
          requestAt: timeOfId(id),
          replayOf: null,
        },
        response,
      )
    },
  }
}
