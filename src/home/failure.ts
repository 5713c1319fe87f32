import { AppError } from '../base/errors.ts'

// A source system that is answered 503 asks again by itself.
const retryAfterSeconds = 5

/** A content could not be read at its home. The message is for an administrator: it names the destination and the cause. */
export class HomeFailure extends AppError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('unavailable', `home: ${message}`, { retryAfterSeconds, cause: options.cause })
    this.name = 'HomeFailure'
  }
}
