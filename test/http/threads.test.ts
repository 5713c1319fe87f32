import { createThreads } from '../../src/http/threads.ts'
import { searchWindow, searchWindowTask } from '../../src/receiver/search/search.ts'
import { disposable } from '../support/disposable.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const threads = share(disposable(createThreads(testConfig({ RELAY_THREADS: '2' })), (each) => each.close()))

const window = (sizeBytes: number, pattern: Uint8Array) => ({
  bytes: new Uint8Array(new SharedArrayBuffer(sizeBytes)),
  pattern,
  isBackward: false,
  isCaseSensitive: true,
  maxResults: 1,
})
const short = window(1, Buffer.from([0]))
/** Takes a thread more than a minute, so the tests end it. Its bytes are only read and need no memory. */
const long = window(64 * 1024 * 1024, Buffer.alloc(1_024).fill(1, 512, 513))

describe('threads', () => {
  test('return the result of a task', async () => {
    const input = { ...window(3, Buffer.from([0, 0])), maxResults: 9 }
    expect(await threads.run(searchWindowTask, 'A', input)).toEqual(searchWindow(input))
    expect(searchWindow(input)).toEqual([0, 1])
  })

  test('run the tasks of a workspace one after another, and those of another workspace meanwhile', async () => {
    const abort = new AbortController()
    const ended: string[] = []
    const first = threads.run(searchWindowTask, 'A', long, abort.signal).catch(() => ended.push('first of A'))
    const second = threads.run(searchWindowTask, 'A', short).then(() => ended.push('second of A'))
    await threads.run(searchWindowTask, 'B', short)
    expect(ended).toEqual([])
    abort.abort()
    await Promise.all([first, second])
    expect(ended).toEqual(['first of A', 'second of A'])
  })

  test('end a task that is aborted, and run the next one', async () => {
    await expect(threads.run(searchWindowTask, 'A', long, AbortSignal.timeout(10))).rejects.toThrow('aborted')
    expect(await threads.run(searchWindowTask, 'A', short)).toEqual([0])
  })
})
