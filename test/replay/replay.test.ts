import { readdir, readFile } from 'node:fs/promises'
import { DeterminismViolationError } from '@temporalio/workflow'
import { Worker } from '@temporalio/worker'
import { quietly } from '../support/temporal.ts'
import { solos, stories } from './stories.ts'

// Histories of real runs. One that does not replay is a delivery under way that the change would break: guard it by `patched`.

interface Recorded {
  workflowId: string
  history: object
}

const read = async (name: string) => JSON.parse(await readFile(new URL(`${name}.json`, import.meta.url), 'utf8')) as Recorded[]
const replay = async ({ workflowId, history }: Recorded) =>
  Worker.runReplayHistory({ workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! } }, history, workflowId)

const names = [...stories, ...solos].map(({ name }) => name)

beforeAll(quietly)

test.each(names)('%s replays', async (name) => {
  const recorded = await read(name)
  expect(recorded.length).toBeGreaterThan(solos.some((solo) => solo.name === name) ? 0 : 1)
  for (const one of recorded) await expect(replay(one)).resolves.toBeUndefined()
})

test('every recorded story is one that is still told', async () => {
  const files = (await readdir(new URL('.', import.meta.url))).filter((file) => file.endsWith('.json'))
  expect(files.toSorted()).toEqual(names.map((name) => `${name}.json`).toSorted())
})

test('a history that the workflows would not have made is refused', async () => {
  const [, delivery] = await read('retries-then-delivered')
  const altered = JSON.parse(JSON.stringify(delivery).replaceAll('"attemptDelivery"', '"recordCancellation"')) as Recorded
  await expect(replay(altered)).rejects.toThrow(DeterminismViolationError)
})

test('no history names the machine it was recorded on', async () => {
  for (const name of names) {
    const text = await readFile(new URL(`${name}.json`, import.meta.url), 'utf8')
    const found = /"identity": "\d+@[^"]*"|stackTrace|\/(home|work|Users|tmp)\//.exec(text)
    expect([name, found?.[0]]).toEqual([name, undefined])
  }
})
