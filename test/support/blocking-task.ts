import { threadTask } from '../../src/base/thread-task.ts'

interface Gate {
  /** The first number is 1 once the gate is open; the second counts the tasks that have begun. */
  state: Int32Array
}

/** Runs on a thread, and holds it until the gate is opened. @returns how many tasks had begun with it */
export const block = ({ state }: Gate): number => {
  const begun = Atomics.add(state, 1, 1) + 1
  Atomics.wait(state, 0, 0)
  return begun
}

export const blockTask = threadTask(import.meta.url, block)

/** Creates a gate at which tasks wait. */
export const createGate = () => {
  const state = new Int32Array(new SharedArrayBuffer(8))
  return {
    input: { state } satisfies Gate,
    begun: () => Atomics.load(state, 1),
    open: () => {
      Atomics.store(state, 0, 1)
      Atomics.notify(state, 0)
    },
  }
}
