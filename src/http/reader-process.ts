import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pLimit from 'p-limit'
import type { ReaderNews, SentReading } from './reader-entry.ts'
import { createRunTask, TaskLimitError, type RunTask } from './task-limits.ts'

interface ReaderLimits {
  /** Memory that a task may have in use, beside what the process needs by itself. */
  memoryMaxBytes: number
  /** A process that uses more than this after a task is ended, so that its memory is free. */
  keptMaxBytes: number
  /** Time without a task after which the process ends. */
  idleMs: number
  /** Folders that the process may read beside the program and its packages. */
  readable: string[]
}

const defaultLimits: ReaderLimits = { memoryMaxBytes: 700_000_000, keptMaxBytes: 250_000_000, idleMs: 60_000, readable: [] }

// What Node.js has mapped for writing before it does anything, most of which it never touches: 573 MB on Linux with Node.js 24.
const mappedBytes = 600_000_000
// The rest of the memory is for what is not in the heap of JavaScript: the bytes of documents and of their streams.
const heapShare = 0.6
const nearlyAll = 0.85

// The kernel refuses memory above the limit, which ends the process. macOS does not enforce it: there the heap alone is limited. If the machine
// itself has too little memory, the kernel is to end this process and not the relay.
const startLimited = 'ulimit -d "$0" 2>/dev/null; echo 1000 2>/dev/null >/proc/self/oom_score_adj; exec "$@"'

const entry = fileURLToPath(new URL(`./reader-entry${extname(import.meta.url)}`, import.meta.url))

/** Returns the folder of a path and those above it. */
const foldersAbove = (path: string): string[] => {
  const folder = dirname(path)
  return folder === path ? [] : [folder, ...foldersAbove(folder)]
}

// The program, the packages that it may load, and how much memory it has used: neither the environment of the relay nor its files.
const program = [
  dirname(dirname(entry)),
  ...foldersAbove(entry).flatMap((folder) => [join(folder, 'node_modules'), join(folder, 'package.json')]),
  '/proc/self/status',
].filter((path) => existsSync(path))

// Signals of an operator or supervisor that stops the relay or its processes. SIGKILL comes from the relay as it ends, or from the kernel
// if the machine or the container has too little memory, whichever process has used it. The limit of the process itself ends it by another
// signal.
const stopSignals = new Set<NodeJS.Signals | null>(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'])

type Reading = Extract<ReaderNews, { state: 'done' }>

const startProcess = ({ memoryMaxBytes, readable }: ReaderLimits): ChildProcess => {
  const node = [
    process.execPath,
    `--max-old-space-size=${Math.floor((memoryMaxBytes * heapShare) / 1_048_576)}`,
    '--permission',
    ...[...program, ...readable].map((path) => `--allow-fs-read=${path}`),
    '--disable-warning=ExperimentalWarning',
    entry,
  ]
  return spawn('/bin/sh', ['-c', startLimited, String(Math.floor((mappedBytes + memoryMaxBytes) / 1_024)), ...node], {
    // One heap of the C library for each thread would count as memory.
    env: { MALLOC_ARENA_MAX: '2' },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  })
}

/** Runs a task. @throws `TaskLimitError` if the process needed too much memory, and the reason of `ended` */
const runIn = (child: ChildProcess, task: SentReading, ended: AbortSignal, noteWorking: () => void): Promise<Reading> => {
  const { promise, resolve, reject } = Promise.withResolvers<Reading>()
  const onMessage = (news: ReaderNews) => {
    if (news.state === 'working') noteWorking()
    else if (news.state === 'done') resolve(news)
    else reject(news.isOutOfMemory ? new TaskLimitError('memory') : new Error(news.error))
  }
  const onExit = (code: number | null, signal: NodeJS.Signals | null) => {
    const isStopped = signal === null || stopSignals.has(signal)
    reject(isStopped ? new Error(`the process that reads documents has ended (${signal ?? code})`) : new TaskLimitError('memory'))
  }
  const onAbort = () => reject(ended.reason as Error)
  child.on('message', onMessage).on('exit', onExit).on('error', reject)
  ended.addEventListener('abort', onAbort)
  // If the process has ended, its end says so.
  child.send(task, () => {})
  return promise.finally(() => {
    child.off('message', onMessage).off('exit', onExit).off('error', reject)
    ended.removeEventListener('abort', onAbort)
  })
}

/**
 * Creates the process in which documents of strangers are read, one at a time. It has nothing of the relay but the document: no environment, no
 * connection, no right to write files or to start programs. The kernel limits its memory, so that a document which needs too much ends
 * this process and nothing else. It starts with the first task.
 */
export const createReaderProcess = (some: Partial<ReaderLimits> = {}) => {
  const limits = { ...defaultLimits, ...some }
  const oneAtATime = pLimit(1)
  let child: ChildProcess | undefined
  let idle: NodeJS.Timeout | undefined

  const end = () => {
    clearTimeout(idle)
    child?.kill('SIGKILL')
    child = undefined
  }
  const start = (): ChildProcess => {
    const started = startProcess(limits)
    const forget = () => {
      if (child === started) child = undefined
    }
    return started.on('error', forget).on('exit', forget)
  }
  /** A process that has nothing to do does not keep the relay alive. */
  const hold = (process: ChildProcess, isBusy: boolean) => {
    for (const each of [process, process.channel]) {
      if (isBusy) each?.ref()
      else each?.unref()
    }
  }

  const run: RunTask = createRunTask('process', ({ file, name, input, ended, noteTaken, noteWorking }) =>
    oneAtATime(async () => {
      ended.throwIfAborted()
      clearTimeout(idle)
      noteTaken()
      child ??= start()
      const used = child
      hold(used, true)
      let isKept = false
      try {
        const { result, memoryBytes, peakBytes } = await runIn(used, { file, name, input }, ended, noteWorking)
        // A library may have taken a refusal of memory for an error of the document.
        if (peakBytes > nearlyAll * limits.memoryMaxBytes) throw new TaskLimitError('memory')
        isKept = memoryBytes <= limits.keptMaxBytes
        return result
      } finally {
        hold(used, false)
        if (isKept) idle = setTimeout(end, limits.idleMs).unref()
        else end()
      }
    }),
  )

  return {
    run,
    close: async (): Promise<void> => {
      const last = child
      end()
      if (!last || last.exitCode !== null || last.signalCode !== null) return
      // Without this, a relay that has nothing else to do would end while it waits.
      last.ref()
      await once(last, 'exit')
    },
  }
}
