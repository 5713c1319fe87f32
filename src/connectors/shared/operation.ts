import { types } from 'node:util'
import { cutText } from '../../base/text.ts'
import type { DeliveryError } from '../connector.ts'
import { errorClassOf } from '../error-codes.ts'

// By the error of the request: an SDK throws it through layers that know nothing of the operation.
const operations = new WeakMap<object, string>()

/** Notes which operation has failed with an error. The first note counts. @param operation with its place: `PutObject of s3://invoices/4711.pdf` */
export const noteOperation = (thrown: unknown, operation: string): void => {
  if (types.isNativeError(thrown) && operationOf(thrown) === undefined) operations.set(thrown, operation)
}

const maxCauses = 5

/** Returns an error and what it was made of. */
export const causesOf = (thrown: unknown): Error[] => {
  const causes: Error[] = []
  // isNativeError instead of instanceof: under a test runner that sandboxes modules, Node's own errors come from
  // another realm.
  for (let cause = thrown; types.isNativeError(cause) && causes.length < maxCauses; cause = cause.cause) causes.push(cause)
  return causes
}

/** Returns the operation that was noted with an error, or with the error that it was made of. */
export const operationOf = (thrown: unknown): string | undefined => {
  const noted = causesOf(thrown).find((cause) => operations.has(cause))
  return noted && operations.get(noted)
}

/** Runs an operation at the target, and notes it with the error if it fails. */
export const during = async <Result>(operation: string, act: () => Promise<Result>): Promise<Result> => {
  try {
    return await act()
  } catch (thrown) {
    noteOperation(thrown, operation)
    throw thrown
  }
}

// What the target has said must stay visible behind it.
const operationMaxCharacters = 300
const shownBeginning = 40

/**
 * Puts the operation that has failed in front of the message of an error. Of a long path, the end is shown.
 * @param thrown is what the error was made of. A failure of the relay itself has nothing to do with what it wanted to do at the target
 */
export const withOperation = (error: DeliveryError, thrown: unknown): DeliveryError => {
  const operation = operationOf(thrown)
  if (operation === undefined || errorClassOf(error.code) === 'relay') return error
  const shown =
    operation.length <= operationMaxCharacters
      ? operation
      : `${cutText(operation, shownBeginning)}…${operation.slice(operation.length - operationMaxCharacters)}`
  return error.reworded(error.cause, (message) => `${shown}: ${message}`)
}
