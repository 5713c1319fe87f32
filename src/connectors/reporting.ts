import { DeliveryError, type AttemptContext } from './connector.ts'
import { withoutSecrets } from './http-answer.ts'
import { toDeliveryError } from './network-error.ts'

/**
 * Runs an attempt, and tells whatever goes wrong in words for the operator: without a secret, and no more of the answer than is kept.
 * @param secrets read when something has gone wrong: tokens and upload addresses join while the attempt goes on
 * @param toError for a target whose errors say more than those of the network
 */
export const reporting = async <Result>(
  { signal, answerMaxBytes }: Pick<AttemptContext, 'signal' | 'answerMaxBytes'>,
  secrets: string[],
  act: () => Promise<Result>,
  toError = (thrown: unknown) => toDeliveryError(thrown, 'request_failed'),
): Promise<Result> => {
  signal.throwIfAborted()
  try {
    return await act()
  } catch (thrown) {
    signal.throwIfAborted()
    const { code, message, permanent, retryAfterMs, answer } = toError(thrown)
    throw new DeliveryError(code, withoutSecrets(message, secrets), {
      permanent,
      retryAfterMs,
      answer: answer && { ...answer, ...(answer.body !== undefined && { body: keptText(answer.body, secrets, answerMaxBytes) }) },
      cause: thrown,
    })
  }
}

/** What is kept of what a target said, in this order: a secret that was cut would not be found any more. */
export const keptText = (text: string, secrets: string[], maxBytes: number): string => {
  const bytes = Buffer.from(withoutSecrets(text, secrets))
  return bytes.subarray(0, maxBytes).toString('utf8')
}
