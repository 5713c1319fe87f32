import { administration } from './conformance/administration.ts'
import { documents } from './conformance/documents.ts'
import { extremes } from './conformance/extremes.ts'
import { searchesAndDeletes } from './conformance/searches.ts'
import { security } from './conformance/security.ts'
import { startStory, type Signing, type Story } from './conformance/story.ts'

// The conformance script of the protocol. Each step depends on the steps before it.
const steps = [...administration, ...documents, ...searchesAndDeletes, ...security, ...extremes]

describe.each<[string, Signing | undefined]>([
  ['unsigned', undefined],
  ['signed with DSA and SHA-1', { kind: 'DSA 1024', digest: 'sha1' }],
  ['signed with RSA and SHA-256', { kind: 'RSA 2048', digest: 'sha256' }],
])('the conformance script, %s', (_, signing) => {
  let story: Story

  beforeAll(async () => {
    story = await startStory(signing)
  })
  afterAll(() => story.stop())

  test.each(steps)('%s', async (__, run) => {
    expect.hasAssertions()
    await run(story)
  })
})

test('the conformance script has each of its 34 steps once and in order', () => {
  expect(steps.map(([name]) => Number.parseInt(name))).toEqual(Array.from({ length: 34 }, (_, index) => index + 1))
})
