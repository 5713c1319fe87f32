import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { createReaderProcess } from '../../src/http/reader-process.ts'
import { NotBegunError } from '../../src/http/task-limits.ts'
import { disposable } from '../support/disposable.ts'
import {
  allocateTask,
  echoTask,
  failTask,
  growHeapTask,
  growTask,
  leaveTask,
  lookAroundTask,
  spinTask,
  swallowTask,
} from '../support/reader-tasks.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

// Where the tasks of the tests are.
const readable = [join(import.meta.dirname, '..', 'support')]
const reader = share(disposable(createReaderProcess({ readable }), (each) => each.close()))

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
const pidNow = async () => (await reader.run(echoTask, 'A', null)).pid

describe('the process that reads documents', () => {
  test('returns the result of a task, and is used again', async () => {
    const first = await reader.run(echoTask, 'A', { data: new Uint8Array([1, 2, 3]) })
    expect(first.input).toEqual({ data: new Uint8Array([1, 2, 3]) })
    expect(first.pid).not.toBe(process.pid)
    expect(await pidNow()).toBe(first.pid)
  })

  test('has no environment, reads and writes no file of others, and starts no program', async () => {
    const file = join(import.meta.dirname, 'written')
    expect(await reader.run(lookAroundTask, 'A', { file })).toMatchObject({
      environment: expect.not.arrayContaining(['HOME', 'PATH', 'DATABASE_URL']),
      reading: Array.from({ length: 4 }, () => 'ERR_ACCESS_DENIED'),
      writing: 'ERR_ACCESS_DENIED',
      spawning: 'ERR_ACCESS_DENIED',
    })
  })

  test.each([
    ['outside of the heap', growTask, { bytes: 3_000_000_000 }],
    ['in the heap', growHeapTask, { items: 20_000_000 }],
    ['at once', allocateTask, { bytes: 3_000_000_000 }],
    ['and takes that for an error of the document', swallowTask, { bytes: 3_000_000_000 }],
  ])('ends if a task needs too much memory %s, and another process reads the next document', async (where, task, input) => {
    // The kernel of macOS does not enforce the limit outside of the heap.
    if (process.platform !== 'linux' && where !== 'in the heap') return
    const own = createReaderProcess({ readable, memoryMaxBytes: 200_000_000 })
    try {
      const before = await own.run(echoTask, 'A', null)
      await expect(own.run(task as typeof growTask, 'A', input as { bytes: number })).rejects.toMatchObject({
        name: 'TaskLimitError',
        limit: 'memory',
      })
      expect((await own.run(echoTask, 'A', null)).pid).not.toBe(before.pid)
      expect(isAlive(before.pid)).toBe(false)
    } finally {
      await own.close()
    }
  })

  test('gives the memory of a document that has needed much back', async () => {
    const before = await pidNow()
    expect(await reader.run(growTask, 'A', { bytes: 400_000_000 })).toBe(400_000_000)
    await until('the process has ended', () => !isAlive(before))
    expect(await pidNow()).not.toBe(before)
  })

  test('ends if a task takes too long, or if it is not needed any more', async () => {
    await expect(reader.run(spinTask, 'A', null, undefined, { workMaxMs: 50 })).rejects.toMatchObject({ limit: 'time' })
    const gone = new AbortController()
    const spinning = reader.run(spinTask, 'A', null, gone.signal)
    gone.abort(new Error('the worker stops'))
    await expect(spinning).rejects.toThrow('the worker stops')
    expect(await reader.run(echoTask, 'A', 1)).toMatchObject({ input: 1 })
  })

  test.each([
    ['throws', failTask, 'the program fails'],
    ['ends its process', leaveTask, 'the process that reads documents has ended (3)'],
  ])('says why, if a task %s', async (_, task, message) => {
    await expect(reader.run(task, 'A', null)).rejects.toThrow(message)
    expect(await reader.run(echoTask, 'B', 1)).toMatchObject({ input: 1 })
  })

  test.each(['SIGTERM', 'SIGKILL'] as const)('that somebody stops by %s is no verdict on the document', async (signal) => {
    const pid = await pidNow()
    const spinning = reader.run(spinTask, 'A', null)
    process.kill(pid, signal)
    await expect(spinning).rejects.toThrow(`the process that reads documents has ended (${signal})`)
  })

  test('that ends with the relay is no verdict on the document', async () => {
    const own = createReaderProcess({ readable })
    await own.run(echoTask, 'A', null)
    const spinning = own.run(spinTask, 'A', null)
    await setImmediate()
    const closed = own.close()
    await expect(spinning).rejects.toThrow('the process that reads documents has ended (SIGKILL)')
    await closed
  })

  test('has a peak of its own: the memory of the relay does not count', async () => {
    const own = createReaderProcess({ readable, memoryMaxBytes: 200_000_000 })
    const ofRelay = Buffer.alloc(400_000_000, 1)
    try {
      expect(await own.run(echoTask, 'A', ofRelay.length)).toMatchObject({ input: 400_000_000 })
    } finally {
      await own.close()
    }
  })

  test('takes the documents of workspaces in turns, one at a time', async () => {
    const ended: string[] = []
    const read = (workspace: string) => reader.run(echoTask, workspace, null).then(() => ended.push(workspace))
    await Promise.all(['A', 'A', 'A', 'A', 'B', 'C'].map(read))
    expect(ended.slice(0, 3).toSorted()).toEqual(['A', 'B', 'C'])
  })

  test('has the input read when the turn of the workspace has come, one at a time', async () => {
    let held = 0
    const read = async () => {
      held += 1
      await setImmediate()
      return held
    }
    const inputs = await Promise.all(
      ['A', 'A', 'A'].map(async (workspace) => {
        const { input } = await reader.run(echoTask, workspace, read)
        held -= 1
        return input
      }),
    )
    expect(inputs).toEqual([1, 1, 1])
    const failing = () => Promise.reject(new Error('the store is away'))
    await expect(reader.run(echoTask, 'A', failing)).rejects.toThrow('the store is away')
    const gone = new AbortController()
    const silent = reader.run(echoTask, 'A', () => new Promise<never>(() => {}), gone.signal)
    const next = reader.run(echoTask, 'A', 'next')
    gone.abort(new Error('not needed any more'))
    await expect(silent).rejects.toThrow('not needed any more')
    expect((await next).input).toBe('next')
  })

  test('does not begin with a document that has waited too long', async () => {
    const gone = new AbortController()
    const spinning = reader.run(spinTask, 'A', null, gone.signal).catch(() => {})
    const refused = reader.run(echoTask, 'B', null, undefined, { waitMaxMs: 20, workMaxMs: 60_000 })
    await expect(refused).rejects.toBeInstanceOf(NotBegunError)
    gone.abort()
    await spinning
  })

  test('ends after some time without a document, and with the relay', async () => {
    const own = createReaderProcess({ readable, idleMs: 20 })
    const { pid } = await own.run(echoTask, 'A', null)
    await until('the process has ended', () => !isAlive(pid))
    const next = await own.run(echoTask, 'A', null)
    await own.close()
    expect(isAlive(next.pid)).toBe(false)
  })
})
