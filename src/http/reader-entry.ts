// The program of a reader process. It has no environment, and may read and write no file but its program and packages.
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { isOutOfMemory, messageOf } from '../base/errors.ts'

/** A task, as it is sent to the process. */
export interface SentReading {
  file: string
  name: string
  input: unknown
}

/** What the process says of its task. `working`: its program is loaded, and its function begins. */
export type ReaderNews =
  | { state: 'working' }
  /** @property peakBytes the most memory that the process has used in its life */
  | { state: 'done'; result: unknown; memoryBytes: number; peakBytes: number }
  | { state: 'failed'; error: string; isOutOfMemory: boolean }

type TaskModule = Record<string, (input: unknown) => unknown>

/**
 * Returns the most memory that this program has used. `process.resourceUsage().maxRSS` is no such number on Linux: it begins with the memory of the
 * process that has started this one. Where there is no /proc, no limit is enforced that the peak could reach, and the memory in use counts.
 */
const readPeakBytes = (): number => {
  if (process.platform !== 'linux') return process.memoryUsage.rss()
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))!
  return Number(kibibytes) * 1_024
}

const tell = (news: ReaderNews) => process.send!(news)

const read = async ({ file, name, input }: SentReading): Promise<void> => {
  try {
    const task = ((await import(pathToFileURL(file).href)) as TaskModule)[name]!
    tell({ state: 'working' })
    const result = await task(input)
    tell({ state: 'done', result, memoryBytes: process.memoryUsage.rss(), peakBytes: readPeakBytes() })
  } catch (thrown) {
    tell({ state: 'failed', error: messageOf(thrown), isOutOfMemory: isOutOfMemory(thrown) })
  }
}

process.on('message', (task: SentReading) => void read(task))
// The relay has ended.
process.on('disconnect', () => process.exit())
