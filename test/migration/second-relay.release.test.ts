import { startSecondRelay } from './old-servers.ts'
import { switchThereAndBack } from './story.ts'

// The same story as in thousand-documents.release.test.ts, with signatures.
test('a source system is switched from another relay to the relay and back, and nothing is lost', async () => {
  expect.hasAssertions()
  await switchThereAndBack(startSecondRelay, 200)
}, 600_000)
