import { startIndependentServer } from './old-servers.ts'
import { switchThereAndBack } from './story.ts'

test('a source system is switched from an independent server to the relay and back, and nothing is lost', async () => {
  expect.hasAssertions()
  await switchThereAndBack(startIndependentServer, 120)
}, 600_000)
