import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Check } from '../check.ts'
import { expectContent, expectEqual, expectStatus } from '../expect.ts'
import { Deviation } from '../outcome.ts'
import { put } from '../source.ts'

const mebibytes = 64

/** Returns a different piece for each MiB, so that a missing or misplaced one changes the hash. */
const piece = (number: number) => Buffer.alloc(1024 * 1024, `${number} of ${mebibytes}, `)

const hashOf = (chunks: Iterable<Buffer>): string => {
  const hash = createHash('sha256')
  for (const each of chunks) hash.update(each)
  return hash.digest('hex')
}

function* pieces() {
  for (let number = 0; number < mebibytes; number += 1) yield piece(number)
}

const concurrentRequests = 8

/** Checks of size and concurrency. */
export const loadChecks: readonly Check[] = [
  {
    id: 'large-component',
    title: `a component of ${mebibytes} MiB is stored and read as a stream`,
    profile: 'full',
    facts: ['large-components', 'bytes-kept'],
    remedy: 'Look for limits of size and of time in the server and in the proxies in front of it.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      const size = String(mebibytes * 1024 * 1024)
      const headers = { 'content-type': 'application/octet-stream', 'content-length': size }
      const created = await ask('create', { docId, compId: 'data', method: 'PUT', headers, body: Readable.from(pieces()) })
      expectStatus(created, 201)
      const answer = await ask('get', { docId })
      expectEqual('Content-Length of get', answer.headers['content-length'], size)
      expectEqual('the SHA-256 of the component', hashOf([answer.body]), hashOf(pieces()))
    },
  },
  {
    id: 'concurrent-creates',
    title: 'of several concurrent creates of one document, one succeeds',
    profile: 'full',
    facts: ['concurrency', 'create-exists'],
    remedy: 'Let a unique index, or a lock, decide which create of a docId wins. Answer 403 to the others.',
    run: async ({ ask, newDocId }) => {
      const docId = newDocId()
      const bodies = Array.from({ length: concurrentRequests }, (_, index) => `body ${index}`)
      const answers = await Promise.all(bodies.map((body) => ask('create', { docId, compId: 'data', ...put(body) })))
      const winners = bodies.filter((_, index) => answers[index]!.status === 201)
      if (winners.length !== 1) throw new Deviation(`${winners.length} of ${concurrentRequests} creates of one document succeeded`)
      for (const answer of answers) expectStatus(answer, 201, 403, 409)
      expectContent('the component of the create that succeeded', await ask('get', { docId }), winners[0]!)
    },
  },
]
