import { ContentServerFailure } from '../content-server/failure.ts'

/** The upstream of a repository did not answer, or not as a content server does. The message is for the administrator of the source system. */
export class UpstreamFailure extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'UpstreamFailure'
  }
}

export const toUpstreamFailure = (thrown: unknown): unknown =>
  thrown instanceof ContentServerFailure ? new UpstreamFailure(`upstream: ${thrown.message}`, { cause: thrown }) : thrown
