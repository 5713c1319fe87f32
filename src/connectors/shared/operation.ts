import { cutText } from '../../base/text.ts'
import type { DeliveryError } from '../connector.ts'

// By the error of the request: an SDK throws it through layers that know nothing of the operation.
const operations = new WeakMap<object, string>()

/** Notes which operation has failed with an error. The first note counts. @param operation with its place: `PutObject of s3://invoices/4711.pdf` */
export const noteOperation = (thrown: unknown, operation: string): void => {
  if (typeof thrown === 'object' && thrown !== null && !operations.has(thrown)) operations.set(thrown, operation)
}

export const operationOf = (thrown: unknown): string | undefined =>
  typeof thrown === 'object' && thrown !== null ? operations.get(thrown) : undefined

// What the target has said must stay visible behind it.
const operationMaxCharacters = 300
const shownBeginning = 40

/** Puts the operation in front of the message of an error. Of a long path, the end is shown. */
export const withOperation = (error: DeliveryError, operation: string | undefined): DeliveryError => {
  if (operation === undefined) return error
  const shown =
    operation.length <= operationMaxCharacters
      ? operation
      : `${cutText(operation, shownBeginning)}…${operation.slice(operation.length - operationMaxCharacters)}`
  return error.reworded(error.cause, (message) => `${shown}: ${message}`)
}
