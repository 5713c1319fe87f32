import { setTimeout as sleep } from 'node:timers/promises'
import { NotBegunError } from '../../src/http/task-limits.ts'
import { createThreads } from '../../src/http/threads.ts'
import { searchSection, searchSectionTask } from '../../src/receiver/search/search.ts'
import { blockTask, createGate } from '../support/blocking-task.ts'
import { disposable } from '../support/disposable.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const threads = share(disposable(createThreads(), (each) => each.close()))

const section = (sizeBytes: number, pattern: Uint8Array) => ({
  bytes: new Uint8Array(new SharedArrayBuffer(sizeBytes)),
  pattern,
  isBackward: false,
  isCaseSensitive: true,
  maxResults: 1,
})
const short = section(1, Buffer.from([0]))
/** Takes a thread more than a minute, so the tests end it. Its bytes are only read and need no memory. */
const long = section(64 * 1024 * 1024, Buffer.alloc(1_024).fill(1, 512, 513))

describe('threads', () => {
  test('return the result of a task', async () => {
    const input = { ...section(3, Buffer.from([0, 0])), maxResults: 9 }
    expect(await threads.run(searchSectionTask, 'A', input)).toEqual(searchSection(input))
    expect(searchSection(input)).toEqual([0, 1])
  })

  test('run the tasks of a workspace one after another, and those of another workspace meanwhile', async () => {
    const abort = new AbortController()
    const ended: string[] = []
    const first = threads.run(searchSectionTask, 'A', long, abort.signal).catch(() => ended.push('first of A'))
    const second = threads.run(searchSectionTask, 'A', short).then(() => ended.push('second of A'))
    await threads.run(searchSectionTask, 'B', short)
    expect(ended).toEqual([])
    abort.abort()
    await Promise.all([first, second])
    expect(ended).toEqual(['first of A', 'second of A'])
  })

  test('end a task that is aborted, and run the next one', async () => {
    await expect(threads.run(searchSectionTask, 'A', long, AbortSignal.timeout(10))).rejects.toThrow('aborted')
    expect(await threads.run(searchSectionTask, 'A', short)).toEqual([0])
  })

  test('end a task whose work takes too long, and run the next one', async () => {
    const limits = { workMaxMs: 50 }
    await expect(threads.run(searchSectionTask, 'A', long, undefined, limits)).rejects.toMatchObject({ limit: 'time' })
    expect(await threads.run(searchSectionTask, 'A', short)).toEqual([0])
  })

  test.each([
    ['its workspace uses another thread', ['A'], 'A'],
    ['other workspaces use all threads', ['A', 'B'], 'C'],
  ])('do not count the waiting of a task as its work, while %s', async (_, others, own) => {
    const gate = createGate()
    const before = others.map((workspace) => threads.run(blockTask, workspace, gate.input))
    await until('the others are at work', () => gate.begun() === others.length)
    const outcome = threads.run(searchSectionTask, own, short, undefined, { workMaxMs: 1 }).then(
      () => 'done',
      (thrown: unknown) => thrown,
    )
    expect(await Promise.race([outcome, sleep(200, 'waiting')])).toBe('waiting')
    gate.open()
    await Promise.all(before)
    // A millisecond of work may be too short on a machine that is busy.
    expect(['done', expect.objectContaining({ limit: 'time' })]).toContainEqual(await outcome)
  })

  test('do not begin with a task that has waited too long, and say so at once', async () => {
    const gate = createGate()
    const first = threads.run(blockTask, 'A', gate.input)
    await until('the first is at work', () => gate.begun() === 1)
    const refused = threads.run(blockTask, 'A', gate.input, undefined, { waitMaxMs: 20, workMaxMs: 60_000 })
    await expect(refused).rejects.toThrow('not begun: no thread became free within 0.02 s')
    await expect(refused).rejects.toBeInstanceOf(NotBegunError)
    gate.open()
    expect(await first).toBe(1)
    await threads.run(searchSectionTask, 'A', short)
    expect(gate.begun()).toBe(1)
  })

  test('tell whoever waits for a thread at once that it is not needed any more', async () => {
    const gate = createGate()
    const abort = new AbortController()
    const first = threads.run(blockTask, 'A', gate.input)
    await until('the first is at work', () => gate.begun() === 1)
    const second = threads.run(searchSectionTask, 'A', short, abort.signal)
    const reason = new Error('the client is gone')
    abort.abort(reason)
    await expect(second).rejects.toBe(reason)
    gate.open()
    await first
  })
})
