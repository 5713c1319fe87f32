import { administration } from './conformance/administration.ts'
import { documents } from './conformance/documents.ts'
import { extremes } from './conformance/extremes.ts'
import { searchesAndEnds } from './conformance/searches.ts'
import { security } from './conformance/security.ts'
import { startStory, type Signing, type Story } from './conformance/story.ts'

// The conformance script of the interface, step by step and in its order: what one step leaves, the next one finds.
const steps = [...administration, ...documents, ...searchesAndEnds, ...security, ...extremes]

describe.each<[string, Signing | undefined]>([
  ['unsigned', undefined],
  ['signed by DSA and SHA-1', { kind: 'DSA 1024', digest: 'sha1' }],
  ['signed by RSA and SHA-256', { kind: 'RSA 2048', digest: 'sha256' }],
])('the conformance script, %s', (_, signing) => {
  let story: Story

  beforeAll(async () => {
    story = await startStory(signing)
  })
  afterAll(() => story.stop())

  it.each(steps)('%s', async (__, run) => {
    expect.hasAssertions()
    await run(story)
  })
})

it('the conformance script has all of its steps, each once and in order', () => {
  expect(steps.map(([name]) => Number.parseInt(name))).toEqual(Array.from({ length: 34 }, (_, index) => index + 1))
})
