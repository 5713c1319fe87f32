import { AppError } from '../base/errors.ts'

// A source system that is answered 503 asks again by itself.
const retryAfterSeconds = 5

/** What has failed, in a sentence for the source system, which learns nothing of targets. */
const sentences = {
  altered: 'the document is not stored any more as it was received',
  away: 'the destination that stores the document could not be read, try again later',
  busy: 'too many documents are being read, try again later',
  gone: 'the document does not have this content any more',
} as const

type What = keyof typeof sentences

/** A content could not be read at its home. The message is for an administrator: it names the destination and the cause. */
export class HomeFailure extends AppError {
  readonly what: What

  constructor(what: What, message: string, options: { cause?: unknown } = {}) {
    super('unavailable', `home: ${message}`, { retryAfterSeconds, cause: options.cause })
    this.name = 'HomeFailure'
    this.what = what
  }

  /** The sentence for the source system. */
  get sentence(): string {
    return sentences[this.what]
  }
}
