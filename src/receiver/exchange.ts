import { pipeline, Readable, Transform } from 'node:stream'
import type { PassingBody } from '../capture/body.ts'
import { captureOf, noAnswer, type RequestFacts, type ResponseFacts } from '../capture/capture.ts'
import type { CaptureQueue } from '../capture/queue.ts'
import type { Capture } from '../db/captures.ts'
import { headersOf, type Answer } from './answer.ts'
import { parseQuery, splitTarget, type Query } from './command.ts'
import type { Incoming } from './incoming.ts'

/** A request on its way through the receiver, with what will be captured of it and of its answer. */
export interface Exchange {
  incoming: Incoming
  userSlug: string
  workspaceSlug: string
  query: Query
  /**
   * What a transaction writes of an accepted document's request. It counts as written if this very answer is given in the end, and
   * is replaced if it is another one.
   */
  captured(answer: Answer): Capture
  /** The answer to send, whose body is captured as it goes by. */
  passing(answer: Answer): Answer
  /** Captures what no transaction has. Without an answer, the client had hung up before there was one. */
  end<Written>(write: (request: RequestFacts, response: ResponseFacts) => Written, how: 'whole' | 'broken off'): Written | undefined
}

interface Given {
  answer: Answer
  body: PassingBody
  /** A transaction has written all of it, provided that it was committed. */
  isCommitted: boolean
}

// clients append segments of their own: a file name, say
const ownPath = /^\/receiver\/([^/]+)\/([^/]+)(?:\/.*)?$/

/** Whether a request target lies below /receiver/{userSlug}/{workspaceSlug}. */
export const isOwn = (target: string): boolean => ownPath.test(splitTarget(target).path)

export const createExchange = (
  incoming: Incoming,
  captures: Pick<CaptureQueue, 'passingBody' | 'bodyMaxBytes' | 'commitBodyMaxBytes'>,
): Exchange => {
  const { path, query: queryString } = splitTarget(incoming.target)
  const [, userSlug = '', workspaceSlug = ''] = ownPath.exec(path) ?? []
  const query = parseQuery(queryString)
  const valueOf = (name: string) => query.parameters.find((parameter) => parameter.name.toLowerCase() === name)?.value ?? null
  const request: RequestFacts = {
    id: incoming.id,
    channel: 'receiver',
    userSlug,
    workspaceSlug,
    method: incoming.method,
    uri: path,
    queryString,
    repoId: valueOf('contrep'),
    docId: valueOf('docid'),
    headers: incoming.headers,
    body: incoming.passing,
    sourceIp: incoming.sourceIp,
    requestAt: incoming.receivedAt,
    replayOf: incoming.replayOf,
  }
  let given: Given | undefined

  const give = (answer: Answer): Given => {
    given?.body.release()
    given = { answer, body: captures.passingBody(), isCommitted: false }
    const { body } = given
    if (answer.body instanceof Readable) return given
    if (incoming.method !== 'HEAD') body.add(Buffer.from(answer.body))
    body.end()
    return given
  }

  const responseOf = ({ answer, body }: Pick<Given, 'answer' | 'body'>): ResponseFacts => ({
    status: answer.status,
    headers: headersOf(answer, incoming.id),
    body,
    at: new Date(),
  })

  return {
    incoming,
    userSlug,
    workspaceSlug,
    query,
    captured: (answer) => {
      const whole = give(answer)
      const { passing } = incoming
      // stored twice, a large body would take as long again as its document: it follows after the answer, and is not looked at before
      whole.isCommitted = passing.heldBytes() <= captures.commitBodyMaxBytes
      const body = whole.isCommitted ? passing : { ...passing, whole: () => Buffer.alloc(0) }
      return captureOf({ ...request, body }, responseOf(whole))
    },

    passing: (answer) => {
      const { body } = given?.answer === answer ? given : give(answer)
      if (!(answer.body instanceof Readable)) return answer
      if (Number(answer.headers['Content-Length']) <= captures.bodyMaxBytes) return { ...answer, body: letPass(answer.body, body) }
      body.release()
      return answer
    },

    end: (write, how) => {
      if (!given) return write(request, noAnswer(captures.passingBody()))
      const { isCommitted, body } = given
      if (how === 'broken off') body.release()
      if (!isCommitted) return write(request, responseOf(given))
      incoming.passing.release()
      body.release()
      return undefined
    },
  }
}

const letPass = (source: Readable, body: PassingBody): Readable => {
  const passing = new Transform({
    transform: (piece: Buffer, _, done) => {
      body.add(piece)
      done(null, piece)
    },
    flush: (done) => {
      body.end()
      done()
    },
  })
  // an error of either ends the other: who sends the answer is told by its stream
  return pipeline(source, passing, () => {})
}
