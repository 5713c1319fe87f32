import { useState } from 'preact/hooks'
import { call, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
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

/** Says how a test ended, in the words of the target if it failed. */
export const TestOutcome = ({ state: { error, result }, words }: { state: TestState; words: Words }) => {
  if (error) return html`<${ErrorNotice} error=${error} />`
  if (!result) return null
  const isSuccess = result.status === 'success'
  return html`<${Notice} tone=${isSuccess ? 'good' : 'bad'}>
    <strong>${isSuccess ? words.testOk : words.testFailedOf}</strong> <span lang="en">${result.message}</span>
  </${Notice}>`
}
