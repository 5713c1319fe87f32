import { useState } from 'preact/hooks'
import { call, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import { announce, ErrorNotice, Notice } from './parts.ts'

interface Words {
  testOk: string
  testFailed: string
  /** Precedes the message of the target. */
  testFailedOf: string
}

interface TestState {
  isBusy: boolean
  error?: ApiError
  result?: Schemas['TestResult']
}

/** Tests a stored target by a request to the API. @param onTested called when the relay has answered */
export const useTargetTest = (path: string, { testOk, testFailed }: Omit<Words, 'testFailedOf'>, onTested: () => void = () => {}) => {
  const [state, setState] = useState<TestState>({ isBusy: false })
  const test = async () => {
    setState({ isBusy: true })
    try {
      const { data } = await call<Schemas['TestResultResponse']>('POST', path, { changesNothing: true })
      setState({ isBusy: false, result: data })
      announce(data.status === 'success' ? testOk : testFailed)
      onTested()
    } catch (thrown) {
      setState({ isBusy: false, error: toApiError(thrown) })
    }
  }
  return { state, test }
}

/** Says how a test ended, in the words of the target if it failed, and what to do then. @param name of the destination */
export const TestResult = ({ result, words, name }: { result: Schemas['TestResult']; words: Words; name: string }) => {
  const { whatToDo, remedy } = inLanguage(remediesCatalogue)
  const isSuccess = result.status === 'success'
  return html`<${Notice} tone=${isSuccess ? 'good' : 'bad'}>
    <strong>${isSuccess ? words.testOk : words.testFailedOf}</strong> <span lang="en">${result.message}</span>
    ${result.error_code !== undefined && html`<p><strong>${whatToDo}:</strong> ${remedy(result.error_code, name, 'test')}</p>`}
  </${Notice}>`
}

/** Says how a test of a stored target ended. */
export const TestOutcome = ({ state: { error, result }, words, name }: { state: TestState; words: Words; name: string }) => {
  if (error) return html`<${ErrorNotice} error=${error} />`
  return result ? html`<${TestResult} result=${result} words=${words} name=${name} />` : null
}
