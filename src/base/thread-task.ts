import { extname } from 'node:path'
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

/**
 * Describes a function of a module that only a thread loads, because the module or its packages are large.
 * @param importerUrl `import.meta.url` of the caller
 * @param path path of the module from there, without its extension: a checkout runs `.ts`, a package `.js`
 * @param load imports the module, for a caller without threads
 */
export const lazyThreadTask = <Input, Result, Name extends string>(
  importerUrl: string,
  path: string,
  name: Name,
  load: () => Promise<Record<Name, (input: Input) => Promise<Result>>>,
): ThreadTask<Input, Promise<Result>> => ({
  file: fileURLToPath(new URL(`${path}${extname(importerUrl)}`, importerUrl)),
  name,
  run: async (input) => (await load())[name](input),
})
