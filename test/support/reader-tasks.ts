import { readFileSync, writeFileSync } from 'node:fs'
import { threadTask } from '../../src/base/thread-task.ts'

// What a program that reads a document may do, on purpose or because of its document. A process of its own runs each.

/** @returns what was given, with the number of the process */
export const echo = (input: unknown) => ({ input, pid: process.pid })
export const echoTask = threadTask(import.meta.url, echo)

/** Keeps memory outside of the heap of JavaScript. @returns the number of bytes */
export const grow = ({ bytes }: { bytes: number }): number => {
  const kept: Uint8Array[] = []
  for (let total = 0; total < bytes; total += 10_000_000) kept.push(new Uint8Array(10_000_000).fill(1))
  return kept.length * 10_000_000
}
export const growTask = threadTask(import.meta.url, grow)

/** Wants all of the memory at once. */
export const allocate = ({ bytes }: { bytes: number }): number => new Uint8Array(bytes).fill(1).length
export const allocateTask = threadTask(import.meta.url, allocate)

/** Wants more and more memory, and takes a refusal for an error of the document. */
export const swallow = ({ bytes }: { bytes: number }): string => {
  const kept: Uint8Array[] = []
  try {
    for (let total = 0; total < bytes; total += 10_000_000) kept.push(new Uint8Array(10_000_000).fill(1))
  } catch {
    kept.length = Math.min(kept.length, 1)
  }
  return 'the document is empty'
}
export const swallowTask = threadTask(import.meta.url, swallow)

/** Keeps memory in the heap of JavaScript. */
export const growHeap = ({ items }: { items: number }): number =>
  Array.from({ length: items }, (_, n) => ({ n, text: `item ${n}`, more: [n, n + 1, n + 2, n + 3] })).length
export const growHeapTask = threadTask(import.meta.url, growHeap)

/** Never ends. */
export const spin = (): never => {
  for (;;) Math.random()
}
export const spinTask = threadTask(import.meta.url, spin)

export const fail = (): never => {
  throw new Error('the program fails')
}
export const failTask = threadTask(import.meta.url, fail)

/** Ends its process. */
export const leave = (): never => process.exit(3)
export const leaveTask = threadTask(import.meta.url, leave)

const attempt = (work: () => unknown): string => {
  try {
    work()
    return 'permitted'
  } catch (thrown) {
    return (thrown as { code?: string }).code ?? String(thrown)
  }
}

/** @returns what the process may do, and what it knows */
export const lookAround = ({ file }: { file: string }) => ({
  environment: Object.keys(process.env).toSorted(),
  writing: attempt(() => writeFileSync(file, '')),
  reading: [`/proc/${process.ppid}/environ`, '/proc/self/environ', '/etc/passwd', file.replace(/test.*/, 'README.md')].map((path) =>
    attempt(() => readFileSync(path)),
  ),
  spawning: attempt(() => process.getBuiltinModule('node:child_process').spawnSync('true')),
})
export const lookAroundTask = threadTask(import.meta.url, lookAround)
