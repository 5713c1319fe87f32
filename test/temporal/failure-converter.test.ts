import { ApplicationFailure, CancelledFailure, defaultPayloadConverter, type ProtoFailure } from '@temporalio/common'
import { failureConverter } from '../../workflows/failure-converter.ts'
import { hostileTexts, wrongIn } from '../support/hostile-text.ts'

const namedError = (text: string) => Object.assign(new Error(text), { name: text, stack: `Error: ${text}\n    at somewhere` })

const thrownWith: [name: string, of: (text: string) => unknown][] = [
  ['an error', (text) => new Error(text)],
  ['an error with a name and a stack of its own', namedError],
  ['the cause of an error', (text) => new Error('x', { cause: new Error('y', { cause: namedError(text) }) })],
  ['a failure of the relay', (text) => ApplicationFailure.create({ message: text, type: text, details: [{ error: text }] })],
  ['a cancellation', (text) => new CancelledFailure(text)],
  ['a text', (text) => text],
  ['an object', (text) => ({ name: text, message: text })],
]

test.each(thrownWith)('the text of %s is well-formed, on one line and bounded in what Temporal gets', (_, of) => {
  for (const text of Object.values(hostileTexts)) {
    const written = failureConverter.errorToFailure(of(text), defaultPayloadConverter)
    for (let failure: ProtoFailure | null | undefined = written; failure; failure = failure.cause) {
      expect(wrongIn(failure.message ?? '')).toEqual([])
      expect(failure.message!.length).toBeLessThanOrEqual(10_000)
      expect(wrongIn(failure.stackTrace ?? '', { lines: true })).toEqual([])
      expect(wrongIn(failure.applicationFailureInfo?.type ?? '')).toEqual([])
    }
  }
})
