import { fileURLToPath } from 'node:url'

/** A pure function that a thread can run: input and result are copied between threads. The thread loads the module that exports it. */
export interface ThreadTask<Input, Result> {
  /** Path of the module. */
  file: string
  /** Name under which the module exports the function. */
  name: string
  /** The function itself. A caller without threads can run it directly. */
  run: (input: Input) => Result
}

/** Describes a function as a task of threads. @param moduleUrl `import.meta.url` of the module that exports it under its own name */
export const threadTask = <Input, Result>(moduleUrl: string, run: (input: Input) => Result): ThreadTask<Input, Result> => ({
  file: fileURLToPath(moduleUrl),
  name: run.name,
  run,
})
