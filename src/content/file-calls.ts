import pLimit from 'p-limit'

// A call of a network file system whose server does not answer cannot be ended. It keeps one of the threads that the process has for files,
// names, compression and cryptography: 4, unless UV_THREADPOOL_SIZE says otherwise.

const defaultThreads = 4
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || defaultThreads
/** A create is refused within 35 s. */
const callMaxMs = 22_000

/** The file system has not answered in time. What was called may still happen. */
export class LateError extends Error {
  constructor(maxMs: number) {
    super(`The file system has not answered for ${maxMs / 1_000} s.`)
    this.name = 'LateError'
  }
}

export interface FileCalls {
  /**
   * Makes a call, once a thread is free for it.
   * @param dispose closes what the call opens after its caller has stopped waiting
   * @throws `LateError` if the call has not ended in time. It goes on then, and keeps its thread until it ends
   */
  make<Result>(call: () => Promise<Result>, dispose?: (late: Result) => unknown): Promise<Result>
  /** Makes a call in the background, and ignores its error. */
  makeLater(call: () => Promise<unknown>): void
}

/** Creates the functions that make the calls of a files store. They leave one thread to the rest of the process, whatever the files do. */
export const createFileCalls = ({ maxCalls = Math.max(1, threads - 1), maxMs = callMaxMs } = {}): FileCalls => {
  const limit = pLimit(maxCalls)
  const makeLater: FileCalls['makeLater'] = (call) => void limit(call).catch(() => {})
  return {
    makeLater,

    make: async (call, dispose) => {
      let isLate = false
      const made = limit(async () => {
        // The caller has stopped waiting.
        if (isLate) throw new LateError(maxMs)
        const result = await call()
        if (isLate) await dispose?.(result)
        return result
      })
      const late = Promise.withResolvers<never>()
      const timer = setTimeout(() => {
        isLate = true
        late.reject(new LateError(maxMs))
      }, maxMs)
      try {
        return await Promise.race([made, late.promise])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}
