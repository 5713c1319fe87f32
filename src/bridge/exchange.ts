import type { Context } from 'koa'
import { clientGoneStatus, type ResponseFacts } from '../capture/capture.ts'
import type { CaptureQueue } from '../capture/queue.ts'
import { timeOfId } from '../ids.ts'

interface CallPath {
  userSlug: string
  workspaceSlug: string
}

/** A request to the bridge, with what is captured of it as it goes by. */
export const createExchange = (
  context: Context,
  { userSlug, workspaceSlug }: CallPath,
  captures: Pick<CaptureQueue, 'passingBody' | 'add'>,
) => {
  const asked = captures.passingBody()

  const answered = (): ResponseFacts => {
    const body = captures.passingBody()
    if (context.writable) body.add(Buffer.from(JSON.stringify(context.body)))
    body.end()
    const at = new Date()
    if (!context.writable) return { status: clientGoneStatus, headers: {}, body, at }
    return { status: context.status, headers: { ...context.response.headers } as Record<string, string>, body, at }
  }

  return {
    /** The request's body, once all of it is there. */
    received: (bytes: Buffer): void => {
      asked.add(bytes)
      asked.end()
    },

    /** Captures the request with the answer that stands in the context now, if anybody is there to take it. Never waits. */
    end: (): void => {
      const id = context.response.get('x-relay-request-id')
      captures.add(
        {
          id,
          channel: 'bridge',
          userSlug,
          workspaceSlug,
          method: context.method,
          uri: context.path,
          queryString: context.querystring,
          repoId: null,
          docId: null,
          headers: context.headers,
          body: asked,
          sourceIp: context.ip,
          requestAt: timeOfId(id),
          replayOf: null,
        },
        answered(),
      )
    },
  }
}
