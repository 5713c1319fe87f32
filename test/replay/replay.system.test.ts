import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { Worker } from '@temporalio/worker'
import { DeterminismViolationError } from '@temporalio/workflow'
import { silenceSdkLog } from '../support/temporal.ts'
import { recordings } from './recordings.ts'
import { standaloneStories, stories } from './stories.ts'

// The histories are of real runs, by this code (unreleased/) and by each release. If one no longer replays, a change would break running
// deliveries: guard the change with `patched()`.

interface Recorded {
  workflowId: string
  history: object
}

const textOf = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')
const read = async (path: string) => JSON.parse(await textOf(path)) as Recorded[]
/** Replays histories one after the other, in one worker. @returns the error of each, undefined if it replays */
const replay = async (recorded: Recorded[]): Promise<(Error | undefined)[]> => {
  const workflowBundle = { codePath: process.env.TEST_WORKFLOW_BUNDLE! }
  const errors: (Error | undefined)[] = []
  for await (const { error } of Worker.runReplayHistories({ workflowBundle }, recorded)) errors.push(error)
  return errors
}

const names = [...stories, ...standaloneStories].map(({ name }) => name)
const paths = recordings()
const nameOf = (path: string) => basename(path, '.json')

beforeAll(silenceSdkLog)

test('the recorded histories replay', async () => {
  const recorded = (await Promise.all(paths.map(async (path) => (await read(path)).map((each) => ({ path, ...each }))))).flat()
  const errors = await replay(recorded)
  expect(errors).toHaveLength(recorded.length)
  expect(recorded.flatMap(({ path, workflowId }, index) => (errors[index] ? [[path, workflowId, errors[index]]] : []))).toEqual([])
})

test('a recording of documents has the history of each document and those of its deliveries', async () => {
  for (const path of paths) {
    const { length } = await read(path)
    expect([path, length > (stories.some(({ name }) => name === nameOf(path)) ? 1 : 0)]).toEqual([path, true])
  }
})

test('every story has a recording, and every recording that is not released belongs to a story', () => {
  const recorded = new Set(paths.map(nameOf))
  expect(names.filter((name) => !recorded.has(name))).toEqual([])
  const unreleased = paths.filter((path) => path.startsWith('unreleased/')).map(nameOf)
  expect(unreleased.filter((name) => !names.includes(name))).toEqual([])
})

test('a history that the workflows cannot produce is refused', async () => {
  const [, delivery] = await read(paths.findLast((path) => nameOf(path) === 'retries-then-delivered')!)
  const altered = JSON.parse(JSON.stringify(delivery).replaceAll('"attemptDelivery"', '"recordCancellation"')) as Recorded
  expect(await replay([altered])).toEqual([expect.any(DeterminismViolationError)])
})

test('a recording is one line, without names of the machine on which it was recorded', async () => {
  for (const path of paths) {
    const text = await textOf(path)
    expect([path, text === `${JSON.stringify(JSON.parse(text))}\n`]).toEqual([path, true])
    const found = /"identity":"\d+@[^"]*"|stackTrace|\/(home|work|Users|tmp)\//.exec(text)
    expect([path, found?.[0]]).toEqual([path, undefined])
  }
})
