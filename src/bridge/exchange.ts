import type { Context } from 'koa'
import { noAnswer, type ResponseFacts } from '../capture/capture.ts'
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
    if (!context.writable) return noAnswer(body)
    // the very bytes that go out: Koa would put the answer into JSON once more
    const bytes = Buffer.from(JSON.stringify(context.body))
    context.body = bytes
    body.add(bytes)
    body.end()
    return { status: context.status, headers: context.response.headers, body, at: new Date() }
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
