import { startIndependentServer } from './old-servers.ts'
import { switchThereAndBack } from './story.ts'

test('a source system with 1,000 documents is switched from an independent server to the relay and back, and nothing is lost', async () => {
  expect.hasAssertions()
  await switchThereAndBack(startIndependentServer, 1_000)
}, 600_000)
