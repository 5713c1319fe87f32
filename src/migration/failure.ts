import { plainText } from '../base/text.ts'
import { ContentServerFailure } from '../content-server/failure.ts'

/**
 * What a failure tells about. `document`: its bytes or its description are wrong, and asking again does not help. `server`: perhaps the
 * server is away. `relay`: the relay could not do its part; `cause` is the error, if there is one.
 */
export type FailureSubject = 'document' | 'server' | 'relay'

/** The upstream of a repository did not answer, or not as a content server does. The message is for the administrator of the source system. */
export class UpstreamFailure extends Error {
  readonly about: FailureSubject

  constructor(message: string, options: { cause?: unknown; about?: FailureSubject } = {}) {
    super(plainText(message), { cause: options.cause })
    this.name = 'UpstreamFailure'
    this.about = options.about ?? 'server'
  }
}

export const toUpstreamFailure = (thrown: unknown): unknown => {
  if (!(thrown instanceof ContentServerFailure)) return thrown
  const about = thrown.code === 'malformed_answer' || thrown.code === 'too_large' ? 'document' : 'server'
  return new UpstreamFailure(`upstream: ${thrown.message}`, { cause: thrown, about })
}
