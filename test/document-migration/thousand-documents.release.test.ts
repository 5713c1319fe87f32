import { startIndependentServer } from './old-servers.ts'
import { switchThereAndBack } from './story.ts'

// The same story as in story.system.test.ts, in the size of a move.
test('a source system with 1,000 documents is switched to the relay and back, and nothing is lost', async () => {
  expect.hasAssertions()
  await switchThereAndBack(startIndependentServer, 1_000)
}, 600_000)
