import { messageOf } from '../../src/base/errors.ts'
import { administration } from './conformance/administration.ts'
import { documents } from './conformance/documents.ts'
import { extremes } from './conformance/extremes.ts'
import { searchesAndDeletes } from './conformance/searches.ts'
import { security } from './conformance/security.ts'
import { startStory, type Signing } from './conformance/story.ts'

// The conformance script of the protocol. Each step depends on the steps before it, so a run is one test.
const steps = [...administration, ...documents, ...searchesAndDeletes, ...security, ...extremes]

test.each<[string, Signing | undefined]>([
  ['unsigned', undefined],
  ['signed with DSA and SHA-1', { kind: 'DSA 1024', digest: 'sha1' }],
  ['signed with RSA and SHA-256', { kind: 'RSA 2048', digest: 'sha256' }],
])('the conformance script, %s', async (_, signing) => {
  const story = await startStory(signing)
  try {
    for (const [name, run] of steps) {
      const before = expect.getState().assertionCalls
      await run(story).catch((thrown: unknown) => {
        throw new Error(`step ${name}: ${messageOf(thrown)}`, { cause: thrown })
      })
      expect({ step: name, asserts: expect.getState().assertionCalls > before }).toEqual({ step: name, asserts: true })
    }
  } finally {
    await story.stop()
  }
})

test('the conformance script has each of its 34 steps once and in order', () => {
  expect(steps.map(([name]) => Number.parseInt(name))).toEqual(Array.from({ length: 34 }, (_, index) => index + 1))
})
