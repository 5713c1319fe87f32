import { readdir, readFile } from 'node:fs/promises'
import { Worker } from '@temporalio/worker'
import { DeterminismViolationError } from '@temporalio/workflow'
import { silenceSdkLog } from '../support/temporal.ts'
import { standaloneStories, stories } from './stories.ts'

// The histories are of real runs. If one no longer replays, a change would break running deliveries: guard the change with `patched()`.

interface Recorded {
  workflowId: string
  history: object
}

const read = async (name: string) => JSON.parse(await readFile(new URL(`${name}.json`, import.meta.url), 'utf8')) as Recorded[]
const replay = async ({ workflowId, history }: Recorded) =>
  Worker.runReplayHistory({ workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! } }, history, workflowId)

const names = [...stories, ...standaloneStories].map(({ name }) => name)

beforeAll(silenceSdkLog)

test.each(names)('the recorded histories of %s replay', async (name) => {
  const recorded = await read(name)
  expect(recorded.length).toBeGreaterThan(standaloneStories.some((story) => story.name === name) ? 0 : 1)
  for (const history of recorded) await expect(replay(history)).resolves.toBeUndefined()
})

test('every recording belongs to a story, and every story has a recording', async () => {
  const files = (await readdir(new URL('.', import.meta.url))).filter((file) => file.endsWith('.json'))
  expect(files.toSorted()).toEqual(names.map((name) => `${name}.json`).toSorted())
})

test('a history that the workflows cannot produce is refused', async () => {
  const [, delivery] = await read('retries-then-delivered')
  const altered = JSON.parse(JSON.stringify(delivery).replaceAll('"attemptDelivery"', '"recordCancellation"')) as Recorded
  await expect(replay(altered)).rejects.toThrow(DeterminismViolationError)
})

test('no recording contains names of the machine on which it was recorded', async () => {
  for (const name of names) {
    const text = await readFile(new URL(`${name}.json`, import.meta.url), 'utf8')
    const found = /"identity": "\d+@[^"]*"|stackTrace|\/(home|work|Users|tmp)\//.exec(text)
    expect([name, found?.[0]]).toEqual([name, undefined])
  }
})
