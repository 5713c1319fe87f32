import { DeliveryError, type DeliveryResult } from '../connector.ts'

/** What lies at the place of a document. */
export type Found<Stored> =
  /** This document with this content: an earlier attempt has stored it, and its answer was lost. */
  | { state: 'ours'; stored: Stored }
  /** Another document, or an earlier content of this one. @param what says it more exactly */
  | { state: 'other'; what?: string }
  | { state: 'absent' }
  /** The account may not look, or the target cannot tell contents apart. @param needs the permission that it lacks */
  | { state: 'unknown'; needs: string }

/**
 * What a refusal says. `exists`: something is stored under the name and may not be replaced. `perhaps`: that can be the reason, or another
 * one. Undefined: it has another reason.
 */
export type Refusal = 'exists' | 'perhaps' | undefined

/** What the answer of a delivery says whose document was found in its place. */
export const foundInPlace = 'stored by an earlier attempt, and found in its place'

/**
 * Stores a document at a target that may forbid to replace what is there. A refusal that can mean that an earlier attempt has arrived, whose
 * answer was lost, is followed by a look: if this document is there with this content, it is delivered. There is no further request otherwise.
 * @param rule.attempt counts the attempts of the delivery
 * @throws DeliveryError `overwrite_forbidden` if something else is there that may not be replaced, or the account may not see what it is;
 *   otherwise what `store` has thrown
 */
export const storeOrFind = async <Stored = DeliveryResult>(
  store: () => Promise<Stored>,
  {
    attempt,
    refusalOf,
    look,
    toError,
  }: {
    attempt: number
    refusalOf(thrown: unknown): Refusal
    look(): Promise<Found<Stored>>
    toError(thrown: unknown): DeliveryError
  },
): Promise<Stored> => {
  try {
    return await store()
  } catch (thrown) {
    const refusal = refusalOf(thrown)
    if (refusal === undefined) throw thrown
    const found = await look()
    if (found.state === 'ours') return found.stored
    if (found.state === 'absent') throw thrown
    const error = toError(thrown)
    const { answer } = error
    const details = { answer, cause: thrown }
    if (found.state === 'other') {
      const { what = 'another document, or an earlier content of this one' } = found
      if (refusal === 'perhaps') throw error.reworded(thrown, (message) => `${message}; ${what}, is stored under its name`)
      throw new DeliveryError(
        'overwrite_forbidden',
        `the target does not permit to replace what is stored under the name of the document: ${what}`,
        details,
      )
    }
    const unseen = `the relay cannot tell, because ${found.needs}`
    if (refusal === 'exists') {
      const text = `the target does not permit to replace what is stored under the name of the document. An earlier attempt may have stored it; ${unseen}`
      throw new DeliveryError('overwrite_forbidden', text, details)
    }
    // The first attempt cannot repeat another one.
    if (attempt === 1) throw error
    throw error.reworded(thrown, (message) => `${message}. An earlier attempt may have stored the document; ${unseen}`)
  }
}
